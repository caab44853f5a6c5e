#include "weir/host/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_machine_test.h"

namespace weir::host {
namespace {

using testing::HasSubstr;

constexpr char kLoad[] = "0.20 1.18 12.00 1/80 11206\n";

TEST(LoadAverageTest, IsReadOutsideOfContainers) {
  FakeMachine machine;
  machine.FirstNamespaces();
  machine.Write("/proc/loadavg", kLoad);
  const auto load = LoadAverage(machine.root()).Read();
  ASSERT_TRUE(load.ok()) << load.why();
  EXPECT_DOUBLE_EQ(load->one_minute, 0.2);
  EXPECT_DOUBLE_EQ(load->five_minutes, 1.18);
  EXPECT_DOUBLE_EQ(load->fifteen_minutes, 12);
}

TEST(LoadAverageTest, IsInertInAContainerOfEitherNamespace) {
  FakeMachine pid;
  pid.Link("/proc/self/ns/pid", "pid:[4026532577]");
  pid.Link("/proc/self/ns/cgroup", "cgroup:[4026531835]");
  pid.Write("/proc/loadavg", kLoad);
  EXPECT_EQ(LoadAverage(pid.root()).Read().why(),
            "in a container the load average is the node's");
  FakeMachine cgroup;
  cgroup.Link("/proc/self/ns/pid", "pid:[4026531836]");
  cgroup.Link("/proc/self/ns/cgroup", "cgroup:[4026532600]");
  cgroup.Write("/proc/loadavg", kLoad);
  EXPECT_TRUE(LoadAverage(cgroup.root()).Read().inert());
}

TEST(LoadAverageTest, IsInertWhereTheNamespaceCannotBeTold) {
  FakeMachine machine;
  machine.Write("/proc/loadavg", kLoad);
  EXPECT_THAT(LoadAverage(machine.root()).Read().why(),
              HasSubstr("cannot tell"));
}

TEST(LoadAverageTest, IsReadWhereTheContainerHasItsOwn) {
  FakeMachine machine;
  machine.Link("/proc/self/ns/pid", "pid:[4026532577]");
  machine.Write(
      "/proc/self/mountinfo",
      "90 80 0:50 /proc/loadavg /proc/loadavg rw - fuse.lxcfs l rw\n");
  machine.Write("/proc/loadavg", kLoad);
  EXPECT_TRUE(LoadAverage(machine.root()).Read().ok());
}

TEST(LoadAverageTest, GarbageAndAbsenceAreInert) {
  FakeMachine machine;
  machine.FirstNamespaces();
  LoadAverage load(machine.root());
  EXPECT_THAT(load.Read().why(), HasSubstr("no such file"));
  for (const char* text :
       {"", "1 2", "nan 1 1 1/1 1", "-1 1 1 1/1 1", "inf 0 0", "a b c"}) {
    machine.Write("/proc/loadavg", text);
    EXPECT_TRUE(load.Read().inert()) << text;
  }
}

constexpr char kPressure[] =
    "some avg10=12.50 avg60=0.59 avg300=0.28 total=3471885\n"
    "full avg10=1.00 avg60=0.00 avg300=0.00 total=17\n";

TEST(PressureTest, ReadsSomeAndFull) {
  FakeMachine machine;
  machine.Write("/proc/pressure/memory", kPressure);
  const auto pressure = Pressure(PressureKind::kMemory, machine.root()).Read();
  ASSERT_TRUE(pressure.ok()) << pressure.why();
  EXPECT_DOUBLE_EQ(pressure->some.ten_seconds_ratio, 0.125);
  EXPECT_EQ(pressure->some.total, 3471885us);
  EXPECT_DOUBLE_EQ(pressure->full.ten_seconds_ratio, 0.01);
  EXPECT_EQ(pressure->full.total, 17us);
}

TEST(PressureTest, FullIsZeroWhereTheKernelDoesNotTell) {
  FakeMachine machine;
  machine.Write("/proc/pressure/cpu",
                "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n");
  const auto pressure = Pressure(PressureKind::kCpu, machine.root()).Read();
  EXPECT_EQ(Of(pressure).some.total, 5us);
  EXPECT_EQ(pressure->full.total, 0us);
}

TEST(PressureTest, GarbageAndAbsenceAreInert) {
  FakeMachine machine;
  Pressure pressure(PressureKind::kIo, machine.root());
  EXPECT_THAT(pressure.Read().why(), HasSubstr("booted with psi=1"));
  for (const char* text :
       {"", "full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n",
        "some avg10=101 avg60=0.00 avg300=0.00 total=5\n",
        "some avg10=1.00 avg60=0.00 avg300=0.00 total=-5\n",
        "some avg10=1.00 total=5\n", "some\n",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\nfull x\n"}) {
    machine.Write("/proc/pressure/io", text);
    EXPECT_TRUE(pressure.Read().inert()) << text;
  }
}

TEST(CgroupPressureTest, ReadsTheOwnLeafAlsoOnAHybridMachine) {
  FakeMachine machine;
  machine.Write("/proc/self/cgroup", "3:cpu,cpuacct:/\n0::/s/me\n");
  machine.Mount("/", "/sys/fs/cgroup/unified", "cgroup2", "rw");
  machine.Write("/sys/fs/cgroup/unified/s/me/cpu.pressure", kPressure);
  const Pressures pressure = CgroupPressure(machine.root()).Read(kStart);
  EXPECT_DOUBLE_EQ(Of(pressure.cpu).some.ten_seconds_ratio, 0.125);
  EXPECT_TRUE(pressure.io.inert());
}

TEST(CgroupPressureTest, IsInertOnV1) {
  FakeMachine machine;
  machine.Write("/proc/self/cgroup", "3:cpu,cpuacct:/\n");
  machine.Mount("/", "/sys/fs/cgroup/cpu", "cgroup", "rw,cpu,cpuacct");
  EXPECT_THAT(CgroupPressure(machine.root()).Read(kStart).cpu.why(),
              HasSubstr("v1 has no pressure"));
}

}  // namespace
}  // namespace weir::host
