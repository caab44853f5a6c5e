#include "weir/sim/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "weir/scenario/random.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

class Recorder final : public Handler {
 public:
  void OnEvent(Instant now, uint64_t arg) override {
    seen.emplace_back(now.time_since_epoch().count(), arg);
  }
  std::vector<std::pair<int64_t, uint64_t>> seen;
};

constexpr Instant kStart{};

TEST(EventQueueTest, EqualInstantsRunInTheOrderOfScheduling) {
  EventQueue queue;
  Recorder recorder;
  for (uint64_t i = 0; i < 100; ++i) {
    queue.At(kStart + Duration(static_cast<int64_t>(i % 3)), recorder, i);
  }
  queue.RunUntil(kStart + 1s);

  ASSERT_EQ(recorder.seen.size(), 100u);
  EXPECT_TRUE(std::is_sorted(recorder.seen.begin(), recorder.seen.end()));
}

TEST(EventQueueTest, RunUntilLeavesItsEndToTheNextRun) {
  EventQueue queue;
  Recorder recorder;
  queue.At(kStart + 5ns, recorder, 1);

  queue.RunUntil(kStart + 5ns);
  EXPECT_TRUE(recorder.seen.empty());
  EXPECT_EQ(queue.now(), kStart + 5ns);

  queue.RunUntil(kStart + 6ns);
  EXPECT_EQ(recorder.seen.size(), 1u);
}

TEST(EventQueueTest, AnEventOfThePastRunsNowAndTimeNeverStepsBack) {
  EventQueue queue;
  Recorder recorder;
  queue.RunUntil(kStart + 10ns);
  queue.At(kStart + 3ns, recorder, 7);
  queue.RunUntil(kStart + 11ns);
  ASSERT_EQ(recorder.seen.size(), 1u);
  EXPECT_EQ(recorder.seen[0].first, 10);
}

TEST(EventQueueTest, AHandleOfAnEventThatRanCancelsNothing) {
  EventQueue queue;
  Recorder recorder;
  Timer first = queue.At(kStart + 1ns, recorder, 1);
  Timer copy = first;
  queue.RunUntil(kStart + 2ns);
  // The slot is used again; the old handle must not reach it.
  Timer second = queue.At(kStart + 3ns, recorder, 2);
  EXPECT_FALSE(queue.Pending(copy));
  queue.Cancel(copy);
  EXPECT_TRUE(queue.Pending(second));
  queue.RunUntil(kStart + 4ns);
  EXPECT_EQ(recorder.seen.size(), 2u);
}

// Goal: any mix of scheduling, in the heap and in the lane, of cancelling and
// running agrees with a sorted list.  Method: 70 000 random steps each, with
// events at most so far away that all lie in one slot of the wheel, in a
// hundred, or several turns of it ahead; the model is searched linearly.
class EventQueueDistanceTest : public testing::TestWithParam<int64_t> {};

INSTANTIATE_TEST_SUITE_P(Unit, EventQueueDistanceTest,
                         testing::Values(1, 1'000'000, 100'000'000));

TEST_P(EventQueueDistanceTest, AgreesWithASortedListUnderRandomUse) {
  const int64_t unit = GetParam();
  struct Model {
    int64_t when;
    uint64_t arg;
    Timer timer;
  };
  EventQueue queue;
  Recorder recorder;
  std::vector<Model> model;
  std::vector<std::pair<int64_t, uint64_t>> expected;
  scenario::Random random(17);
  int64_t now = 0;
  for (uint64_t step = 0; step < 70'000; ++step) {
    const uint32_t choice = random.Below(10);
    if (choice < 5 || model.empty()) {
      // Of those for the lane, some are too early for it.
      const bool lane = choice < 2;
      const auto ahead =
          unit *
          static_cast<int64_t>(lane ? 45 + random.Below(step % 100 < 90 ? 1 : 9)
                                    : random.Below(50));
      const Instant when(Duration(now + ahead));
      model.push_back({now + ahead, step,
                       lane ? queue.InOrder(when, recorder, step)
                            : queue.At(when, recorder, step)});
    } else if (choice < 9) {
      const size_t victim = random.Below(static_cast<uint32_t>(model.size()));
      queue.Cancel(model[victim].timer);
      model.erase(model.begin() + static_cast<std::ptrdiff_t>(victim));
    } else {
      now += unit * static_cast<int64_t>(random.Below(4));
      std::stable_sort(
          model.begin(), model.end(),
          [](const Model& a, const Model& b) { return a.when < b.when; });
      size_t due = 0;
      while (due < model.size() && model[due].when < now) {
        expected.emplace_back(model[due].when, model[due].arg);
        ++due;
      }
      model.erase(model.begin(),
                  model.begin() + static_cast<std::ptrdiff_t>(due));
      queue.RunUntil(Instant(Duration(now)));
      ASSERT_EQ(queue.pending(), model.size()) << "step " << step;
    }
  }
  EXPECT_EQ(recorder.seen, expected);
  EXPECT_EQ(queue.executed(), expected.size());
}

TEST(EventQueueTest, OneThatIsFarAwayRunsInItsTurn) {
  EventQueue queue;
  Recorder recorder;
  queue.At(kStart + 24h, recorder, 3);
  Timer cancelled = queue.At(kStart + 2h, recorder, 9);
  queue.At(kStart + 24h + 1ns, recorder, 4);
  queue.At(kStart + 1h, recorder, 1);
  queue.Cancel(cancelled);
  queue.RunUntil(kStart + 23h);
  queue.At(kStart + 23h + 1ms, recorder, 2);
  queue.RunUntil(kStart + 25h);
  std::vector<uint64_t> order;
  for (const auto& [when, arg] : recorder.seen) order.push_back(arg);
  EXPECT_EQ(order, (std::vector<uint64_t>{1, 2, 3, 4}));
}

TEST(EventQueueTest, WhatIsCancelledInTheLaneIsNeitherPendingNorRun) {
  EventQueue queue;
  Recorder recorder;
  for (int i = 0; i < 100'000; ++i) {
    Timer timer = queue.InOrder(queue.now() + 500ns, recorder);
    if (i % 1000 == 0) queue.After(0ns, recorder);
    queue.Cancel(timer);
    queue.RunUntil(queue.now() + 1ns);
    ASSERT_EQ(queue.pending(), 0u);
  }
  EXPECT_EQ(recorder.seen.size(), 100u);
}

}  // namespace
}  // namespace weir::sim
