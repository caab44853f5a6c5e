// The CPU of this process's cgroup: what it uses, may use, and is denied.
//
// Containers and systemd services are cgroups, so this is the CPU that a
// service has; the machine's is its neighbours' too.  Both versions are read,
// also a mixture; docs/host.md has the files.

#ifndef WEIR_HOST_CGROUP_H_
#define WEIR_HOST_CGROUP_H_

#include <limits>
#include <memory>
#include <string>

#include "weir/host/reading.h"
#include "weir/time.h"

namespace weir::host {

inline constexpr double kNoQuota = std::numeric_limits<double>::infinity();

// Limits nest: each cgroup on the path from the mount to the own one may have a
// quota, and shares it with all that is below it.
struct CpuQuota {
  // The smallest quota on the path, in CPUs (2.5: two and a half CPUs' time);
  // kNoQuota when there is none.
  double smallest_cpus = kNoQuota;
  // The quota on the path that is nearest to being used up, what the cgroup
  // that has it uses (our siblings' share included), and its directory.
  double cpus = kNoQuota;
  double used_cpus = 0;
  std::string directory;
};

// What the kernel withheld since the reading before, as a quota was used up.
struct Throttling {
  double periods_ratio = 0;  // Share of the quota's periods, [0, 1].
  double denied_cpus = 0;    // CPUs that stood still; rises with threads.
};

struct CgroupCpuReadings {
  Reading<double> cpus;  // Used by the own cgroup and those below it, in CPUs.
  Reading<CpuQuota> quota;
  Reading<Throttling> throttling;  // Inert when no quota is on the path.
};

// Quotas above the mount (a pod's, seen from inside its container) are not
// visible, hence not counted.  Not thread-safe.
class CgroupCpu {
 public:
  // Reads below `root`: "" for this machine.
  explicit CgroupCpu(std::string root = "");
  ~CgroupCpu();
  CgroupCpu(CgroupCpu&&) noexcept;
  CgroupCpu& operator=(CgroupCpu&&) noexcept;

  // Means since the reading before, not smoothed.  Two to four small reads for
  // each directory of the path; no waiting.
  CgroupCpuReadings Read(Instant now);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// CPUs of a quota, kNoQuota for none ("max", below zero), or why it is neither.
// v2: the text of cpu.max.  v1: those of cpu.cfs_quota_us, cpu.cfs_period_us.
Reading<double> ParseCpuMax(std::string_view text);
Reading<double> ParseCfsQuota(std::string_view quota, std::string_view period);

}  // namespace weir::host

#endif  // WEIR_HOST_CGROUP_H_
