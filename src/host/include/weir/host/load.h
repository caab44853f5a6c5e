// How crowded the machine is: load average and pressure stall information.

#ifndef WEIR_HOST_LOAD_H_
#define WEIR_HOST_LOAD_H_

#include <memory>
#include <optional>
#include <string>

#include "weir/host/reading.h"
#include "weir/time.h"

namespace weir::host {

// Threads that run, want to run or wait for a disk, averaged by the kernel over
// about one, five and fifteen minutes.  Slow: after a step from idle to n
// runnable threads it takes 42 s until the first passes n / 2.
struct Load {
  double one_minute = 0;
  double five_minutes = 0;
  double fifteen_minutes = 0;
};

// Inert in a container, where it is the node's: neighbours we know nothing of
// would decide what is shed.  A container is taken to be a process whose PID or
// cgroup namespace is not the first one of its kernel (a virtual machine has
// its own kernel, so it is none), unless something like lxcfs has mounted a
// file of the container's own over /proc/loadavg.  When the namespace cannot be
// told it is inert too.
class LoadAverage {
 public:
  explicit LoadAverage(std::string root = "");
  ~LoadAverage();
  LoadAverage(LoadAverage&&) noexcept;
  LoadAverage& operator=(LoadAverage&&) noexcept;

  Reading<Load> Read();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

enum class PressureKind : uint8_t { kCpu, kMemory, kIo };
std::string_view Name(PressureKind kind);  // "cpu", "memory", "io"

// Time in which somebody waited for a resource.
struct Stall {
  double ten_seconds_ratio = 0;  // The kernel's mean over about 10 s, [0, 1].
  Duration total{};              // Since it began to count; to the microsecond.
};

struct PressureReading {
  Stall some;  // At least one thread waited.
  Stall full;  // All that were not idle waited: nothing was done.  Zero where
               // the kernel does not tell (CPU, before Linux 5.13).
};

// Source: Linux Documentation/accounting/psi.rst.  For a faster signal than
// ten seconds, take the difference of two totals by the time between them.
class Pressure {
 public:
  // Of the machine.
  explicit Pressure(PressureKind kind, const std::string& root = "");
  ~Pressure();
  Pressure(Pressure&&) noexcept;
  Pressure& operator=(Pressure&&) noexcept;

  Reading<PressureReading> Read();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct Pressures {
  Reading<PressureReading> cpu, memory, io;
};

// Of the own cgroup.  Only v2 has it, a hybrid machine in its v2 part.
class CgroupPressure {
 public:
  explicit CgroupPressure(std::string root = "");
  ~CgroupPressure();
  CgroupPressure(CgroupPressure&&) noexcept;
  CgroupPressure& operator=(CgroupPressure&&) noexcept;

  Pressures Read(Instant now);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::host

#endif  // WEIR_HOST_LOAD_H_
