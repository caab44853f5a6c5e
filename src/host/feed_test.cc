#include "weir/host/feed.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "fake_machine_test.h"

namespace weir::host {
namespace {

constexpr std::chrono::system_clock::time_point kWall{std::chrono::hours(10)};

class HostFeedTest : public ::testing::Test {
 protected:
  HostFeedTest() {
    policy_.service = "test";
    policy_.resources.push_back({.name = "api"});
  }
  void Start() {
    region_ = std::make_unique<HeapRegion>(policy_, kStart);
    const int shard = *(*region_)->ClaimShard({.pid = 1, .start = 1});
    guard_ = std::move(*Guard::Make(std::make_shared<Policy>(policy_),
                                    **region_, shard, kStart));
  }
  bool Pass(Instant now) {
    Admission a = guard_->Admit({.arrived = now}, now);
    const bool admitted = a.decision.verdict == Verdict::kAdmit;
    guard_->Finish(std::move(a.permit), Outcome::kOk, now);
    return admitted;
  }

  FakeMachine machine_;
  Policy policy_;
  std::unique_ptr<HeapRegion> region_;
  std::unique_ptr<Guard> guard_;
  std::vector<std::string> heard_;
  HostFeed feed_{[this](const std::string& line) { heard_.push_back(line); },
                 machine_.root()};
};

TEST_F(HostFeedTest, ReadsNothingThatThePolicyHasNoUseFor) {
  policy_.system.threads = 100;
  Start();
  feed_.Tell(*guard_, kStart, kWall);
  EXPECT_EQ((*region_)->rates.signals_ns.load(), 0);
  EXPECT_TRUE(heard_.empty());
}

TEST_F(HostFeedTest, TheMachinesLoadReachesTheSystemRule) {
  machine_.FirstNamespaces();
  machine_.Write("/proc/loadavg", "7.50 1.18 12.00 1/80 11206\n");
  policy_.system.load = 100;
  Start();
  feed_.Tell(*guard_, kStart, kWall);
  EXPECT_DOUBLE_EQ((*region_)->rates.load.load(), 7.5);
  EXPECT_LT((*region_)->rates.cpu_ratio.load(), 0) << "no such files here";
}

TEST_F(HostFeedTest, AQuotaByTheDayEndsAtMidnight) {
  policy_.resources[0].quota =
      QuotaPolicy{.rule = {.calls = 1, .kind = Quota::Kind::kCalendar}};
  Start();
  feed_.Tell(*guard_, kStart, kWall);
  EXPECT_TRUE(Pass(kStart));
  EXPECT_FALSE(Pass(kStart + 14h - 1ns));
  EXPECT_TRUE(Pass(kStart + 14h));
}

TEST_F(HostFeedTest, AZoneThatIsNotThereIsToldOnceAndCountsNothing) {
  policy_.resources[0].quota =
      QuotaPolicy{.rule = {.calls = 1, .kind = Quota::Kind::kCalendar},
                  .zone = "Mars/Olympus"};
  Start();
  for (int i = 0; i < 3; ++i) {
    feed_.Tell(*guard_, kStart, kWall);
    EXPECT_TRUE(Pass(kStart));
  }
  ASSERT_EQ(heard_.size(), 1u);
  EXPECT_NE(heard_[0].find("Mars/Olympus"), std::string::npos);
}

}  // namespace
}  // namespace weir::host
