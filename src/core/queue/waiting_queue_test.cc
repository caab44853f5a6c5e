#include "weir/queue/waiting_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "testing/simulated_service.h"
#include "weir/guard.h"

// WaitingQueue is driven through a Guard with one place that is never given
// back: waiters get their class and usage from there.

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart{seconds(1000)};

class WaitingQueueTest : public ::testing::Test {
 protected:
  WaitingQueueTest() {
    auto policy = std::make_shared<Policy>();
    policy->service = "test";
    policy->limit_ceiling = 1;
    policy->resources.push_back({.name = "api"});
    region_ = std::make_unique<HeapRegion>(*policy, kStart);
    const int shard = *(*region_)->ClaimShard({.pid = 1, .start = 1});
    guard_ = std::move(*Guard::Make(policy, **region_, shard, kStart));
    running_ = guard_->Admit({}, kStart).permit;
  }
  ~WaitingQueueTest() override {
    guard_->Finish(std::move(running_), {}, kStart);
  }

  std::unique_ptr<HeapRegion> region_;
  std::unique_ptr<Guard> guard_;
  Permit running_;
};

struct Model {
  Waiter* waiter;
  int order;
};

// Goal: whatever mix of arrivals, cancellations and expiries, the guard's queue
// hands out what a plain list, searched through, says.
// Method: 200 seeded runs of 300 steps; deadlines collide often.
TEST_F(WaitingQueueTest, AgreesWithAPlainListOnEverySeededRun) {
  Instant now = kStart;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    testing::Random random(seed);
    std::vector<std::unique_ptr<Waiter>> waiters;
    std::vector<Model> model;
    for (int step = 0; step < 300; ++step) {
      now += Duration(static_cast<int64_t>(random.Next() % 2'000'000));
      guard_->Tick(now);
      std::vector<Waiter*> expired;
      for (auto m = model.begin(); m != model.end();) {
        const bool gone = m->waiter->request().deadline <= now;
        if (gone) expired.push_back(m->waiter);
        m = gone ? model.erase(m) : m + 1;
      }
      Instant before = Instant::min();
      while (Waiter* decided = guard_->NextDecided()) {
        const auto at = std::find(expired.begin(), expired.end(), decided);
        ASSERT_NE(at, expired.end()) << "seed " << seed << ", step " << step;
        expired.erase(at);
        ASSERT_EQ(decided->decision().reason, Reason::kDeadline);
        ASSERT_LE(before, decided->request().deadline);
        before = decided->request().deadline;
      }
      ASSERT_TRUE(expired.empty()) << "seed " << seed << ", step " << step;

      const uint64_t choice = random.Next() % 10;
      if (choice < 6) {
        waiters.push_back(std::make_unique<Waiter>());
        const Request request{
            .criticality = static_cast<Criticality>(random.Next() % 4),
            .client = 0,
            .arrived = now,
            .deadline = random.Next() % 4 == 0
                            ? kNever
                            : now + milliseconds(1 + static_cast<int64_t>(
                                                         random.Next() % 50))};
        ASSERT_EQ(guard_->Admit(request, *waiters.back(), now).decision.reason,
                  Reason::kQueued)
            << "seed " << seed << ", step " << step;
        model.push_back({waiters.back().get(), step});
      } else if (choice < 8 && !model.empty()) {
        const auto at = model.begin() + static_cast<std::ptrdiff_t>(
                                            random.Next() % model.size());
        guard_->Cancel(*at->waiter, now);
        model.erase(at);
      } else if (!model.empty()) {
        // Give the place back: it goes to the oldest of the most critical.
        guard_->Finish(std::move(running_), Outcome::kIgnored, now);
        const auto next = std::min_element(
            model.begin(), model.end(), [](const Model& a, const Model& b) {
              const auto key = [](const Model& m) {
                return std::pair(m.waiter->request().criticality, m.order);
              };
              return key(a) < key(b);
            });
        Waiter* const decided = guard_->NextDecided();
        ASSERT_EQ(decided, next->waiter)
            << "seed " << seed << ", step " << step;
        running_ = decided->TakePermit();
        model.erase(next);
      } else {
        continue;
      }
      ASSERT_EQ(guard_->waiting(), static_cast<int64_t>(model.size()));
      Instant earliest = kNever;
      for (const Model& m : model) {
        earliest = std::min(earliest, m.waiter->request().deadline);
      }
      ASSERT_LE(guard_->NextWake(), earliest);
      ASSERT_EQ(guard_->NextWake() == kNever, model.empty());
    }
    for (const Model& m : model) guard_->Cancel(*m.waiter, now);
  }
}

TEST_F(WaitingQueueTest,
       AHundredThousandWaitersWithOneParentAreRemovedInOrder) {
  // Later and later deadlines make all of them children of the first: removing
  // it must not recurse over them.
  std::vector<Waiter> waiters(100'000);
  for (size_t i = 0; i < waiters.size(); ++i) {
    // As if so many could be answered in time.
    (*region_)->published.waiting_bound.store(1'000'000);
    const Request request{.arrived = kStart,
                          .deadline = kStart + seconds(1) + Duration(i)};
    ASSERT_EQ(guard_->Admit(request, waiters[i], kStart).decision.verdict,
              Verdict::kQueue);
  }
  guard_->Tick(kStart + seconds(2));
  EXPECT_EQ(guard_->waiting(), 0);
  for (Waiter& waiter : waiters) ASSERT_EQ(guard_->NextDecided(), &waiter);
}

}  // namespace
}  // namespace weir
