#include "weir/rate/quota.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace weir {
namespace {

using namespace std::chrono_literals;
using Kind = Quota::Kind;

constexpr Instant kStart{1000s};

Quota::Config Fixed(int64_t calls, Duration window = 1s) {
  return {.calls = calls, .kind = Kind::kFixed, .window = window};
}

Quota::Config Sliding(int64_t calls, Duration window = 1s) {
  return {.calls = calls, .kind = Kind::kSliding, .window = window};
}

int64_t Passed(Quota& quota, const Quota::Config& config, Instant now,
               int calls) {
  int64_t passed = 0;
  for (int i = 0; i < calls; ++i) passed += quota.Take(config, now).admitted;
  return passed;
}

TEST(QuotaTest, ExactlyTheCallsOfAWindowPass) {
  Quota quota;
  EXPECT_EQ(Passed(quota, Fixed(5), kStart, 100), 5);
  EXPECT_EQ(Passed(quota, Fixed(5), kStart + 999'999'999ns, 100), 0);
  EXPECT_EQ(Passed(quota, Fixed(5), kStart + 1s, 100), 5);
}

TEST(QuotaTest, NothingRunsBetweenWindowsAndNoneIsMissed) {
  Quota quota;
  EXPECT_EQ(Passed(quota, Fixed(5), kStart, 9), 5);
  EXPECT_EQ(Passed(quota, Fixed(5), kStart + 1h, 9), 5);
}

TEST(QuotaTest, OfNoCallsNonePassAndNoneEverWill) {
  for (const Kind kind : {Kind::kFixed, Kind::kSliding}) {
    Quota quota;
    const Quota::Config none{.calls = 0, .kind = kind};
    const Quota::Answer answer = quota.Take(none, kStart);
    EXPECT_FALSE(answer.admitted);
    EXPECT_EQ(answer.retry_after, Quota::kForEver);
  }
}

TEST(QuotaTest, ARareCallerIsNeverRefused) {
  Quota quota;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(quota.Take(Sliding(20), kStart + i * 500ms).admitted) << i;
  }
}

TEST(QuotaTest, AClockThatIsLateDoesNotBeginTheWindowAnew) {
  for (const Quota::Config& config : {Fixed(3), Sliding(3)}) {
    Quota quota;
    EXPECT_EQ(Passed(quota, config, kStart + 1ns, 9), 3);
    EXPECT_EQ(Passed(quota, config, kStart - 1ns, 9), 0);
    EXPECT_EQ(Passed(quota, config, kStart + 2ns, 9), 0);
  }
}

TEST(QuotaTest, TheTimelineMayBeginAnywhere) {
  for (const Instant start :
       {Instant(Duration(-(int64_t{1} << 62))), Instant(-1h), Instant{},
        Instant(Duration(int64_t{1} << 62))}) {
    for (const Quota::Config& config : {Fixed(3), Sliding(3)}) {
      Quota quota;
      EXPECT_EQ(Passed(quota, config, start, 9), 3);
      EXPECT_EQ(Passed(quota, config, start + 2s, 9), 3);
      const Duration retry = quota.Take(config, start + 2s).retry_after;
      EXPECT_GT(retry, 0s);
      EXPECT_LE(retry, 2s);
    }
  }
}

TEST(QuotaTest, ACallThatIsGivenBackMayBeTakenAgain) {
  for (const Quota::Config& config : {Fixed(2), Sliding(2)}) {
    Quota quota;
    const Quota::Answer first = quota.Take(config, kStart);
    EXPECT_EQ(Passed(quota, config, kStart, 9), 1);
    quota.GiveBack(config, first.window);
    EXPECT_EQ(Passed(quota, config, kStart, 9), 1);
  }
}

TEST(QuotaTest, ACallGivenBackLateDoesNotCountForItsOwnWindow) {
  Quota fixed;
  const Quota::Answer before = fixed.Take(Fixed(2), kStart);
  EXPECT_EQ(Passed(fixed, Fixed(2), kStart + 1s, 9), 2);
  fixed.GiveBack(Fixed(2), before.window);
  EXPECT_EQ(Passed(fixed, Fixed(2), kStart + 1s, 9), 0);

  // Sliding, the window before still counts, so it gives back there.
  Quota sliding;
  const Quota::Answer earlier = sliding.Take(Sliding(2), kStart);
  EXPECT_EQ(Passed(sliding, Sliding(2), kStart + 1s, 9), 1);
  sliding.GiveBack(Sliding(2), earlier.window);
  EXPECT_EQ(Passed(sliding, Sliding(2), kStart + 1s, 9), 1);
  sliding.GiveBack(Sliding(2), earlier.window);
  EXPECT_EQ(Passed(sliding, Sliding(2), kStart + 1s, 9), 0);
}

TEST(QuotaTest, GivingBackWhatWasNeverTakenGivesNothing) {
  for (const Quota::Config& config : {Fixed(2), Sliding(2)}) {
    Quota quota;
    const uint32_t window = quota.Peek(config, kStart).window;
    quota.GiveBack(config, window);
    EXPECT_EQ(Passed(quota, config, kStart, 9), 2);
  }
}

TEST(QuotaTest, ACalendarsWindowsAreAsLongAsTheHostSays) {
  Quota quota;
  const Quota::Config daily{.calls = 2, .kind = Kind::kCalendar};
  const auto take = [&](uint32_t number, Duration left) {
    return quota.Take(daily, Quota::Period{number, left});
  };
  EXPECT_TRUE(take(20'000, 2h).admitted);
  EXPECT_TRUE(take(20'000, 1h).admitted);
  EXPECT_EQ(take(20'000, 1h).retry_after, 1h);
  EXPECT_TRUE(take(20'001, 25h).admitted);  // The clock was put back.
}

// Goal: the sliding estimate is the formula, exactly, and retry_after is the
// first instant at which a call passes.
// Method: the model keeps every admitted call and counts those of this window
// and of the one before, in fractions without rounding.  All schedules of
// seven arrivals whose gaps are 0, 1, 3, 7 or 13 of ten parts of a window, for
// 1 to 4 calls.
TEST(QuotaTest, SlidingIsTheFormulaOnEverySmallSchedule) {
  constexpr std::array<int, 5> kGaps = {0, 1, 3, 7, 13};
  constexpr Duration kPart = 1ms;
  for (int64_t calls = 1; calls <= 4; ++calls) {
    const Quota::Config config = Sliding(calls, 10 * kPart);
    for (unsigned schedule = 0; schedule < 78'125; ++schedule) {
      Quota quota;
      std::vector<int64_t> admitted;  // When, in parts.
      int64_t at = 1'000'003;
      unsigned digits = schedule;
      for (int arrival = 0; arrival < 7; ++arrival, digits /= 5) {
        at += kGaps[digits % 5];
        int64_t current = 0;
        int64_t previous = 0;
        for (const int64_t then : admitted) {
          current += then / 10 == at / 10;
          previous += then / 10 == at / 10 - 1;
        }
        const bool expected =
            10 * (current + 1) + previous * (10 - at % 10) <= 10 * calls;
        const Instant now{at * kPart};
        const Quota::Answer answer = quota.Take(config, now);
        ASSERT_EQ(answer.admitted, expected)
            << "calls " << calls << ", schedule " << schedule << ", arrival "
            << arrival;
        if (expected) {
          admitted.push_back(at);
          ASSERT_EQ(answer.retry_after, 0ns);
        } else {
          const Instant then = now + answer.retry_after;
          ASSERT_TRUE(quota.Peek(config, then).admitted) << schedule;
          ASSERT_FALSE(quota.Peek(config, then - 1ns).admitted) << schedule;
        }
      }
    }
  }
}

// The fixed window lets twice its calls pass around an edge; sliding, a caller
// that never rests gets its calls in every span of a window, and one that
// rested until just before an edge gets them once more by the end of the next.
TEST(QuotaTest, WhatPassesInASpanThatCrossesAnEdge) {
  const auto most_in_a_span = [](const Quota::Config& config, Duration rest) {
    Quota quota;
    std::vector<Instant> passed;
    size_t most = 0;
    size_t first = 0;
    for (Instant now = kStart + rest; now < kStart + 6s; now += 1ms) {
      while (quota.Take(config, now).admitted) passed.push_back(now);
      while (first < passed.size() && now - passed[first] >= 1s) ++first;
      most = std::max(most, passed.size() - first);
    }
    return most;
  };
  EXPECT_EQ(most_in_a_span(Fixed(20), 999ms), 40u);
  EXPECT_EQ(most_in_a_span(Sliding(20), 0ms), 20u);
  EXPECT_EQ(most_in_a_span(Sliding(20), 500ms), 29u);
  EXPECT_EQ(most_in_a_span(Sliding(20), 999ms), 39u);
}

TEST(QuotaTest, ACallerThatNeverRestsLosesOneCallAWindowAtMost) {
  for (const int64_t calls : {2, 10, 100, 1000}) {
    Quota quota;
    int64_t passed = 0;
    for (Duration at = 0s; at < 100s; at += 500us) {
      passed += Passed(quota, Sliding(calls), kStart + at, 2);
    }
    EXPECT_LE(passed, 100 * calls) << calls;
    EXPECT_GE(passed, 100 * (calls - 1)) << calls;
  }
}

TEST(QuotaTest, RulesOutOfRangeAreErrors) {
  EXPECT_FALSE(Quota::Check(Fixed(2'000'000'000, 24h)));
  EXPECT_TRUE(Quota::Check(Fixed(2'000'000'001)));
  EXPECT_TRUE(Quota::Check(Fixed(-1)));
  EXPECT_TRUE(Quota::Check(Sliding(1'000'001)));
  EXPECT_TRUE(Quota::Check(Sliding(1, 9ms)));
  EXPECT_TRUE(Quota::Check(Sliding(1, 25h)));
}

TEST(QuotaTest, TheLargestNumbersDoNotOverflow) {
  Quota quota;
  const Quota::Config most = Sliding(Quota::kMostSlidingCalls, 24h);
  Instant now = Instant{} + 240h;
  for (int64_t i = 0; i < most.calls; ++i) {
    ASSERT_TRUE(quota.Take(most, now).admitted) << i;
  }
  EXPECT_EQ(quota.Take(most, now).counted, most.calls);
  now += 24h + 12h;
  EXPECT_EQ(quota.Take(most, now).counted, most.calls / 2);
}

// One request came while the wall clock was eight hours ahead.
TEST(QuotaTest, ACalendarQuotaForgetsAWallClockThatWasAhead) {
  const Quota::Config config{
      .calls = 2, .kind = Quota::Kind::kCalendar, .unit = Quota::Unit::kHour};
  Quota quota;
  const auto in = [](uint32_t hour) {
    return Quota::Period{.number = hour, .left = std::chrono::minutes(40)};
  };
  EXPECT_TRUE(quota.Take(config, in(108)).admitted);
  EXPECT_TRUE(quota.Take(config, in(108)).admitted);
  EXPECT_FALSE(quota.Take(config, in(108)).admitted);
  for (uint32_t hour = 100; hour < 112; ++hour) {
    EXPECT_TRUE(quota.Take(config, in(hour)).admitted) << hour;
    EXPECT_TRUE(quota.Take(config, in(hour)).admitted) << hour;
    EXPECT_FALSE(quota.Take(config, in(hour)).admitted) << hour;
  }
}

// Workers do not learn of the new day in the same moment.
TEST(QuotaTest, AWorkerThatIsLateAtACalendarsEdgeDoesNotBeginItAnew) {
  const Quota::Config config{.calls = 2, .kind = Quota::Kind::kCalendar};
  Quota quota;
  const Quota::Period next{.number = 8, .left = std::chrono::hours(24)};
  const Quota::Period late{.number = 7, .left = std::chrono::seconds(1)};
  int passed = 0;
  for (int i = 0; i < 5; ++i) {
    passed += quota.Take(config, next).admitted;
    passed += quota.Take(config, late).admitted;
  }
  EXPECT_EQ(passed, 2);
}

}  // namespace
}  // namespace weir
