#include <gtest/gtest.h>

#include <array>
#include <list>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>
#include <vector>

#include "explain_steps.h"
#include "weir/guard.h"

namespace weir::cli {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1000s};

class ExplainTest : public ::testing::Test {
 protected:
  ExplainTest() {
    policy_.service = "test";
    policy_.limit_floor = policy_.limit_ceiling = 2;
    policy_.resources.push_back({.name = "first"});
    policy_.resources.push_back({.name = "api"});
    policy_.resources[1].quota = QuotaPolicy{
        .rule = {.calls = 3, .kind = Quota::Kind::kFixed, .window = 10s}};
  }

  void Start() {
    region_ = std::make_unique<HeapRegion>(policy_, kStart);
    const int shard = *(*region_)->ClaimShard({.pid = 1, .start = 1});
    guard_ = std::move(*Guard::Make(std::make_shared<Policy>(policy_),
                                    **region_, shard, kStart));
  }
  Admission Ask() {
    return guard_->Admit({.resource = 1, .arrived = kStart}, kStart);
  }
  Explanation Tell(bool live = true) {
    return Explain(policy_,
                   {.resource = 1, .arrived = kStart, .deadline = kStart + 1s},
                   live ? region_->get() : nullptr, kStart,
                   std::chrono::system_clock::time_point{});
  }
  static const Step& Of(const Explanation& e, Stage stage) {
    return e.steps[Index(stage)];
  }

  Policy policy_;
  std::unique_ptr<HeapRegion> region_;
  std::unique_ptr<Guard> guard_;
};

TEST_F(ExplainTest, ARestedServiceRunsIt) {
  Start();
  for (const bool live : {false, true}) {
    const Explanation e = Tell(live);
    EXPECT_EQ(e.verdict, Verdict::kAdmit);
    EXPECT_FALSE(e.decided_by);
    EXPECT_EQ(Of(e, Stage::kQuota).effect, Effect::kPasses);
    EXPECT_EQ(Of(e, Stage::kTiers).effect, Effect::kAbsent);
    EXPECT_NE(RenderText(policy_, e).find("answer: it runs"),
              std::string::npos);
  }
}

TEST_F(ExplainTest, ASpentQuotaDecidesAsTheGuardDoesAndChangesNothing) {
  Start();
  for (int i = 0; i < 3; ++i) {
    guard_->Finish(Ask().permit, Outcome::kOk, kStart);
  }
  const Explanation e = Tell();
  const Decision decision = Ask().decision;
  EXPECT_EQ(e.verdict, decision.verdict);
  EXPECT_EQ(e.decided_by, Stage::kQuota);
  EXPECT_EQ(e.retry_after, decision.retry_after);
  EXPECT_EQ(Of(e, Stage::kQuota).why,
            "3 of 3 requests of this window of 10s have started, the next may "
            "in 10 s");
  EXPECT_NE(
      RenderText(policy_, e)
          .find("answer: refused by quota, HTTP 429, to come back after 10 s"),
      std::string::npos)
      << RenderText(policy_, e);
  EXPECT_EQ(Tell(false).verdict, Verdict::kAdmit) << "a fresh service";
}

TEST_F(ExplainTest, AClientThatSpentItsCallsIsToldApartFromItsResource) {
  constexpr uint64_t kClient = 7;
  policy_.client_quota = ClientQuotas::Config{.calls = 1, .window = 5s};
  Start();
  const auto tell = [&](uint64_t client) {
    return Explain(policy_,
                   {.resource = 1,
                    .client = client,
                    .arrived = kStart,
                    .deadline = kStart + 1s},
                   region_->get(), kStart,
                   std::chrono::system_clock::time_point{});
  };
  const Request request{.resource = 1, .client = kClient, .arrived = kStart};
  guard_->Finish(guard_->Admit(request, kStart).permit, Outcome::kOk, kStart);
  const Explanation spent = tell(kClient);
  EXPECT_EQ(spent.decided_by, Stage::kQuota);
  EXPECT_EQ(spent.retry_after,
            guard_->Admit(request, kStart).decision.retry_after);
  EXPECT_EQ(Of(spent, Stage::kQuota).why,
            "1 of 1 requests of this client have started in this window of 5s, "
            "the next may in 5 s");
  EXPECT_EQ(tell(kClient + 1).verdict, Verdict::kAdmit);
  EXPECT_EQ(tell(0).verdict, Verdict::kAdmit);
}

TEST_F(ExplainTest, AStageInShadowIsToldButDoesNotDecide) {
  policy_.resources[1].quota->rule.calls = 0;
  policy_.resources[1].stages[Index(Stage::kQuota)] = StageMode::kShadow;
  Start();
  const Explanation e = Tell();
  EXPECT_EQ(Of(e, Stage::kQuota).effect, Effect::kWouldRefuse);
  EXPECT_EQ(e.verdict, Verdict::kAdmit);
}

TEST_F(ExplainTest, ThePausedResourceOfTheLiveRegionCounts) {
  policy_.resources[1].paused = true;
  Start();
  policy_.resources[1].paused = false;
  const Explanation e = Tell();
  EXPECT_EQ(e.decided_by, Stage::kSwitch);
  EXPECT_EQ(Tell(false).verdict, Verdict::kAdmit);
}

TEST_F(ExplainTest, WhatAnOperatorSetByHandIsToldWithItsEnd) {
  Start();
  (*region_)->resources[1].by_hand.store(
      Switch{.action = Switch::Action::kPause, .until = kStart + 20s}.Pack());
  Explanation e = Tell();
  EXPECT_EQ(e.decided_by, Stage::kSwitch);
  EXPECT_EQ(Of(e, Stage::kSwitch).why,
            "an operator paused the resource, for 20 s");
  (*region_)->resources[1].by_hand.store(
      Switch{.action = Switch::Action::kDegrade, .level = 2}.Pack());
  e = Tell();
  EXPECT_EQ(e.verdict, Verdict::kAdmit);
  EXPECT_EQ(Of(e, Stage::kSwitch).why,
            "an operator set degrade level 2, for good");
}

TEST_F(ExplainTest, WhatAnOverloadMakesCheaperIsTold) {
  policy_.resources[1].degrade = {{.name = "cached", .excess = 1.1},
                                  {.name = "short", .excess = 2}};
  Start();
  (*region_)->resources[1].level.store(1);
  Explanation e = Tell();
  EXPECT_EQ(Of(e, Stage::kSwitch).why,
            "not paused; the overload set degrade level 1");
  EXPECT_NE(RenderText(policy_, e)
                .find("answer: it runs, answered at degrade level 1 of 2"),
            std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(RenderJson(policy_, e))["degrade"], 1);
  // An operator's word stands above it.
  (*region_)->resources[1].by_hand.store(
      Switch{.action = Switch::Action::kDegrade, .level = 2}.Pack());
  EXPECT_EQ(Tell().degrade, 2);
  EXPECT_EQ(Tell(false).degrade, 0);
}

TEST_F(ExplainTest, AFullServiceLetsItWait) {
  Start();
  Admission first = Ask();
  Admission second = Ask();
  const Explanation e = Tell();
  EXPECT_EQ(e.decided_by, Stage::kLimit);
  EXPECT_EQ(e.verdict, Verdict::kQueue);
  EXPECT_EQ(Of(e, Stage::kLimit).why, "2 of 2 run, 0 wait");
  guard_->Finish(std::move(first.permit), Outcome::kOk, kStart);
  guard_->Finish(std::move(second.permit), Outcome::kOk, kStart);
}

TEST_F(ExplainTest, TheSystemRuleNamesItsCauseAndFigures) {
  policy_.resources[1].quota.reset();
  policy_.system.cpu_ratio = .8;
  Start();
  guard_->Watch({.cpu_ratio = .9}, kStart);
  const Explanation e = Tell();
  EXPECT_EQ(e.decided_by, Stage::kSystem);
  EXPECT_EQ(Of(e, Stage::kSystem).why.substr(0, 22), "by cpu: cpu 0.9 of 0.8");
}

TEST_F(ExplainTest, JsonHasEveryStageInOrder) {
  Start();
  const auto json = nlohmann::json::parse(RenderJson(policy_, Tell()));
  ASSERT_EQ(json["stages"].size(), kStages);
  for (size_t i = 0; i < kStages; ++i) {
    EXPECT_EQ(json["stages"][i]["stage"], Name(static_cast<Stage>(i)));
  }
  EXPECT_EQ(json["verdict"], "admit");
  EXPECT_TRUE(json["decided_by"].is_null());
}

// Goal: explain and the guard say the same of any request in any state of the
// queue: whether it runs, waits or is refused, by which stage, and until when.
// Method: states are drawn, each by a few requests that wait and by figures of
// the law set by hand; then explain is asked, and then the guard.
TEST_F(ExplainTest, TellsWhatTheGuardThenDoesInRandomStates) {
  constexpr uint64_t kSeed = 20260717;
  std::mt19937_64 random(kSeed);
  const auto below = [&](uint64_t n) { return random() % n; };
  policy_.resources.pop_back();
  std::array<int, 3> verdicts{};
  for (int state = 0; state < 3000; ++state) {
    Start();
    Region& region = **region_;
    // Clients that have used more and less.
    for (uint64_t client = 1; client <= 3; ++client) {
      for (uint64_t i = 0; i < client * client * 4 - 4; ++i) {
        region.usage.Add(region.Keyed(client), kStart);
      }
    }
    const auto draw = [&] {
      return Request{.criticality = static_cast<Criticality>(below(4)),
                     .client = below(4),
                     .arrived = kStart,
                     .attempt = static_cast<uint8_t>(below(4) == 0)};
    };
    const bool overloaded = below(2) == 0;
    const int64_t target = static_cast<int64_t>(below(5));
    const int64_t bound = static_cast<int64_t>(below(5));
    const double demand = static_cast<double>(below(2000));
    const auto set = [&] {
      region.flags.overloaded.store(overloaded ? 1 : 0);
      region.published.queue_target.store(target);
      region.published.waiting_bound.store(bound);
      region.published.capacity.store(100);
      region.published.demand.store(demand);
    };
    std::list<Waiter> waiters;
    std::vector<Permit> permits;
    const auto ask = [&](const Request& request) {
      set();
      Admission a = guard_->Admit(request, waiters.emplace_back(), kStart);
      if (a.permit) permits.push_back(std::move(a.permit));
      return a.decision;
    };
    for (uint64_t i = below(8); i > 0; --i) ask(draw());
    const Request request = draw();
    set();
    const Explanation told = Explain(policy_, request, region_->get(), kStart,
                                     std::chrono::system_clock::time_point{});
    const Decision done = ask(request);
    ASSERT_EQ(told.verdict, done.verdict)
        << "seed " << kSeed << ", state " << state;
    ++verdicts[static_cast<size_t>(done.verdict)];
    if (done.verdict == Verdict::kShed) {
      ASSERT_EQ(told.decided_by,
                done.reason == Reason::kLevel ? Stage::kLevel : Stage::kLimit)
          << "seed " << kSeed << ", state " << state;
      ASSERT_EQ(told.retry_after, done.retry_after)
          << "seed " << kSeed << ", state " << state;
    }
    for (Permit& permit : permits) {
      guard_->Finish(std::move(permit), Outcome::kOk, kStart);
    }
    waiters.clear();
    guard_.reset();
  }
  // Each of the three came up often enough to mean something.
  for (const int count : verdicts) EXPECT_GT(count, 300);
}

}  // namespace
}  // namespace weir::cli
