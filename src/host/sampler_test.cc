#include "weir/host/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "fake_machine_test.h"
#include "weir/host/clock.h"

namespace weir::host {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A container of v1 with 2 CPUs, on a node whose 8 CPUs are all busy.
void MakeContainer(FakeMachine& machine) {
  machine.Write("/proc/self/cgroup",
                "3:cpu,cpuacct:/docker/abc\n2:cpuset:/docker/abc\n");
  machine.Mount("/docker/abc", "/c/cpu", "cgroup", "rw,cpu,cpuacct");
  machine.Mount("/docker/abc", "/c/cpuset", "cgroup", "rw,cpuset");
  machine.Write("/c/cpu/cpu.cfs_quota_us", "200000\n");
  machine.Write("/c/cpu/cpu.cfs_period_us", "100000\n");
  machine.Write("/c/cpu/cpuacct.usage", "0\n");
  machine.Write("/c/cpu/cpu.stat",
                "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
  machine.Write("/c/cpuset/cpuset.effective_cpus", "0-7\n");
  machine.Online("0-7");
  machine.Allowed("0-7");
  machine.Link("/proc/self/ns/pid", "pid:[4026532577]");
  machine.Write("/proc/loadavg", "80 80 80 80/90 1\n");
  machine.Write("/proc/stat", "cpu 0 0 0 0 0 0 0 0 0 0\n");
}

std::vector<std::string> Lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(SamplerTest, InAContainerTheNodesLoadAndCpuAreNotTakenForOurs) {
  FakeMachine machine;
  MakeContainer(machine);
  Sampler sampler(nullptr, machine.root());
  (void)sampler.Sample(kStart);
  machine.Write("/proc/stat", "cpu 8000 0 0 0 0 0 0 0 0 0\n");
  machine.Write("/c/cpu/cpuacct.usage", "2000000000\n");

  // Ten seconds at 0.2 CPUs.  This test's own CPU time, spread over them, is
  // far less of the eight CPUs than a tenth.
  const HostSignals signals = sampler.Sample(kStart + 10s);

  EXPECT_DOUBLE_EQ(Of(signals.machine).busy_ratio, 1);
  EXPECT_DOUBLE_EQ(Of(signals.cpu).ratio, 0.1);
  EXPECT_EQ(signals.cpu->bound, CpuBound::kQuota);
  EXPECT_DOUBLE_EQ(signals.cpu->limit_cpus, 2);
  EXPECT_TRUE(signals.load.inert());
}

TEST(SamplerTest, OnAnEmptyMachineEverySensorSaysWhyAndNothingElseHappens) {
  FakeMachine machine;
  Sampler sampler(nullptr, machine.root());
  std::ostringstream out;
  DescribeHost(sampler.Sample(kStart), out);
  const std::vector<std::string> lines = Lines(out.str());
  EXPECT_EQ(lines.size(), 14u);
  int inert = 0;
  for (const std::string& line : lines) {
    if (line.find("inert: ") != line.npos) ++inert;
  }
  // All but the process's own time (pending) and the quota (none, as there are
  // no cgroups).
  EXPECT_EQ(inert, 12) << out.str();
}

TEST(SamplerTest, TellsEachChangeOnce) {
  FakeMachine machine;
  MakeContainer(machine);
  std::vector<std::string> told;
  Sampler sampler([&](const std::string& line) { told.push_back(line); },
                  machine.root());
  for (int i = 0; i < 5; ++i) (void)sampler.Sample(kStart + i * 100ms);
  // The load, and pressure: three of the machine, three of the cgroup.
  EXPECT_EQ(told.size(), 7u) << testing::PrintToString(told);
  told.clear();
  machine.Write("/proc/pressure/cpu",
                "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n");
  for (int i = 5; i < 10; ++i) (void)sampler.Sample(kStart + i * 100ms);
  EXPECT_THAT(told, ElementsAre("pressure_cpu is back"));
  told.clear();
  machine.Write("/proc/stat", "?\n");
  for (int i = 10; i < 15; ++i) (void)sampler.Sample(kStart + i * 100ms);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], HasSubstr("machine_cpu is inert: "));
}

TEST(SamplerTest, TheNumberThatDecidesIsShownWithItsLimit) {
  FakeMachine machine;
  MakeContainer(machine);
  Sampler sampler(nullptr, machine.root());
  (void)sampler.Sample(kStart);
  machine.Write("/c/cpu/cpuacct.usage", "10000000000\n");
  std::ostringstream out;
  DescribeHost(sampler.Sample(kStart + 10s), out);
  EXPECT_THAT(out.str(), HasSubstr("0.500: 1.000 of 2 CPUs, by quota\n"));
}

// docs/host.md promises a row for every sensor.
TEST(SamplerTest, EverySensorIsDocumented) {
  const char* source = std::getenv("WEIR_SOURCE_DIR");
  if (source == nullptr) GTEST_SKIP() << "run by ctest";
  std::ifstream in(std::string(source) + "/docs/host.md");
  const std::string docs{std::istreambuf_iterator<char>(in), {}};
  FakeMachine machine;
  std::ostringstream out;
  DescribeHost(Sampler(nullptr, machine.root()).Sample(kStart), out);
  for (const std::string& line : Lines(out.str())) {
    const std::string name = line.substr(0, line.find(' '));
    EXPECT_THAT(docs, HasSubstr("\n| `" + name + "` |"));
  }
}

TEST(SamplerTest, OnThisMachineWhatIsReadIsPlausible) {
  Sampler sampler;
  const Instant start = MonotonicClock::Now();
  (void)sampler.Sample(start);
  // Real work for 50 ms, so that a CPU has been used and ticks have passed.
  while (MonotonicClock::Now() - start < 50ms) {
  }
  const HostSignals signals = sampler.Sample(MonotonicClock::Now());
  std::ostringstream out;
  DescribeHost(signals, out);
  SCOPED_TRACE(out.str());

  ASSERT_TRUE(signals.process_cpus.ok());
  EXPECT_GT(*signals.process_cpus, 0);
  ASSERT_TRUE(signals.allowed.ok());
  EXPECT_GE(signals.allowed->affinity, 1);
  EXPECT_LE(signals.allowed->affinity, signals.allowed->cpuset);
  EXPECT_LE(signals.allowed->cpuset, signals.allowed->online);
  // One thread works; a little is allowed for what reads two clocks apart.
  EXPECT_LT(*signals.process_cpus, 1.5);
  if (signals.cpu) {
    EXPECT_GE(signals.cpu->ratio, 0);
    EXPECT_LE(signals.cpu->ratio, 1);
  }
  if (signals.machine) {
    EXPECT_GE(signals.machine->busy_ratio, 0);
    EXPECT_LE(signals.machine->busy_ratio + signals.machine->steal_ratio,
              1.001);
  }
  if (signals.cgroup.cpus) {
    EXPECT_GE(*signals.cgroup.cpus, 0);
  }
}

TEST(MonotonicClockTest, NeverStepsBack) {
  Instant before = MonotonicClock::Now();
  for (int i = 0; i < 100'000; ++i) {
    const Instant now = MonotonicClock::Now();
    ASSERT_GE(now, before);
    before = now;
  }
}

}  // namespace
}  // namespace weir::host
