// All that is known about the machine, in one reading.

#ifndef WEIR_HOST_SAMPLER_H_
#define WEIR_HOST_SAMPLER_H_

#include <functional>
#include <iosfwd>
#include <map>
#include <string>

#include "weir/host/cgroup.h"
#include "weir/host/cpu.h"
#include "weir/host/load.h"

namespace weir::host {

struct HostSignals {
  Instant at{};
  Reading<CpuUse> cpu;  // The one to act upon: used, of what may be used.
  Reading<double> process_cpus;
  CgroupCpuReadings cgroup;
  Reading<CpuCount> allowed;
  Reading<MachineCpuUse> machine;
  Reading<Load> load;
  Pressures pressure;  // Of the machine.
  Pressures cgroup_pressure;
};

// Files stay open between samples, at most 4 for each directory on the path to
// the own cgroup and 8 others.  Not thread-safe.  After a fork the child makes
// its own.
class Sampler {
 public:
  // Hears one line when a sensor goes inert, when its reason changes, and when
  // it comes back; never the same line twice in a row for one sensor.
  using Listener = std::function<void(const std::string& line)>;

  explicit Sampler(Listener listener = nullptr, const std::string& root = "");

  // Meant to be called each 100 ms or slower; blocks on nothing.
  HostSignals Sample(Instant now);

 private:
  void Tell(const HostSignals& signals);

  Listener listener_;
  std::map<std::string, std::string> inert_;  // Sensor to reason, as told.
  ProcessCpu process_;
  CgroupCpu cgroup_;
  AllowedCpus allowed_;
  MachineCpu machine_;
  LoadAverage load_;
  Pressure cpu_pressure_, memory_pressure_, io_pressure_;
  CgroupPressure cgroup_pressure_;
};

// One line for each sensor: its name, then its value with units, or the reason
// why it has none.
void DescribeHost(const HostSignals& signals, std::ostream& out);

// The same for this machine now.  Takes two samples and sleeps `between` them.
void DescribeHost(std::ostream& out,
                  Duration between = std::chrono::milliseconds(200));

}  // namespace weir::host

#endif  // WEIR_HOST_SAMPLER_H_
