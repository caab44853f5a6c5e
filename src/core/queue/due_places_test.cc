#include "weir/queue/due_places.h"

#include <gtest/gtest.h>

#include <map>

#include "testing/simulated_service.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart{seconds(1000)};

TEST(DuePlacesTest, WhatIsDueLapsesAndWhatIsNotStays) {
  DuePlaces places(seconds(1), kStart);
  const uint32_t soon = places.Add(kStart + milliseconds(500));
  const uint32_t later = places.Add(kStart + milliseconds(1500));
  EXPECT_EQ(places.Lapse(kStart + milliseconds(500), 100), 0);
  EXPECT_EQ(places.Lapse(kStart + milliseconds(800), 100), 1);
  EXPECT_FALSE(places.Remove(soon));
  EXPECT_TRUE(places.Remove(later));
  EXPECT_EQ(places.Lapse(kStart + seconds(5), 100), 0);
}

TEST(DuePlacesTest, NoMoreLapseThanMay) {
  DuePlaces places(seconds(1), kStart);
  for (int i = 0; i < 10; ++i) (void)places.Add(kStart + milliseconds(500));
  EXPECT_EQ(places.Lapse(kStart + seconds(2), 9), 0);
  EXPECT_EQ(places.Lapse(kStart + seconds(2), 10), 10);
}

TEST(DuePlacesTest, WhoWaitsForEverNeverLapses) {
  DuePlaces places(seconds(1), kStart);
  const uint32_t due = places.Add(kNever);
  EXPECT_EQ(due, 0u);
  EXPECT_EQ(places.Lapse(kStart + seconds(1000), 100), 0);
  EXPECT_TRUE(places.Remove(due));
}

TEST(DuePlacesTest, ADeadlineTooFarAwayIsReachedOnceTimeHasPassed) {
  DuePlaces places(seconds(1), kStart);
  const Instant far = kStart + seconds(10);
  EXPECT_FALSE(places.Reaches(far));
  (void)places.Lapse(kStart + seconds(9), 100);
  EXPECT_TRUE(places.Reaches(far));
  EXPECT_NE(places.Add(far), 0u);
}

// Against a list of all of them.
TEST(DuePlacesTest, AgreesWithAListOnEverySeededRun) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    testing::Random random(seed);
    DuePlaces places(milliseconds(800), kStart);
    std::multimap<uint32_t, Instant> model;
    Instant now = kStart;
    for (int step = 0; step < 2000; ++step) {
      now += milliseconds(random.Next() % 50);
      const uint64_t choice = random.Next() % 3;
      if (choice == 0) {
        const Instant deadline = now + milliseconds(random.Next() % 2000);
        if (const uint32_t due = places.Add(deadline))
          model.emplace(due, deadline);
      } else if (choice == 1 && !model.empty()) {
        ASSERT_TRUE(places.Remove(model.begin()->first));
        model.erase(model.begin());
      } else {
        const Instant then = now - milliseconds(200);
        int64_t lapsed = places.Lapse(then, 1'000'000);
        // A bucket is an eighth of a budget: none too early, none much later.
        while (!model.empty() &&
               model.begin()->second <= then - milliseconds(200)) {
          model.erase(model.begin());
          --lapsed;
        }
        for (; lapsed > 0; --lapsed) {
          ASSERT_FALSE(model.empty());
          ASSERT_LE(model.begin()->second, then);
          model.erase(model.begin());
        }
        ASSERT_EQ(lapsed, 0);
      }
    }
  }
}

}  // namespace
}  // namespace weir
