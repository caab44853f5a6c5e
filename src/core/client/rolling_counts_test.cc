#include "weir/client/rolling_counts.h"

#include <gtest/gtest.h>

#include <vector>

#include "weir/splitmix64.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1000s};

// Goal: sums are those of a list of all events.
// Method: 20'000 events at random gaps, some longer than the window; the model
// keeps each event with its slice and counts those of the last 40.
TEST(RollingCountsTest, AgreesWithAListOfEvents) {
  RollingCounts counts(4s);
  struct Event {
    int64_t slice;
    bool good;
  };
  std::vector<Event> events;
  SplitMix64 draws(1);
  Instant now = kStart;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t draw = draws.Next();
    now += draw % 400 == 0 ? Duration(5s) : Duration(draw % 20'000'000);
    const int64_t slice = now.time_since_epoch() / 100ms;
    if (draw >> 62 == 0) {
      RollingCounts::Sums expected;
      for (const Event& event : events) {
        if (event.slice <= slice - 40) continue;
        ++(event.good ? expected.good : expected.bad);
      }
      const RollingCounts::Sums sums = counts.Sum(now);
      ASSERT_EQ(sums.good, expected.good) << "event " << i;
      ASSERT_EQ(sums.bad, expected.bad) << "event " << i;
    }
    const bool good = (draw >> 40) % 3 == 0;
    if (good) {
      counts.AddGood(now);
    } else {
      counts.AddBad(now);
    }
    events.push_back({slice, good});
  }
}

TEST(RollingCountsTest, ClearForgetsAllButWhatComesAfter) {
  RollingCounts counts(4s);
  for (int i = 0; i < 30; ++i) counts.AddBad(kStart + i * 100ms);
  counts.Clear(kStart + 3s);
  EXPECT_EQ(counts.Sum(kStart + 3s).all(), 0);
  counts.AddGood(kStart + 3s);
  EXPECT_EQ(counts.Sum(kStart + 5s).good, 1);
  EXPECT_EQ(counts.Sum(kStart + 5s).bad, 0);
}

TEST(RollingCountsTest, AnEarlierInstantCountsAsTheLatestOne) {
  RollingCounts counts(4s);
  counts.AddGood(kStart + 2s);
  EXPECT_EQ(counts.Sum(kStart + 2s).good, 1);
  counts.AddGood(kStart);
  EXPECT_EQ(counts.Sum(kStart).good, 2);
  EXPECT_EQ(counts.Sum(kStart + 2s + 3900ms).good, 2);
  EXPECT_EQ(counts.Sum(kStart + 2s + 4s).good, 0);
}

}  // namespace
}  // namespace weir
