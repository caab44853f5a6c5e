#include "weir/host/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "fake_machine_test.h"
#include "own_cgroup.h"

namespace weir::host {
namespace {

using testing::HasSubstr;

constexpr char kTop[] = "/sys/fs/cgroup";

// A container of cgroup v2 that sees itself as the root.
void MakePrivateV2(FakeMachine& machine, const std::string& cpu_max) {
  machine.Write("/proc/self/cgroup", "0::/\n");
  machine.Mount("/", kTop, "cgroup2", "rw,nsdelegate");
  machine.Stat(kTop, 10s);
  if (!cpu_max.empty()) {
    machine.Write(std::string(kTop) + "/cpu.max", cpu_max);
  }
}

// Controllers of v1, each in its mount, the own cgroup at `path` in all.
void MakeV1(FakeMachine& machine, const std::string& path,
            const std::string& mount_root) {
  machine.Write("/proc/self/cgroup", "4:memory:" + path + "\n3:cpu,cpuacct:" +
                                         path + "\n1:name=systemd:/x\n");
  machine.Mount(mount_root, "/sys/fs/cgroup/cpu,cpuacct", "cgroup",
                "rw,cpu,cpuacct");
  machine.Mount(mount_root, "/sys/fs/cgroup/memory", "cgroup", "rw,memory");
}

void WriteV1(FakeMachine& machine, const std::string& directory,
             const std::string& quota, Duration used, int periods = 0,
             int throttled = 0, Duration denied = {}) {
  machine.Write(directory + "/cpu.cfs_quota_us", quota + "\n");
  machine.Write(directory + "/cpu.cfs_period_us", "100000\n");
  machine.Write(directory + "/cpuacct.usage",
                std::to_string(used.count()) + "\n");
  machine.Write(directory + "/cpu.stat",
                "nr_periods " + std::to_string(periods) + "\nnr_throttled " +
                    std::to_string(throttled) + "\nthrottled_time " +
                    std::to_string(denied.count()) + "\n");
}

TEST(CgroupCpuTest, FirstReadingIsPendingNotInert) {
  FakeMachine machine;
  MakePrivateV2(machine, "400000 100000\n");
  CgroupCpu cgroup(machine.root());

  const auto readings = cgroup.Read(kStart);

  EXPECT_FALSE(readings.cpus.ok());
  EXPECT_FALSE(readings.cpus.inert());
  EXPECT_EQ(readings.cpus.why(), "needs two readings");
  EXPECT_FALSE(readings.quota.inert());
}

TEST(CgroupCpuTest, OneCpuOfAFourCpuQuotaIsAQuarterOfIt) {
  FakeMachine machine;
  MakePrivateV2(machine, "400000 100000\n");
  CgroupCpu cgroup(machine.root());
  (void)cgroup.Read(kStart);
  machine.Stat(kTop, 10s + 100ms, 1, 0);

  const auto readings = cgroup.Read(kStart + 100ms);

  ASSERT_TRUE(readings.cpus.ok()) << readings.cpus.why();
  EXPECT_DOUBLE_EQ(*readings.cpus, 1);
  ASSERT_TRUE(readings.quota.ok()) << readings.quota.why();
  EXPECT_DOUBLE_EQ(readings.quota->smallest_cpus, 4);
  EXPECT_DOUBLE_EQ(readings.quota->used_cpus / readings.quota->cpus, 0.25);
}

// The container's share decides, whatever the machine around it does.
TEST(CgroupCpuTest, V1ContainerInItsHostsNamespaceReadsItsOwnMount) {
  FakeMachine machine;
  MakeV1(machine, "/docker/abc", "/docker/abc");
  WriteV1(machine, "/sys/fs/cgroup/cpu,cpuacct", "150000", 5s, 100, 40, 1s);
  CgroupCpu cgroup(machine.root());
  (void)cgroup.Read(kStart);
  WriteV1(machine, "/sys/fs/cgroup/cpu,cpuacct", "150000", 5s + 750ms, 110, 45,
          1s + 200ms);

  const auto readings = cgroup.Read(kStart + 1s);

  EXPECT_DOUBLE_EQ(Of(readings.cpus), 0.75);
  EXPECT_DOUBLE_EQ(Of(readings.quota).cpus, 1.5);
  EXPECT_DOUBLE_EQ(Of(readings.throttling).periods_ratio, 0.5);
  EXPECT_DOUBLE_EQ(readings.throttling->denied_cpus, 0.2);
}

TEST(CgroupCpuTest, V1OnTheHostReadsTheLeafBelowTheMount) {
  FakeMachine machine;
  MakeV1(machine, "/a/b", "/");
  WriteV1(machine, "/sys/fs/cgroup/cpu,cpuacct", "-1", 500s);
  WriteV1(machine, "/sys/fs/cgroup/cpu,cpuacct/a", "200000", 50s);
  WriteV1(machine, "/sys/fs/cgroup/cpu,cpuacct/a/b", "-1", 5s);
  CgroupCpu cgroup(machine.root());
  (void)cgroup.Read(kStart);
  WriteV1(machine, "/sys/fs/cgroup/cpu,cpuacct/a", "200000", 51s);
  WriteV1(machine, "/sys/fs/cgroup/cpu,cpuacct/a/b", "-1", 5s + 500ms);

  const auto readings = cgroup.Read(kStart + 1s);

  EXPECT_DOUBLE_EQ(Of(readings.cpus), 0.5);
  EXPECT_DOUBLE_EQ(Of(readings.quota).cpus, 2);
  // What the siblings use of the shared quota is gone as well.
  EXPECT_DOUBLE_EQ(readings.quota->used_cpus, 1);
  EXPECT_THAT(readings.quota->directory, HasSubstr("cpu,cpuacct/a"));
}

TEST(CgroupCpuTest, V1WithCpuAndCpuacctInMountsOfTheirOwn) {
  FakeMachine machine;
  machine.Write("/proc/self/cgroup", "2:cpuacct:/x\n1:cpu:/\n0::/\n");
  machine.Mount("/", "/sys/fs/cgroup/cpu", "cgroup", "rw,cpu");
  machine.Mount("/", "/sys/fs/cgroup/cpuacct", "cgroup", "rw,cpuacct");
  machine.Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000");
  machine.Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  machine.Write("/sys/fs/cgroup/cpuacct/x/cpuacct.usage", "0");
  CgroupCpu cgroup(machine.root());
  (void)cgroup.Read(kStart);
  machine.Write("/sys/fs/cgroup/cpuacct/x/cpuacct.usage", "250000000");

  const auto readings = cgroup.Read(kStart + 1s);

  EXPECT_DOUBLE_EQ(Of(readings.cpus), 0.25);
  EXPECT_DOUBLE_EQ(Of(readings.quota).cpus, 0.5);
}

// systemd's hybrid layout: v2 is there and has our processes, but the cpu
// controller, and so the quota, is on v1.
TEST(CgroupCpuTest, HybridTakesCpuFromV1) {
  FakeMachine machine;
  machine.Write("/proc/self/cgroup",
                "3:cpu,cpuacct:/s\n1:name=systemd:/s\n0::/s\n");
  machine.Mount("/", "/sys/fs/cgroup/unified", "cgroup2", "rw");
  machine.Mount("/", "/sys/fs/cgroup/cpu,cpuacct", "cgroup", "rw,cpu,cpuacct");
  WriteV1(machine, "/sys/fs/cgroup/cpu,cpuacct/s", "100000", 1s);
  machine.Stat("/sys/fs/cgroup/unified/s", 77s);
  CgroupCpu cgroup(machine.root());
  (void)cgroup.Read(kStart);
  WriteV1(machine, "/sys/fs/cgroup/cpu,cpuacct/s", "100000", 1s + 600ms);

  const auto readings = cgroup.Read(kStart + 1s);

  EXPECT_DOUBLE_EQ(Of(readings.cpus), 0.6);
  EXPECT_DOUBLE_EQ(Of(readings.quota).cpus, 1);
}

TEST(CgroupCpuTest, TheSmallestQuotaOfNestedSlicesCounts) {
  FakeMachine machine;
  machine.Write("/proc/self/cgroup", "0::/k.slice/pod.slice/c.scope\n");
  machine.Mount("/", kTop, "cgroup2", "rw");
  const std::string slice = std::string(kTop) + "/k.slice";
  const auto use = [&](Duration used) {
    machine.Stat(kTop, 10 * used);
    machine.Stat(slice, used);
    machine.Stat(slice + "/pod.slice", used, 10, used > 1s ? 10 : 5);
    machine.Stat(slice + "/pod.slice/c.scope", used);
  };
  use(1s);
  machine.Write(slice + "/cpu.max", "800000 100000\n");
  machine.Write(slice + "/pod.slice/cpu.max", "25000 50000\n");
  machine.Write(slice + "/pod.slice/c.scope/cpu.max", "max 100000\n");
  CgroupCpu cgroup(machine.root());
  (void)cgroup.Read(kStart);
  use(1s + 400ms);

  const auto readings = cgroup.Read(kStart + 1s);

  EXPECT_DOUBLE_EQ(Of(readings.cpus), 0.4);
  EXPECT_DOUBLE_EQ(Of(readings.quota).smallest_cpus, 0.5);
  EXPECT_DOUBLE_EQ(readings.quota->cpus, 0.5);
  EXPECT_THAT(readings.quota->directory, HasSubstr("/pod.slice"));
  EXPECT_TRUE(readings.throttling.ok()) << readings.throttling.why();
}

TEST(CgroupCpuTest, AFullSharedSliceCountsMoreThanAnEmptySmallQuota) {
  FakeMachine machine;
  machine.Write("/proc/self/cgroup", "0::/s/a\n");
  machine.Mount("/", kTop, "cgroup2", "rw");
  machine.Write("/sys/fs/cgroup/s/cpu.max", "400000 100000\n");
  machine.Write("/sys/fs/cgroup/s/a/cpu.max", "200000 100000\n");
  machine.Stat("/sys/fs/cgroup/s", 0s);
  machine.Stat("/sys/fs/cgroup/s/a", 0s);
  CgroupCpu cgroup(machine.root());
  (void)cgroup.Read(kStart);
  machine.Stat("/sys/fs/cgroup/s", 4s);
  machine.Stat("/sys/fs/cgroup/s/a", 200ms);

  const auto quota = cgroup.Read(kStart + 1s).quota;

  EXPECT_DOUBLE_EQ(Of(quota).smallest_cpus, 2);
  EXPECT_DOUBLE_EQ(quota->cpus, 4);
  EXPECT_DOUBLE_EQ(quota->used_cpus, 4);
}

TEST(CgroupCpuTest, MaxAndNoFileMeanNoQuota) {
  for (const char* cpu_max : {"max 100000\n", ""}) {
    FakeMachine machine;
    MakePrivateV2(machine, cpu_max);
    CgroupCpu cgroup(machine.root());
    (void)cgroup.Read(kStart);
    machine.Stat(kTop, 11s);

    const auto readings = cgroup.Read(kStart + 1s);

    EXPECT_DOUBLE_EQ(Of(readings.cpus), 1);
    EXPECT_EQ(Of(readings.quota).smallest_cpus, kNoQuota);
    EXPECT_TRUE(readings.throttling.inert());
  }
}

TEST(CgroupCpuTest, AQuotaChangedWhileRunningCountsAtOnce) {
  FakeMachine machine;
  MakePrivateV2(machine, "max 100000\n");
  CgroupCpu cgroup(machine.root());
  (void)cgroup.Read(kStart);
  machine.Stat(kTop, 10s + 100ms);
  machine.Write("/sys/fs/cgroup/cpu.max", "200000 100000\n");

  const auto quota = cgroup.Read(kStart + 100ms).quota;

  EXPECT_DOUBLE_EQ(Of(quota).cpus, 2);
  EXPECT_DOUBLE_EQ(quota->used_cpus, 1);
}

TEST(CgroupCpuTest, AProcessThatIsMovedIsFollowedWithinASecond) {
  FakeMachine machine;
  machine.Write("/proc/self/cgroup", "0::/old\n");
  machine.Mount("/", kTop, "cgroup2", "rw");
  machine.Stat("/sys/fs/cgroup/old", 5s);
  machine.Stat("/sys/fs/cgroup/new", 50s);
  machine.Write("/sys/fs/cgroup/new/cpu.max", "100000 100000\n");
  CgroupCpu cgroup(machine.root());
  (void)cgroup.Read(kStart);
  machine.Write("/proc/self/cgroup", "0::/new\n");

  (void)cgroup.Read(kStart + 1s);
  machine.Stat("/sys/fs/cgroup/new", 50s + 500ms);
  const auto readings = cgroup.Read(kStart + 2s);

  EXPECT_DOUBLE_EQ(Of(readings.cpus), 0.5);
  EXPECT_DOUBLE_EQ(Of(readings.quota).cpus, 1);
}

TEST(CgroupCpuTest, WithoutCgroupsItIsInertAndThereIsNoQuota) {
  FakeMachine machine;
  const auto readings = CgroupCpu(machine.root()).Read(kStart);

  EXPECT_TRUE(readings.cpus.inert());
  EXPECT_EQ(Of(readings.quota).smallest_cpus, kNoQuota);
}

// A quota may exist where we cannot see it, so "none" would be a guess.
TEST(CgroupCpuTest, ATreeMountedFromOutsideTheNamespaceIsInert) {
  FakeMachine machine;
  machine.Write("/proc/self/cgroup", "0::/\n");
  machine.Mount("/../../..", kTop, "cgroup2", "rw");
  machine.Stat(kTop, 5s);
  const auto readings = CgroupCpu(machine.root()).Read(kStart);

  EXPECT_TRUE(readings.cpus.inert());
  EXPECT_THAT(readings.cpus.why(), HasSubstr("lies outside"));
  EXPECT_TRUE(readings.quota.inert());
}

TEST(CgroupCpuTest, AnUnmountedHierarchyIsInert) {
  FakeMachine machine;
  machine.Write("/proc/self/cgroup", "0::/a\n");
  machine.Write("/proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/vda rw\n");
  const auto readings = CgroupCpu(machine.root()).Read(kStart);

  EXPECT_EQ(readings.cpus.why(), "the cgroup v2 hierarchy is not mounted here");
  EXPECT_TRUE(readings.quota.inert());
}

TEST(CgroupCpuTest, AMissingLeafIsInertAndSaysWhichFile) {
  FakeMachine machine;
  machine.Write("/proc/self/cgroup", "0::/gone\n");
  machine.Mount("/", kTop, "cgroup2", "rw");
  const auto readings = CgroupCpu(machine.root()).Read(kStart);

  EXPECT_TRUE(readings.cpus.inert());
  EXPECT_THAT(readings.cpus.why(),
              HasSubstr("/gone/cpu.stat: no such file or directory"));
  // A cgroup that is not there is not one without a quota.
  EXPECT_TRUE(readings.quota.inert());
}

TEST(CgroupCpuTest, WhatComesLateIsReadThen) {
  FakeMachine machine;
  MakePrivateV2(machine, "");
  machine.Remove("/sys/fs/cgroup/cpu.stat");
  CgroupCpu cgroup(machine.root());
  ASSERT_TRUE(cgroup.Read(kStart).cpus.inert());
  machine.Stat(kTop, 1s);
  EXPECT_FALSE(cgroup.Read(kStart + 1s).cpus.inert());
  machine.Stat(kTop, 3s);
  EXPECT_DOUBLE_EQ(Of(cgroup.Read(kStart + 2s).cpus), 2);
}

TEST(CgroupCpuTest, GarbageInUsageIsInertAndTheNextGoodOneStartsAnew) {
  FakeMachine machine;
  MakePrivateV2(machine, "");
  CgroupCpu cgroup(machine.root());
  (void)cgroup.Read(kStart);
  for (const char* garbage :
       {"", "usage_usec\n", "usage_usec -5\n", "usage_usec 1e9\n",
        "usage_usec 99999999999999999999\n", "usage_usec 9223372036854775807\n",
        "\0\xff\n", "user_usec 7\n"}) {
    machine.Write("/sys/fs/cgroup/cpu.stat", garbage);
    EXPECT_TRUE(cgroup.Read(kStart + 1s).cpus.inert()) << garbage;
  }
  machine.Stat(kTop, 20s);
  EXPECT_EQ(cgroup.Read(kStart + 2s).cpus.why(), "needs two readings");
}

TEST(CgroupCpuTest, GarbageInAQuotaMakesOnlyTheQuotaInert) {
  FakeMachine machine;
  MakePrivateV2(machine, "lots 100000\n");
  CgroupCpu cgroup(machine.root());
  (void)cgroup.Read(kStart);
  machine.Stat(kTop, 11s);

  const auto readings = cgroup.Read(kStart + 1s);

  EXPECT_TRUE(readings.cpus.ok());
  EXPECT_TRUE(readings.quota.inert());
  EXPECT_THAT(readings.quota.why(),
              HasSubstr("/cpu.max: not a quota and a period"));
}

TEST(CgroupCpuTest, PermissionDeniedIsInertAndSaysSo) {
  FakeMachine machine;
  MakePrivateV2(machine, "400000 100000\n");
  machine.Forbid("/sys/fs/cgroup/cpu.max");
  machine.Forbid("/sys/fs/cgroup/cpu.stat");
  const AsNobody nobody;
  const auto readings = CgroupCpu(machine.root()).Read(kStart);

  EXPECT_THAT(readings.cpus.why(), HasSubstr("/cpu.stat: permission denied"));
  EXPECT_THAT(readings.quota.why(), HasSubstr("/cpu.max: permission denied"));
}

TEST(CgroupCpuTest, AMembershipThatMayNotBeReadIsNotTakenForNone) {
  FakeMachine machine;
  MakePrivateV2(machine, "400000 100000\n");
  machine.Forbid("/proc/self/cgroup");
  const AsNobody nobody;
  EXPECT_TRUE(CgroupCpu(machine.root()).Read(kStart).quota.inert());
}

TEST(CgroupCpuTest, ACounterThatGoesBackGivesNoReadingAndNoNegativeOne) {
  FakeMachine machine;
  MakePrivateV2(machine, "100000 100000\n");
  CgroupCpu cgroup(machine.root());
  (void)cgroup.Read(kStart);
  machine.Stat(kTop, 1s);
  const auto back = cgroup.Read(kStart + 1s);
  EXPECT_EQ(back.cpus.why(), "the counter went back");
  EXPECT_FALSE(back.quota.ok());
  EXPECT_FALSE(back.quota.inert());
  machine.Stat(kTop, 1s + 500ms);
  EXPECT_DOUBLE_EQ(Of(cgroup.Read(kStart + 2s).cpus), 0.5);
}

TEST(CgroupCpuTest, ThrottlingCountersThatGoBackGiveNoReading) {
  FakeMachine machine;
  MakePrivateV2(machine, "100000 100000\n");
  CgroupCpu cgroup(machine.root());
  machine.Stat(kTop, 1s, 100, 50, 3s);
  (void)cgroup.Read(kStart);
  machine.Stat(kTop, 2s, 10, 5, 3s);
  EXPECT_FALSE(cgroup.Read(kStart + 1s).throttling.ok());
  machine.Stat(kTop, 3s, 20, 10, 3s);
  EXPECT_DOUBLE_EQ(Of(cgroup.Read(kStart + 2s).throttling).periods_ratio, 0.5);
}

TEST(CgroupCpuTest, QuotasParseExactlyOrNotAtAll) {
  EXPECT_DOUBLE_EQ(*ParseCpuMax("400000 100000\n"), 4);
  EXPECT_DOUBLE_EQ(*ParseCpuMax("1000 100000\n"), 0.01);
  EXPECT_DOUBLE_EQ(*ParseCpuMax("250000 100000"), 2.5);
  EXPECT_EQ(*ParseCpuMax("max 100000\n"), kNoQuota);
  for (const char* text :
       {"", "\n", "max", "400000", "400000 0\n", "0 100000\n", "-1 100000\n",
        "max max\n", "1 2 3\n", "4e5 100000\n", "nan 100000\n",
        "18446744073709551616 1\n"}) {
    EXPECT_TRUE(ParseCpuMax(text).inert()) << text;
  }
  EXPECT_DOUBLE_EQ(*ParseCfsQuota("150000\n", "100000\n"), 1.5);
  EXPECT_EQ(*ParseCfsQuota("-1\n", "100000\n"), kNoQuota);
  EXPECT_TRUE(ParseCfsQuota("", "100000\n").inert());
  EXPECT_TRUE(ParseCfsQuota("-2\n", "100000\n").inert());
  EXPECT_TRUE(ParseCfsQuota("150000\n", "").inert());
}

std::string Find(std::string_view controller, std::string_view cgroup,
                 std::string_view mountinfo) {
  const CgroupPlace place = FindCgroup(controller, cgroup, mountinfo, "");
  if (!place) return "error: " + place.error().message;
  if (!*place) return "none";
  return "v" + std::to_string((*place)->version) + " " + (*place)->top + " + " +
         (*place)->relative;
}

TEST(OwnCgroupTest, FindsTheDirectoryInEveryKindOfMount) {
  const std::string v2 = "9 8 0:1 / /c rw - cgroup2 x rw\n";
  EXPECT_EQ(Find("cpu", "0::/\n", v2), "v2 /c + ");
  EXPECT_EQ(Find("cpu", "0::/a/b\n", v2), "v2 /c + /a/b");
  EXPECT_EQ(Find("cpu", "0::/odd:name\n", v2), "v2 /c + /odd:name");
  const std::string bound = "9 8 0:1 /a /c rw shared:1 - cgroup2 x rw\n";
  EXPECT_EQ(Find("cpu", "0::/a\n", bound), "v2 /c + ");
  EXPECT_EQ(Find("cpu", "0::/a/b\n", bound), "v2 /c + /b");
  // /ab does not lie in /a.
  EXPECT_THAT(Find("cpu", "0::/ab\n", bound), HasSubstr("error"));
  EXPECT_THAT(Find("cpu", "0::/../b\n", v2), HasSubstr("error"));
  // Of two mounts the one that holds the own cgroup; blanks are escaped.
  EXPECT_EQ(Find("cpu", "0::/a\n",
                 "9 8 0:1 /z /q rw - cgroup2 x rw\n"
                 "9 8 0:1 /a /my\\040c rw - cgroup2 x rw\n"),
            "v2 /my c + ");
  // "cpu" is neither "cpuset" nor "cpuacct".
  EXPECT_EQ(Find("cpu", "2:cpuset:/s\n3:cpu:/t\n",
                 "9 8 0:1 / /cpuset rw - cgroup x rw,cpuset\n"
                 "9 8 0:1 / /cpu rw - cgroup x rw,cpu\n"),
            "v1 /cpu + /t");
  EXPECT_EQ(Find("cpu", "1:name=systemd:/s\n", v2), "none");
  EXPECT_THAT(Find("cpu", "hello\n", v2), HasSubstr("not a list"));
  EXPECT_THAT(Find("cpu", "0::/\n", "torn"), HasSubstr("not mounted"));
  EXPECT_THAT(Find("cpu", "0::/\n", "9 8 0:1 / /c rw - cgroup2"),
              HasSubstr("v2"));
}

// A real cgroup whose files really vanish, where this machine lets us make one.
TEST(CgroupCpuTest, ARealCgroupThatIsRemovedAndMadeAgainIsReadAgain) {
  OwnCgroup own("");
  own.Refresh(kStart);
  if (!own.unified() || !*own.unified()) GTEST_SKIP() << "no cgroup v2 here";
  const std::string name = "weir-host-test-" + std::to_string(getpid());
  const std::string directory = (*own.unified())->leaf() + "/" + name;
  if (mkdir(directory.c_str(), 0755) != 0) GTEST_SKIP() << "may not make one";
  FakeMachine machine;
  // Leads from the fake machine's mount to the real directory.
  machine.Write("/proc/self/cgroup", "0::/\n");
  machine.Mount("/", "/real", "cgroup2", "rw");
  machine.Link("/real", directory);
  CgroupCpu cgroup(machine.root());
  const auto first = cgroup.Read(kStart);
  rmdir(directory.c_str());
  const auto gone = cgroup.Read(kStart + 1s);
  const bool again = mkdir(directory.c_str(), 0755) == 0;
  const auto back = cgroup.Read(kStart + 2s);
  rmdir(directory.c_str());

  ASSERT_TRUE(again);
  EXPECT_EQ(first.cpus.why(), "needs two readings");
  EXPECT_TRUE(gone.cpus.inert());
  EXPECT_EQ(back.cpus.why(), "needs two readings");
}

}  // namespace
}  // namespace weir::host
