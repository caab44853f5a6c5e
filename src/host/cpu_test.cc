#include "weir/host/cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fake_machine_test.h"
#include "growth.h"
#include "text.h"

namespace weir::host {
namespace {

using testing::HasSubstr;

TEST(GrowthTest, EveryOddStepGivesNoReadingAndTheNextOneIsRight) {
  Growth growth;
  EXPECT_FALSE(growth.Step(kStart, 5s).ok());
  EXPECT_FALSE(growth.Step(kStart, 6s).ok());  // No time has passed.
  EXPECT_DOUBLE_EQ(*growth.Step(kStart + 1s, 7s), 2);
  EXPECT_FALSE(growth.Step(kStart + 2s, 1s).ok());  // The total went back.
  EXPECT_DOUBLE_EQ(*growth.Step(kStart + 3s, 2s), 1);
  EXPECT_FALSE(growth.Step(kStart - 1h, 3s).ok());  // The clock went back.
  EXPECT_DOUBLE_EQ(*growth.Step(kStart - 1h + 1s, 4s), 1);
  EXPECT_DOUBLE_EQ(*growth.Step(kStart - 1h + 1s + 1h, 4s), 0);
}

TEST(GrowthTest, AnyStartOfTheClockWorksEvenWhereItWraps) {
  const Instant starts[] = {Instant(-Duration(int64_t{1} << 62)),
                            Instant::min(), Instant(-500ms),
                            Instant::max() - 500ms};
  for (const Instant start : starts) {
    const Instant later(Duration(static_cast<int64_t>(
        static_cast<uint64_t>(start.time_since_epoch().count()) +
        1'000'000'000u)));
    Growth growth;
    EXPECT_FALSE(growth.Step(start, 1s).ok());
    EXPECT_DOUBLE_EQ(*growth.Step(later, 1s + 250ms), 0.25);
  }
}

Duration g_process_time;

TEST(ProcessCpuTest, IsTheMeanSinceTheReadingBefore) {
  ProcessCpu process([] { return std::optional(g_process_time); });
  g_process_time = 10s;
  EXPECT_EQ(process.Read(kStart).why(), "needs two readings");
  g_process_time += 150ms;
  EXPECT_DOUBLE_EQ(Of(process.Read(kStart + 100ms)), 1.5);
}

TEST(ProcessCpuTest, WithoutACounterItIsInert) {
  ProcessCpu process([] { return std::optional<Duration>(); });
  EXPECT_TRUE(process.Read(kStart).inert());
}

// Smoothing is the caller's: a square wave comes out as a square wave, so a
// caller who reads each second knows what it has to calm down.
TEST(ProcessCpuTest, ASquareWaveIsNotSmoothed) {
  ProcessCpu process([] { return std::optional(g_process_time); });
  (void)process.Read(kStart);
  for (int second = 1; second <= 10; ++second) {
    const double expected = second % 2;
    g_process_time += second % 2 * 1s;
    EXPECT_DOUBLE_EQ(Of(process.Read(kStart + second * 1s)), expected);
  }
}

TEST(MachineCpuTest, BusyAndStealAreShares) {
  FakeMachine machine;
  machine.Write("/proc/stat", "cpu  100 10 20 500 50 3 7 10 40 0\ncpu0 1\n");
  MachineCpu cpu(machine.root());
  EXPECT_EQ(cpu.Read().why(), "needs two readings");
  // user +20, of it guest +10; system +10; irq +5, softirq +5; idle +40,
  // iowait +10; steal +10.
  machine.Write("/proc/stat", "cpu  120 10 30 540 60 8 12 20 50 0\ncpu0 1\n");

  const auto use = cpu.Read();

  EXPECT_DOUBLE_EQ(Of(use).busy_ratio, 0.4);
  EXPECT_DOUBLE_EQ(use->steal_ratio, 0.1);
}

TEST(MachineCpuTest, NoTickAndStepsBackGiveNoReading) {
  FakeMachine machine;
  MachineCpu cpu(machine.root());
  machine.Write("/proc/stat", "cpu  100 0 0 100 50 0 0 0 0 0\n");
  (void)cpu.Read();
  EXPECT_EQ(cpu.Read().why(), "no tick has passed since the last one");
  // iowait alone may step back, as the kernel's documentation warns.
  machine.Write("/proc/stat", "cpu  110 0 0 100 40 0 0 0 0 0\n");
  EXPECT_DOUBLE_EQ(Of(cpu.Read()).busy_ratio, 1);
  machine.Write("/proc/stat", "cpu  10 0 0 200 40 0 0 0 0 0\n");
  EXPECT_EQ(cpu.Read().why(), "the counter went back");
  machine.Write("/proc/stat", "cpu  20 0 0 210 40 0 0 0 0 0\n");
  EXPECT_DOUBLE_EQ(Of(cpu.Read()).busy_ratio, 0.5);
}

TEST(MachineCpuTest, GarbageAndAbsenceAreInert) {
  FakeMachine machine;
  MachineCpu cpu(machine.root());
  EXPECT_THAT(cpu.Read().why(), HasSubstr("/proc/stat: no such file"));
  for (const char* text :
       {"", "cpu\n", "cpu 1 2 3\n", "cpu0 1 2 3 4 5 6 7 8\n",
        "cpu 1 2 3 4 5 6 7 -8\n", "cpu 1 2 3 4 5 6 7 18446744073709551615\n"}) {
    machine.Write("/proc/stat", text);
    EXPECT_TRUE(cpu.Read().inert()) << text;
  }
}

std::string Counts(const Reading<CpuCount>& count) {
  if (!count) return count.why();
  return std::to_string(count->online) + " " + std::to_string(count->cpuset) +
         " " + std::to_string(count->affinity);
}

TEST(AllowedCpusTest, TakesTheLeastOfOnlineCpusetAndAffinity) {
  FakeMachine machine;
  machine.Online("0-7");
  // A virtual machine allows all CPUs that it could ever have.
  machine.Allowed("0-127");
  EXPECT_EQ(Counts(AllowedCpus(machine.root()).Read(kStart)), "8 8 8");
  machine.Write("/proc/self/cgroup", "0::/a/b\n");
  machine.Mount("/", "/sys/fs/cgroup", "cgroup2", "rw");
  machine.Write("/sys/fs/cgroup/a/cpuset.cpus.effective", "0-2,7\n");
  EXPECT_EQ(Counts(AllowedCpus(machine.root()).Read(kStart)), "8 4 4");
  machine.Allowed("7");
  EXPECT_EQ(Counts(AllowedCpus(machine.root()).Read(kStart)), "8 4 1");
}

TEST(AllowedCpusTest, ReadsTheCpusetOfV1) {
  FakeMachine machine;
  machine.Online("0-3");
  machine.Allowed("0-3");
  machine.Write("/proc/self/cgroup", "5:cpuset:/docker/x\n0::/\n");
  machine.Mount("/docker/x", "/sys/fs/cgroup/cpuset", "cgroup", "rw,cpuset");
  machine.Write("/sys/fs/cgroup/cpuset/cpuset.effective_cpus", "1-2\n");
  EXPECT_EQ(Counts(AllowedCpus(machine.root()).Read(kStart)), "4 2 2");
}

// One thread on each CPU, the first one included, is a program that may use
// all of them, not one.
TEST(AllowedCpusTest, PinnedThreadsCountTogether) {
  FakeMachine machine;
  machine.Online("0-7");
  machine.Allowed("0");
  for (int thread = 0; thread < 3; ++thread) {
    machine.Allowed(std::to_string(thread), "/task/" + std::to_string(thread));
  }
  EXPECT_EQ(Counts(AllowedCpus(machine.root()).Read(kStart)), "8 8 3");
}

TEST(AllowedCpusTest, WithTooManyThreadsAffinityIsNoBound) {
  FakeMachine machine;
  machine.Online("0-7");
  machine.Allowed("0");
  for (int thread = 0; thread <= AllowedCpus::kMaxThreads; ++thread) {
    machine.Allowed("0", "/task/" + std::to_string(100 + thread));
  }
  EXPECT_EQ(Counts(AllowedCpus(machine.root()).Read(kStart)), "8 8 8");
}

TEST(AllowedCpusTest, LooksAgainAfterASecondNotBefore) {
  FakeMachine machine;
  machine.Online("0-7");
  AllowedCpus allowed(machine.root());
  EXPECT_EQ(Of(allowed.Read(kStart)).online, 8);
  machine.Online("0-3");
  EXPECT_EQ(Of(allowed.Read(kStart + 999ms)).online, 8);
  EXPECT_EQ(Of(allowed.Read(kStart + 1s)).online, 4);
  machine.Online("0");
  EXPECT_EQ(Of(allowed.Read(kStart - 1h)).online, 1);
}

TEST(AllowedCpusTest, GarbageAndAbsenceAreInert) {
  FakeMachine machine;
  EXPECT_THAT(Counts(AllowedCpus(machine.root()).Read(kStart)),
              HasSubstr("/cpu/online: no such file"));
  machine.Online("0-");
  EXPECT_THAT(Counts(AllowedCpus(machine.root()).Read(kStart)),
              HasSubstr("not a list of CPUs"));
}

TEST(TextTest, CpuListsParseExactlyOrNotAtAll) {
  EXPECT_EQ(CountCpus("0"), 1);
  EXPECT_EQ(CountCpus("0-3"), 4);
  EXPECT_EQ(CountCpus("0-2,7,9-10"), 6);
  for (const char* text : {"", ",", "0,", ",0", "3-1", "0-", "-1", "a", "0--1",
                           "0 1", "1048576", "0-99999999999999999999"}) {
    EXPECT_EQ(CountCpus(text), std::nullopt) << text;
  }
}

CgroupCpuReadings CgroupOf(Reading<double> cpus, CpuQuota quota = {}) {
  return {std::move(cpus), std::move(quota),
          Reading<Throttling>::Inert("not read")};
}

TEST(CpuUseTest, IsTheFullestOfThreeBounds) {
  const CpuCount eight{8, 8, 8};
  // One CPU of a quota of four, on a machine of eight.
  CpuUse use = *ComputeCpuUse(1., CgroupOf(1., {4, 4, 1, "/q"}), eight);
  EXPECT_DOUBLE_EQ(use.ratio, 0.25);
  EXPECT_EQ(use.bound, CpuBound::kQuota);
  // Four workers of one container without a quota: together they fill it.
  use = *ComputeCpuUse(1., CgroupOf(4.), CpuCount{8, 4, 4});
  EXPECT_DOUBLE_EQ(use.ratio, 1);
  EXPECT_EQ(use.bound, CpuBound::kCpuset);
  // A worker that is pinned to one CPU has no more, however idle the rest is.
  use = *ComputeCpuUse(.9, CgroupOf(1., {4, 4, 1, "/q"}), CpuCount{8, 8, 1});
  EXPECT_DOUBLE_EQ(use.ratio, .9);
  EXPECT_EQ(use.bound, CpuBound::kAffinity);
}

TEST(CpuUseTest, NeverLeavesZeroToOne) {
  const CpuUse use =
      *ComputeCpuUse(9., CgroupOf(9., {2, 2, 9, "/q"}), CpuCount{8, 8, 8});
  EXPECT_EQ(use.ratio, 1);
  EXPECT_EQ(use.used_cpus, 9);
}

TEST(CpuUseTest, WithoutCgroupsItIsTheProcessOfTheMachine) {
  const auto use = ComputeCpuUse(
      2., CgroupOf(Reading<double>::Inert("no cgroups")), CpuCount{8, 8, 8});
  EXPECT_DOUBLE_EQ(Of(use).ratio, 0.25);
}

TEST(CpuUseTest, AnUnknownBoundGivesNoRatio) {
  CgroupCpuReadings hidden = CgroupOf(1.);
  hidden.quota = Reading<CpuQuota>::Inert("hidden");
  EXPECT_EQ(ComputeCpuUse(1., hidden, CpuCount{8, 8, 8}).why(), "hidden");
  EXPECT_TRUE(
      ComputeCpuUse(1., CgroupOf(1.), Reading<CpuCount>::Inert("x")).inert());
  const auto pending = ComputeCpuUse(Reading<double>::Pending("needs two"),
                                     CgroupOf(1.), CpuCount{8, 8, 8});
  EXPECT_FALSE(pending.ok());
  EXPECT_FALSE(pending.inert());
}

}  // namespace
}  // namespace weir::host
