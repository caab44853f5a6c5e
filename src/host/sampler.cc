#include "weir/host/sampler.h"

#include <cstdio>
#include <ostream>
#include <thread>
#include <utility>

#include "weir/host/clock.h"

namespace weir::host {
namespace {

template <typename... Args>
std::string Format(const char* format, Args... args) {
  char text[256];
  std::snprintf(text, sizeof text, format, args...);
  return text;
}

std::string Say(double cpus) { return Format("%.3f CPUs", cpus); }

std::string Say(const CpuUse& cpu) {
  return Format("%.3f: %.3f of %g CPUs, by ", cpu.ratio, cpu.used_cpus,
                cpu.limit_cpus) +
         std::string(Name(cpu.bound));
}

std::string Say(const CpuQuota& quota) {
  if (quota.smallest_cpus == kNoQuota) return "none";
  return Format("%g CPUs; nearest to its end: %.3f of %g CPUs at ",
                quota.smallest_cpus, quota.used_cpus, quota.cpus) +
         quota.directory;
}

std::string Say(const Throttling& throttling) {
  return Format("%.3f of periods, %.3f CPUs denied", throttling.periods_ratio,
                throttling.denied_cpus);
}

std::string Say(const CpuCount& count) {
  return Format("%d online, %d in the cpuset, %d by affinity", count.online,
                count.cpuset, count.affinity);
}

std::string Say(const MachineCpuUse& machine) {
  return Format("%.3f busy, %.3f stolen", machine.busy_ratio,
                machine.steal_ratio);
}

std::string Say(const Load& load) {
  return Format("%.2f in 1 min, %.2f in 5 min, %.2f in 15 min", load.one_minute,
                load.five_minutes, load.fifteen_minutes);
}

std::string Say(const PressureReading& pressure) {
  return Format("some %.4f, full %.4f in 10 s; %.3f s, %.3f s in all",
                pressure.some.ten_seconds_ratio,
                pressure.full.ten_seconds_ratio, ToSeconds(pressure.some.total),
                ToSeconds(pressure.full.total));
}

// Every sensor once, with the name that people see.
template <typename Visit>
void ForEachSensor(const HostSignals& signals, Visit visit) {
  visit("cpu", signals.cpu);
  visit("process_cpu", signals.process_cpus);
  visit("cgroup_cpu", signals.cgroup.cpus);
  visit("cgroup_quota", signals.cgroup.quota);
  visit("cgroup_throttling", signals.cgroup.throttling);
  visit("allowed_cpus", signals.allowed);
  visit("machine_cpu", signals.machine);
  visit("load", signals.load);
  visit("pressure_cpu", signals.pressure.cpu);
  visit("pressure_memory", signals.pressure.memory);
  visit("pressure_io", signals.pressure.io);
  visit("cgroup_pressure_cpu", signals.cgroup_pressure.cpu);
  visit("cgroup_pressure_memory", signals.cgroup_pressure.memory);
  visit("cgroup_pressure_io", signals.cgroup_pressure.io);
}

}  // namespace

Sampler::Sampler(Listener listener, const std::string& root)
    : listener_(std::move(listener)),
      cgroup_(root),
      allowed_(root),
      machine_(root),
      load_(root),
      cpu_pressure_(PressureKind::kCpu, root),
      memory_pressure_(PressureKind::kMemory, root),
      io_pressure_(PressureKind::kIo, root),
      cgroup_pressure_(root) {}

HostSignals Sampler::Sample(Instant now) {
  HostSignals signals;
  signals.at = now;
  signals.process_cpus = process_.Read(now);
  signals.cgroup = cgroup_.Read(now);
  signals.allowed = allowed_.Read(now);
  signals.cpu =
      ComputeCpuUse(signals.process_cpus, signals.cgroup, signals.allowed);
  signals.machine = machine_.Read();
  signals.load = load_.Read();
  signals.pressure = {cpu_pressure_.Read(), memory_pressure_.Read(),
                      io_pressure_.Read()};
  signals.cgroup_pressure = cgroup_pressure_.Read(now);
  if (listener_) Tell(signals);
  return signals;
}

void Sampler::Tell(const HostSignals& signals) {
  ForEachSensor(signals, [&](const char* name, const auto& reading) {
    const auto told = inert_.find(name);
    if (reading.inert()) {
      if (told != inert_.end() && told->second == reading.why()) return;
      inert_[name] = reading.why();
      listener_(std::string(name) + " is inert: " + reading.why());
    } else if (reading.ok() && told != inert_.end()) {
      inert_.erase(told);
      listener_(std::string(name) + " is back");
    }
  });
}

void DescribeHost(const HostSignals& signals, std::ostream& out) {
  ForEachSensor(signals, [&](const char* name, const auto& reading) {
    out << Format("%-23s", name);
    if (reading.ok()) {
      out << Say(*reading);
    } else {
      out << (reading.inert() ? "inert: " : "no reading yet: ")
          << reading.why();
    }
    out << '\n';
  });
}

void DescribeHost(std::ostream& out, Duration between) {
  Sampler sampler;
  (void)sampler.Sample(MonotonicClock::Now());
  std::this_thread::sleep_for(between);
  DescribeHost(sampler.Sample(MonotonicClock::Now()), out);
}

}  // namespace weir::host
