#include <dirent.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "file.h"
#include "growth.h"
#include "own_cgroup.h"
#include "text.h"
#include "weir/host/cpu.h"

namespace weir::host {
namespace {

std::string_view FirstWord(std::string_view text) { return TakeWord(text); }

// The CPU list in the file at `path`: nothing when there is no such file or it
// is empty, an error when it holds no list.
Result<std::optional<int>> ReadCpuCount(const std::string& path) {
  const auto text = ReadWhole(path);
  if (!text) return text.error();
  if (!*text || FirstWord(**text).empty()) return std::optional<int>();
  const auto count = CountCpus(FirstWord(**text));
  if (!count) return Error{path + ": not a list of CPUs"};
  return count;
}

// CPUs of the nearest cgroup, from the own one upwards, that says so: those
// below it, where the controller is not switched on, use its CPUs.
Result<std::optional<int>> ReadCpuset(const CgroupPlace& place) {
  if (!place) return place.error();
  if (!*place) return std::optional<int>();
  std::string relative = (*place)->relative;
  for (;;) {
    const std::string directory = (*place)->top + relative;
    auto count = ReadCpuCount(directory + ((*place)->version == 1
                                               ? "/cpuset.effective_cpus"
                                               : "/cpuset.cpus.effective"));
    if (!count || *count || relative.empty()) return count;
    relative.erase(relative.rfind('/'));
  }
}

// Adds the CPUs that one thread may use; false when its file has none.
bool AddThread(const std::string& status_path, std::vector<bool>& cpus) {
  const auto status = ReadWhole(status_path);
  if (!status || !*status) return false;
  return ForEachCpuRange(ValueOf(**status, "Cpus_allowed_list:"),
                         [&](uint64_t first, uint64_t last) {
                           if (cpus.size() <= last) cpus.resize(last + 1);
                           std::fill(cpus.begin() + static_cast<long>(first),
                                     cpus.begin() + static_cast<long>(last) + 1,
                                     true);
                         });
}

int Count(const std::vector<bool>& cpus) {
  return static_cast<int>(std::count(cpus.begin(), cpus.end(), true));
}

// CPUs that the threads of this process may use together; at least `enough`
// when that is reached, or when there are too many threads to ask.  Nothing
// when it cannot be read.
std::optional<int> ReadAffinity(const std::string& root, int enough) {
  std::vector<bool> cpus;
  if (!AddThread(root + "/proc/self/status", cpus)) return std::nullopt;
  // Hardly anyone pins: the first thread's CPUs are nearly always all.
  if (Count(cpus) >= enough) return Count(cpus);
  const std::string tasks = root + "/proc/self/task";
  DIR* directory = opendir(tasks.c_str());
  if (directory == nullptr) return Count(cpus);
  int threads = 0;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    if (++threads > AllowedCpus::kMaxThreads || Count(cpus) >= enough) break;
    AddThread(tasks + "/" + entry->d_name + "/status", cpus);
  }
  closedir(directory);
  return threads > AllowedCpus::kMaxThreads ? enough : Count(cpus);
}

}  // namespace

struct AllowedCpus::State {
  Reading<CpuCount> Look();

  std::string root;
  OwnCgroup own;
  std::optional<Instant> looked;
  Reading<CpuCount> count;
};

// Numbers are compared, not the CPUs behind them: what is allowed may name CPUs
// that are not online (a virtual machine allows all it could ever have), and
// lxcfs counts those of a container from zero.
Reading<CpuCount> AllowedCpus::State::Look() {
  const std::string path = root + "/sys/devices/system/cpu/online";
  const auto online = ReadCpuCount(path);
  if (!online) return Reading<CpuCount>::Inert(online.error().message);
  if (!*online) {
    return Reading<CpuCount>::Inert(path + ": no such file or empty");
  }
  const auto cpuset = ReadCpuset(own.cpuset());
  if (!cpuset) return Reading<CpuCount>::Inert(cpuset.error().message);
  CpuCount all;
  all.online = **online;
  all.cpuset = std::min(all.online, cpuset->value_or(all.online));
  const auto affinity = ReadAffinity(root, all.cpuset);
  all.affinity = std::min(all.cpuset, affinity.value_or(all.cpuset));
  return all;
}

AllowedCpus::AllowedCpus(std::string root)
    : state_(std::make_unique<State>(State{root, OwnCgroup(root), {}, {}})) {}
AllowedCpus::~AllowedCpus() = default;
AllowedCpus::AllowedCpus(AllowedCpus&&) noexcept = default;
AllowedCpus& AllowedCpus::operator=(AllowedCpus&&) noexcept = default;

Reading<CpuCount> AllowedCpus::Read(Instant now) {
  State& state = *state_;
  const Duration since = state.looked ? Since(*state.looked, now) : kLookAgain;
  if (since >= Duration::zero() && since < kLookAgain) return state.count;
  state.looked = now;
  state.own.Refresh(now);
  state.count = state.Look();
  return state.count;
}

}  // namespace weir::host
