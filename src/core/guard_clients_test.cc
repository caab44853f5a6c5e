// What the guard makes of who asks, and of how often he asked before.

#include <gtest/gtest.h>

#include <list>
#include <memory>
#include <vector>

#include "testing/simulated_service.h"
#include "weir/guard.h"
#include "weir/snapshot.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Instant kStart{minutes(1000)};

// Two places, and a queue.
class GuardClientsTest : public ::testing::Test {
 protected:
  GuardClientsTest() {
    policy_.service = "test";
    policy_.limit_floor = policy_.limit_ceiling = 2;
    policy_.resources.push_back({.name = "api"});
    Start();
  }
  ~GuardClientsTest() override {
    waiters_.clear();
    running_.clear();
  }

  void Start() {
    running_.clear();
    guard_.reset();
    region_ = std::make_unique<HeapRegion>(policy_, kStart);
    const int shard = *(*region_)->ClaimShard({.pid = 1, .start = 1});
    guard_ = std::move(*Guard::Make(std::make_shared<Policy>(policy_),
                                    **region_, shard, kStart));
  }

  // Asks without waiting; what is admitted runs on.
  Decision Ask(uint64_t client, uint8_t attempt = 0, Instant now = kStart) {
    Admission a = guard_->Admit(
        {.client = client, .arrived = now, .attempt = attempt}, now);
    if (a.permit) running_.push_back(std::move(a.permit));
    return a.decision;
  }
  void FinishAll(Instant now = kStart) {
    for (Permit& permit : running_) {
      guard_->Finish(std::move(permit), Outcome::kOk, now);
    }
    running_.clear();
  }

  Policy policy_;
  std::unique_ptr<HeapRegion> region_;
  std::unique_ptr<Guard> guard_;
  std::vector<Permit> running_;
  std::list<Waiter> waiters_;
};

TEST_F(GuardClientsTest, OfEqualClientsRetriesRunAfterFirstAttempts) {
  while (Ask(0).verdict == Verdict::kAdmit) {
  }
  (*region_)->flags.overloaded.store(1);
  (*region_)->published.queue_target.store(10);
  std::vector<Waiter*> order;
  for (const uint8_t attempt : {2, 0, 1, 0}) {
    Waiter& waiter = waiters_.emplace_back();
    ASSERT_EQ(
        guard_->Admit({.arrived = kStart, .attempt = attempt}, waiter, kStart)
            .decision.verdict,
        Verdict::kQueue);
  }
  std::vector<uint8_t> attempts;
  for (int i = 0; i < 4; ++i) {
    // An overload does not end while something waits and capacity is unknown.
    (*region_)->flags.overloaded.store(1);
    guard_->Finish(std::move(running_.back()), Outcome::kIgnored, kStart);
    running_.pop_back();
    Waiter* const next = guard_->NextDecided();
    ASSERT_NE(next, nullptr);
    attempts.push_back(next->request().attempt);
    running_.push_back(next->TakePermit());
  }
  EXPECT_EQ(attempts, (std::vector<uint8_t>{0, 0, 2, 1}));
}

TEST_F(GuardClientsTest, TheShedAreToldNotToRetryOnceRetriesAbound) {
  Ask(0);
  Ask(0);
  Instant now = kStart;
  for (int i = 0; i < 400; ++i, now += milliseconds(5)) {
    EXPECT_FALSE(Ask(0, 0, now).never_retry);
  }
  EXPECT_EQ(Read(**region_)[Gauge::retry_ratio], 0);
  for (int i = 0; i < 400; ++i, now += milliseconds(5)) {
    Ask(0, i % 2 ? 1 : 0, now);
  }
  const Decision told = Ask(0, 0, now);
  EXPECT_EQ(told.reason, Reason::kLimit);
  EXPECT_TRUE(told.never_retry);
  EXPECT_EQ(told.retry_after, seconds(30));
  EXPECT_GT(Read(**region_)[Gauge::retry_ratio], .3);
  EXPECT_GT(Read(**region_)[ClassCounter::never_retry_total][1], 0u);
  // Those that are refused for another reason are not.
  (*region_)->resources[0].paused.store(1);
  EXPECT_FALSE(Ask(0, 1, now).never_retry);
}

// Nothing reaches the limit, and yet the retries are seen.
TEST_F(GuardClientsTest, RetriesThatAStageBeforeTheLimitRefusesAbound) {
  policy_.system.qps = 1;
  Start();
  Instant now = kStart;
  Decision told;
  for (int i = 0; i < 800; ++i, now += milliseconds(5)) {
    told = Ask(0, i % 2 ? 1 : 0, now);
    FinishAll(now);
  }
  EXPECT_EQ(told.reason, Reason::kSystem);
  EXPECT_TRUE(told.never_retry);
  EXPECT_GT(Read(**region_)[Gauge::retry_ratio], .3);
}

TEST_F(GuardClientsTest, WhoseDeadlineIsTooNearIsToldNotToRetryEither) {
  Instant now = kStart;
  for (int i = 0; i < 100; ++i) {  // What a request takes.
    Ask(0, 0, now);
    now += milliseconds(100);
    FinishAll(now);
  }
  while (Ask(0, 0, now).verdict == Verdict::kAdmit) {
  }
  (*region_)->flags.retries_abound.store(1);
  const auto ask = [&](Instant deadline) {
    Waiter& waiter = waiters_.emplace_back();
    return guard_->Admit({.arrived = now, .deadline = deadline}, waiter, now)
        .decision;
  };
  const Decision near = ask(now + milliseconds(20));
  EXPECT_EQ(near.reason, Reason::kDeadline);
  EXPECT_TRUE(near.never_retry);
  // One that has passed needs no advice.
  const Decision late = ask(now);
  EXPECT_EQ(late.reason, Reason::kDeadline);
  EXPECT_FALSE(late.never_retry);
}

TEST_F(GuardClientsTest, AClientBeyondItsQuotaIsRefusedAndNobodyElse) {
  policy_.limit_floor = policy_.limit_ceiling = 100;
  policy_.client_quota = ClientQuotas::Config{.calls = 3};
  Start();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Ask(7).verdict, Verdict::kAdmit);
  }
  const Decision refused = Ask(7, 0, kStart + seconds(15));
  EXPECT_EQ(refused.verdict, Verdict::kShed);
  EXPECT_EQ(refused.reason, Reason::kQuota);
  EXPECT_EQ(refused.retry_after, seconds(45));
  EXPECT_EQ(Ask(8).verdict, Verdict::kAdmit);
  EXPECT_EQ(Ask(0).verdict, Verdict::kAdmit);
  EXPECT_EQ(Ask(7, 0, kStart + minutes(1)).verdict, Verdict::kAdmit);
}

TEST_F(GuardClientsTest, ACallThatALaterStageRefusesIsNotSpent) {
  policy_.client_quota = ClientQuotas::Config{.calls = 3};
  Start();
  // Two run, and then there is no room: however often it asks.
  for (int i = 0; i < 20; ++i) Ask(7);
  EXPECT_EQ((*region_)->client_quotas.Counted(*policy_.client_quota,
                                              (*region_)->Keyed(7), kStart),
            2);
  FinishAll();
  EXPECT_EQ(Ask(7).verdict, Verdict::kAdmit);
  EXPECT_EQ(Ask(7).reason, Reason::kQuota);
}

TEST_F(GuardClientsTest, AQuotaInShadowCountsAndLetsPass) {
  policy_.limit_floor = policy_.limit_ceiling = 100;
  policy_.client_quota = ClientQuotas::Config{.calls = 1};
  policy_.resources[0].stages[Index(Stage::kQuota)] = StageMode::kShadow;
  Start();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Ask(7).verdict, Verdict::kAdmit);
  EXPECT_EQ(Read(**region_)[ClassCounter::shadow_quota_total][1], 4u);
}

// Goal: clients that ask for far more than there is take nothing from the 999
// others, however many workers share the queue; at the latest a second after
// they come, when it is no burst any more.
// Method: others ask for 0.6 of the capacity, one or sixteen for ten times it.
class NoisyClients : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(NoisyClients, AreShedAndNobodyElse) {
  constexpr uint64_t kFirstHog = 100'000;
  const auto [workers, hogs] = GetParam();
  int64_t others = 0;
  int64_t shed = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    double now = 0;
    testing::World world;
    world.seed = seed;
    world.workers = workers;
    world.change = [&](double t, testing::World&) { now = t; };
    world.load = [](double t) { return t < 5 ? .6 : 10.6; };
    world.client = [&, many = static_cast<uint64_t>(hogs)](
                       testing::Random& random) -> uint64_t {
      if (now >= 5 && random.Uniform() > .6 / 10.6) {
        return kFirstHog + random.Next() % many;
      }
      others += now >= 6;
      return 1 + random.Next() % 999;
    };
    // All as important as each other.
    world.shares = {0, 1, 0, 0};
    testing::SimulatedService service(world);
    service.RunTo(6);
    const size_t before = service.shed_clients().size();
    service.RunTo(10.5);
    for (size_t i = before; i < service.shed_clients().size(); ++i) {
      shed += service.shed_clients()[i] < kFirstHog;
    }
  }
  EXPECT_GT(others, 12'000);
  EXPECT_LE(static_cast<double>(shed), .001 * static_cast<double>(others));
}

INSTANTIATE_TEST_SUITE_P(WorkersAndHogs, NoisyClients,
                         ::testing::Combine(::testing::Values(1, 2, 4),
                                            ::testing::Values(1, 16)));

}  // namespace
}  // namespace weir
