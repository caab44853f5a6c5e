#include "weir/host/cpu.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <utility>

#include "file.h"
#include "growth.h"
#include "text.h"

namespace weir::host {

std::optional<Duration> ProcessCpuTime() {
  timespec t;
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0) return std::nullopt;
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

struct ProcessCpu::State {
  Source source;
  Growth growth;
};

ProcessCpu::ProcessCpu(Source source)
    : state_(std::make_unique<State>(State{source, {}})) {}
ProcessCpu::~ProcessCpu() = default;
ProcessCpu::ProcessCpu(ProcessCpu&&) noexcept = default;
ProcessCpu& ProcessCpu::operator=(ProcessCpu&&) noexcept = default;

Reading<double> ProcessCpu::Read(Instant now) {
  const std::optional<Duration> total = state_->source();
  if (total) return state_->growth.Step(now, *total);
  state_->growth.Reset();
  return Reading<double>::Inert(
      "this kernel has no clock of a process's CPU time");
}

namespace {

// The first line of /proc/stat, in ticks.  `guest` is part of `user` already.
struct Ticks {
  uint64_t busy = 0;  // user nice system irq softirq
  uint64_t idle = 0;  // idle iowait
  uint64_t steal = 0;
};

std::optional<Ticks> ParseStat(std::string_view text) {
  std::string_view line = TakeLine(text);
  if (TakeWord(line) != "cpu") return std::nullopt;
  // user nice system idle iowait irq softirq steal
  std::array<uint64_t, 8> field{};
  for (uint64_t& value : field) {
    const auto count = ToCount(TakeWord(line));
    // So large that a sum could overflow: no machine has run for so long.
    if (!count || *count >> 60 != 0) return std::nullopt;
    value = *count;
  }
  return Ticks{field[0] + field[1] + field[2] + field[5] + field[6],
               field[3] + field[4], field[7]};
}

}  // namespace

struct MachineCpu::State {
  File file;
  std::optional<Ticks> seen;
};

MachineCpu::MachineCpu(const std::string& root)
    : state_(std::make_unique<State>(State{File(root + "/proc/stat"), {}})) {}
MachineCpu::~MachineCpu() = default;
MachineCpu::MachineCpu(MachineCpu&&) noexcept = default;
MachineCpu& MachineCpu::operator=(MachineCpu&&) noexcept = default;

Reading<MachineCpuUse> MachineCpu::Read() {
  using Use = Reading<MachineCpuUse>;
  Buffer buffer;
  const auto text = state_->file.Read(buffer);
  const auto is = text ? ParseStat(*text) : std::nullopt;
  if (!is) {
    state_->seen.reset();
    return Use::Inert(text
                          ? state_->file.Says("no `cpu` line as proc(5) has it")
                          : text.error().message);
  }
  if (!state_->seen) {
    state_->seen = is;
    return Use::Pending("needs two readings");
  }
  const Ticks was = *state_->seen;
  if (is->busy < was.busy || is->steal < was.steal) {
    state_->seen = is;
    return Use::Pending("the counter went back");
  }
  const auto busy = static_cast<double>(is->busy - was.busy);
  const auto steal = static_cast<double>(is->steal - was.steal);
  // The kernel's iowait is known to step back a little.
  const auto idle =
      static_cast<double>(is->idle > was.idle ? is->idle - was.idle : 0);
  const double all = busy + idle + steal;
  if (all == 0) return Use::Pending("no tick has passed since the last one");
  state_->seen = is;
  return MachineCpuUse{busy / all, steal / all};
}

std::string_view Name(CpuBound bound) {
  constexpr std::string_view kNames[] = {"quota", "cpuset", "affinity"};
  return kNames[static_cast<size_t>(bound)];
}

Reading<CpuUse> ComputeCpuUse(const Reading<double>& process_cpus,
                              const CgroupCpuReadings& cgroup,
                              const Reading<CpuCount>& allowed) {
  using Use = Reading<CpuUse>;
  if (!cgroup.quota) return Use::Because(cgroup.quota);
  if (!allowed) return Use::Because(allowed);
  if (!process_cpus) return Use::Because(process_cpus);
  if (!cgroup.cpus && !cgroup.cpus.inert()) return Use::Because(cgroup.cpus);

  CpuUse fullest;
  const auto consider = [&](double used, double limit, CpuBound bound) {
    const double ratio = std::min(used / limit, 1.);
    if (fullest.limit_cpus != 0 && ratio <= fullest.ratio) return;
    fullest = CpuUse{ratio, used, limit, bound};
  };
  if (cgroup.quota->cpus != kNoQuota) {
    consider(cgroup.quota->used_cpus, cgroup.quota->cpus, CpuBound::kQuota);
  }
  consider(cgroup.cpus ? *cgroup.cpus : *process_cpus, allowed->cpuset,
           CpuBound::kCpuset);
  consider(*process_cpus, allowed->affinity, CpuBound::kAffinity);
  return fullest;
}

}  // namespace weir::host
