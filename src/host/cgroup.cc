#include "weir/host/cgroup.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "file.h"
#include "growth.h"
#include "own_cgroup.h"
#include "text.h"

namespace weir::host {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// The counters of one quota.
struct Throttled {
  uint64_t periods = 0;
  uint64_t throttled_periods = 0;
  Duration time{};
};

std::string_view FirstWord(std::string_view text) { return TakeWord(text); }

std::optional<Throttled> ParseThrottled(std::string_view text, int version) {
  const auto periods = ToCount(ValueOf(text, "nr_periods"));
  const auto throttled = ToCount(ValueOf(text, "nr_throttled"));
  const auto time =
      version == 1 ? ToTime(ValueOf(text, "throttled_time"), nanoseconds(1))
                   : ToTime(ValueOf(text, "throttled_usec"), microseconds(1));
  if (!periods || !throttled || !time) return std::nullopt;
  return Throttled{*periods, *throttled, *time};
}

// CPU time used in the cgroup at `directory`: cpu.stat (v2), cpuacct.usage
// (v1).
class UsageFile {
 public:
  UsageFile(const std::string& directory, int version)
      : file_(directory + (version == 1 ? "/cpuacct.usage" : "/cpu.stat")),
        version_(version) {}

  Reading<double> Read(Instant now) {
    Buffer buffer;
    const auto text = file_.Read(buffer);
    std::optional<Duration> used;
    if (text) {
      used = version_ == 1
                 ? ToTime(FirstWord(*text), nanoseconds(1))
                 : ToTime(ValueOf(*text, "usage_usec"), microseconds(1));
      if (used) return growth_.Step(now, *used);
    }
    growth_.Reset();
    return Reading<double>::Inert(text ? file_.Says("no usage in it")
                                       : text.error().message);
  }

 private:
  File file_;
  int version_;
  Growth growth_;
};

// One directory of the path to the own cgroup.
class Level {
 public:
  Level(std::string directory, int version, UsageFile usage)
      : directory_(std::move(directory)),
        version_(version),
        quota_(directory_ + (version == 1 ? "/cpu.cfs_quota_us" : "/cpu.max")),
        period_(directory_ + "/cpu.cfs_period_us"),
        stat_(directory_ + "/cpu.stat"),
        usage_(std::move(usage)) {}

  struct Readings {
    const std::string* directory;
    Reading<double> quota;
    Reading<double> used;
    Reading<Throttling> throttling;
  };

  // Also use and throttling of a cgroup without a quota, which may be given at
  // any time and then needs a reading before.
  Readings Read(Instant now) {
    return {&directory_, ReadQuota(), usage_.Read(now), ReadThrottling(now)};
  }

 private:
  // kNoQuota also where there is no such file: the root has none, nor has a
  // cgroup for which the controller is not switched on.
  Reading<double> ReadQuota() {
    Buffer buffer;
    const auto text = quota_.Read(buffer);
    if (!text && quota_.absent() && access(directory_.c_str(), F_OK) == 0) {
      return kNoQuota;
    }
    if (!text) return Reading<double>::Inert(text.error().message);
    Buffer second;
    Result<std::string_view> period = std::string_view();
    if (version_ == 1) period = period_.Read(second);
    if (!period) return Reading<double>::Inert(period.error().message);
    auto quota =
        version_ == 1 ? ParseCfsQuota(*text, *period) : ParseCpuMax(*text);
    if (quota.ok()) return quota;
    return Reading<double>::Inert(quota_.Says(quota.why()));
  }

  Reading<Throttling> ReadThrottling(Instant now) {
    Buffer buffer;
    const auto text = stat_.Read(buffer);
    const auto is = text ? ParseThrottled(*text, version_) : std::nullopt;
    const auto was = std::exchange(throttled_, is);
    if (!is) {
      time_.Reset();
      return Reading<Throttling>::Inert(text ? stat_.Says("no throttling in it")
                                             : text.error().message);
    }
    const Reading<double> denied = time_.Step(now, is->time);
    if (!denied) return Reading<Throttling>::Because(denied);
    if (!was || is->periods < was->periods ||
        is->throttled_periods < was->throttled_periods) {
      return Reading<Throttling>::Pending("the counter went back");
    }
    const auto periods = static_cast<double>(is->periods - was->periods);
    const auto throttled =
        static_cast<double>(is->throttled_periods - was->throttled_periods);
    // A throttled period may be counted just before the period itself is.
    return Throttling{
        throttled == 0 ? 0 : std::min(1., throttled / std::max(periods, 1.)),
        *denied};
  }

  std::string directory_;
  int version_;
  File quota_;
  File period_;
  File stat_;
  UsageFile usage_;
  std::optional<Throttled> throttled_;
  Growth time_;
};

bool HasQuota(const Level::Readings& level) {
  return level.quota.ok() && *level.quota != kNoQuota;
}

Reading<CpuQuota> NearestQuota(const std::vector<Level::Readings>& levels) {
  CpuQuota nearest;
  double fullest = -1;
  for (const Level::Readings& level : levels) {
    // One limit that is not known makes the smallest unknown too.
    if (!level.quota.ok()) return Reading<CpuQuota>::Because(level.quota);
    if (!HasQuota(level)) continue;
    if (!level.used.ok()) return Reading<CpuQuota>::Because(level.used);
    const double cpus = *level.quota;
    const double full = *level.used / cpus;
    nearest.smallest_cpus = std::min(nearest.smallest_cpus, cpus);
    if (full > fullest || (full == fullest && cpus < nearest.cpus)) {
      fullest = full;
      nearest.cpus = cpus;
      nearest.used_cpus = *level.used;
      nearest.directory = *level.directory;
    }
  }
  return nearest;
}

Reading<Throttling> AllThrottling(const std::vector<Level::Readings>& levels) {
  Throttling all;
  bool any = false;
  for (const Level::Readings& level : levels) {
    if (!HasQuota(level)) continue;
    if (!level.throttling.ok()) return level.throttling;
    any = true;
    all.periods_ratio =
        std::max(all.periods_ratio, level.throttling->periods_ratio);
    all.denied_cpus += level.throttling->denied_cpus;
  }
  if (!any) return Reading<Throttling>::Inert("no CPU quota, so none withheld");
  return all;
}

}  // namespace

Reading<double> ParseCpuMax(std::string_view text) {
  const std::string_view quota = TakeWord(text);
  const auto period = ToCount(TakeWord(text));
  const bool whole = TakeWord(text).empty();
  const auto micros = ToCount(quota);
  if (!whole || !period || *period == 0 || (quota != "max" && !micros) ||
      micros == 0u) {
    return Reading<double>::Inert("not a quota and a period");
  }
  if (quota == "max") return kNoQuota;
  return static_cast<double>(*micros) / static_cast<double>(*period);
}

Reading<double> ParseCfsQuota(std::string_view quota, std::string_view period) {
  const std::string_view word = TakeWord(quota);
  if (word == "-1" && TakeWord(quota).empty()) return kNoQuota;
  return ParseCpuMax(std::string(word) + " " + std::string(period));
}

struct CgroupCpu::State {
  explicit State(std::string root) : own(std::move(root)) {}

  void Rebuild();

  OwnCgroup own;
  std::vector<Level> levels;  // From the own cgroup up to the mount.
  // When there are no levels:
  std::string why;
  bool limited = false;  // Whether a quota may exist that cannot be seen.
};

void CgroupCpu::State::Rebuild() {
  levels.clear();
  const CgroupPlace& cpu = own.cpu();
  // v2 counts time in every cgroup; v1 has a controller of its own for that.
  const bool v1 = cpu && *cpu && (*cpu)->version == 1;
  const CgroupPlace& time = v1 ? own.cpuacct() : cpu;
  if (!cpu || !*cpu || !time || !*time) {
    limited = !cpu || *cpu;
    why = !cpu    ? cpu.error().message
          : !time ? time.error().message
                  : "this process is in no cgroup that counts CPU time";
    return;
  }
  // Where the counting tree has another shape, the own use must do for the
  // levels above, whose use is more.
  const bool alike = (*time)->relative == (*cpu)->relative;
  std::string relative = (*cpu)->relative;
  for (;;) {
    const std::string& counted = alike ? relative : (*time)->relative;
    levels.emplace_back((*cpu)->top + relative, (*cpu)->version,
                        UsageFile((*time)->top + counted, (*time)->version));
    if (relative.empty()) return;
    relative.erase(relative.rfind('/'));
  }
}

CgroupCpu::CgroupCpu(std::string root)
    : state_(std::make_unique<State>(std::move(root))) {}
CgroupCpu::~CgroupCpu() = default;
CgroupCpu::CgroupCpu(CgroupCpu&&) noexcept = default;
CgroupCpu& CgroupCpu::operator=(CgroupCpu&&) noexcept = default;

CgroupCpuReadings CgroupCpu::Read(Instant now) {
  State& state = *state_;
  if (state.own.Refresh(now)) state.Rebuild();
  if (state.levels.empty()) {
    CgroupCpuReadings none{Reading<double>::Inert(state.why), CpuQuota(),
                           Reading<Throttling>::Inert(state.why)};
    if (state.limited) none.quota = Reading<CpuQuota>::Inert(state.why);
    return none;
  }
  std::vector<Level::Readings> levels;
  levels.reserve(state.levels.size());
  for (Level& level : state.levels) levels.push_back(level.Read(now));
  return {levels.front().used, NearestQuota(levels), AllThrottling(levels)};
}

}  // namespace weir::host
