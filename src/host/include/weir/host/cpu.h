// CPU of this process and of the machine, and the share of what it may use.
//
// The signals stay separate and each means one thing: what the process uses,
// what its cgroup uses (cgroup.h), what the whole machine does.  CpuUse puts
// them into proportion to what is allowed.  None is smoothed: each is the mean
// since the reading before, so the caller chooses how fast and how calm it is.

#ifndef WEIR_HOST_CPU_H_
#define WEIR_HOST_CPU_H_

#include <memory>
#include <optional>
#include <string>

#include "weir/host/cgroup.h"
#include "weir/host/reading.h"
#include "weir/time.h"

namespace weir::host {

// CPU time, user and system, of all threads of this process so far.  From
// CLOCK_PROCESS_CPUTIME_ID, to the nanosecond; /proc/self/stat counts in steps
// of 10 ms, a tenth of what one CPU does between two readings.
std::optional<Duration> ProcessCpuTime();

class ProcessCpu {
 public:
  using Source = std::optional<Duration> (*)();

  explicit ProcessCpu(Source source = &ProcessCpuTime);
  ~ProcessCpu();
  ProcessCpu(ProcessCpu&&) noexcept;
  ProcessCpu& operator=(ProcessCpu&&) noexcept;

  // CPUs used since the reading before, 0 up.
  Reading<double> Read(Instant now);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct MachineCpuUse {
  // Of the time of all CPUs that are online, each in [0, 1].
  double busy_ratio = 0;   // They ran something, interrupts included.
  double steal_ratio = 0;  // They had work and the hypervisor ran another VM.
};

// In a container this is the node, so no measure of what the service uses.
class MachineCpu {
 public:
  explicit MachineCpu(const std::string& root = "");
  ~MachineCpu();
  MachineCpu(MachineCpu&&) noexcept;
  MachineCpu& operator=(MachineCpu&&) noexcept;

  // Means since the reading before, by the machine's own ticks (10 ms for each
  // CPU, most often): two readings within a tick give none.
  Reading<MachineCpuUse> Read();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct CpuCount {
  int online = 0;    // CPUs that the machine has switched on.
  int cpuset = 0;    // CPUs that the own cgroup may use, at most `online`.
  int affinity = 0;  // CPUs that this process may use, at most `cpuset`.
};

class AllowedCpus {
 public:
  explicit AllowedCpus(std::string root = "");
  ~AllowedCpus();
  AllowedCpus(AllowedCpus&&) noexcept;
  AllowedCpus& operator=(AllowedCpus&&) noexcept;

  // Looks at most once in a second.  Where threads are pinned, `affinity`
  // counts all CPUs that any of them may use, for the first kMaxThreads; with
  // more threads than that it is `cpuset`.
  static constexpr int kMaxThreads = 64;
  Reading<CpuCount> Read(Instant now);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What a process may use has three bounds, each shared with others:
//   quota     with all that is in the cgroup that has it
//   cpuset    with all that is in the own cgroup
//   affinity  with nobody
enum class CpuBound : uint8_t { kQuota, kCpuset, kAffinity };
std::string_view Name(CpuBound bound);  // "quota", "cpuset", "affinity"

struct CpuUse {
  double ratio = 0;       // used / limit, cut to [0, 1]; 1: saturated.
  double used_cpus = 0;   // By all that share the bound.
  double limit_cpus = 0;  // The bound.
  CpuBound bound = CpuBound::kCpuset;
};

// The fullest of the three.  A cgroup that counts no CPU time is taken to hold
// this process alone.  No value when a bound is not known: a ratio of a guessed
// limit is worse than none.
Reading<CpuUse> ComputeCpuUse(const Reading<double>& process_cpus,
                              const CgroupCpuReadings& cgroup,
                              const Reading<CpuCount>& allowed);

}  // namespace weir::host

#endif  // WEIR_HOST_CPU_H_
