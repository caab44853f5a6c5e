#include "weir/rate/tiers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace weir {
namespace {

using namespace std::chrono_literals;
using Config = TierTable::Config;

constexpr Instant kStart{1000s};

// The original's own numbers.
Config Original() {
  return {.max = 40'000, .tiers = {{70, 20}, {80, 50}, {100, 100}}};
}

bool Pass(Tiers& tiers, const TierTable& table, Instant now,
          uint64_t random = 0) {
  return tiers.Offer(table, now, random).admitted;
}

// Goal: of r requests in a window f(r) pass, for every r from 1 to ten times
// the 150 000 at which the original fails.
// Method: f as the original's configuration says it in words, in hundredths.
TEST(TiersTest, OfEveryNumberOfRequestsTheOracleSaysHowManyPass) {
  const TierTable table(Original());
  Tiers tiers;
  int64_t passed = 0;
  for (int64_t r = 1; r <= 1'500'000; ++r) {
    passed += Pass(tiers, table, kStart);
    const int64_t expected =
        r <= 28'000   ? r
        : r <= 32'000 ? r - (r - 28'000) * 20 / 100
        : r <= 40'000 ? 31'200 + (r - 32'000) - (r - 32'000) * 50 / 100
                      : 35'200;
    ASSERT_EQ(passed, expected) << r;
  }
}

// Goal: whatever the tiers, each request falls into the highest tier whose
// limit it exceeds.
// Method: a slow model without a table, for 2000 random configurations: last
// limits below and above 100 %, one tier, shares of 0 and 100 %.
TEST(TiersTest, AnyTiersWorkAlsoWithAnotherLastLimit) {
  std::mt19937 random(2);
  const auto below = [&](int n) { return static_cast<int32_t>(random() % n); };
  for (int run = 0; run < 2000; ++run) {
    Config config{.max = 1 + below(300), .tiers = {}};
    int32_t limit = below(50);
    for (int i = below(8); i >= 0; --i) {
      config.tiers.push_back({limit, below(101)});
      limit += 1 + below(60);
    }
    ASSERT_FALSE(TierTable::Check(config));
    const TierTable table(config);
    for (int64_t n = 1; n <= 700; ++n) {
      int32_t expected = 0;
      for (const auto& tier : config.tiers) {
        if (n * 100 > config.max * tier.limit_percent) {
          expected = tier.drop_percent;
        }
      }
      ASSERT_EQ(table.Find(n).drop_percent, expected)
          << "run " << run << ", request " << n;
    }
    Tiers tiers;
    int64_t passed = 0;
    for (int64_t r = 1; r <= 700; ++r) {
      passed += Pass(tiers, table, kStart);
      ASSERT_NEAR(static_cast<double>(passed),
                  static_cast<double>(table.AdmittedPercent(r)) / 100,
                  static_cast<double>(config.tiers.size()))
          << "run " << run << ", requests " << r;
    }
  }
}

TEST(TiersTest, TheRequestAtALimitIsStillBelowIt) {
  const TierTable table(Original());
  EXPECT_EQ(table.Find(28'000).drop_percent, 0);
  EXPECT_EQ(table.Find(28'001).drop_percent, 20);
  EXPECT_EQ(table.Find(32'000).drop_percent, 20);
  EXPECT_EQ(table.Find(32'001).drop_percent, 50);
  EXPECT_EQ(table.Find(40'000).drop_percent, 50);
  EXPECT_EQ(table.Find(40'001).drop_percent, 100);
  EXPECT_EQ(table.Find(int64_t{1} << 60).drop_percent, 100);
}

TEST(TiersTest, EachWindowBeginsWithItsFirstRequest) {
  const TierTable table({.max = 10, .tiers = {{100, 100}}});
  Tiers tiers;
  for (int window = 0; window < 5; ++window) {
    const Instant from = kStart + window * 1s;
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(Pass(tiers, table, from + i * 50ms));
    }
    const Tiers::Answer answer = tiers.Offer(table, from + 600ms, 0);
    EXPECT_FALSE(answer.admitted);
    EXPECT_EQ(answer.number, 11);
    EXPECT_EQ(answer.retry_after, 400ms);
  }
}

TEST(TiersTest, AClockThatIsLateDoesNotBeginTheWindowAnew) {
  const TierTable table({.max = 10, .tiers = {{100, 100}}});
  Tiers tiers;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Pass(tiers, table, kStart));
  EXPECT_FALSE(Pass(tiers, table, kStart - 1ns));
  EXPECT_FALSE(Pass(tiers, table, kStart));
}

TEST(TiersTest, AnotherTableGoesOnWithTheSameWindow) {
  const TierTable small({.max = 10, .tiers = {{100, 100}}});
  const TierTable large({.max = 15, .tiers = {{100, 100}}});
  Tiers tiers;
  for (int i = 0; i < 12; ++i) (void)tiers.Offer(small, kStart, 0);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Pass(tiers, large, kStart));
  EXPECT_FALSE(Pass(tiers, large, kStart));
}

TEST(TiersTest, RandomDropsTheShareOfEachTier) {
  Config config = Original();
  config.random = true;
  const TierTable table(config);
  std::mt19937_64 random(3);
  Tiers tiers;
  std::array<int64_t, 3> passed{};
  for (int64_t n = 1; n <= 60'000; ++n) {
    const bool pass = Pass(tiers, table, kStart, random());
    if (n <= 28'000) {
      ASSERT_TRUE(pass) << n;
    }
    if (n > 40'000) {
      ASSERT_FALSE(pass) << n;
    }
    if (n > 28'000 && n <= 32'000) passed[0] += pass;
    if (n > 32'000 && n <= 40'000) passed[1] += pass;
  }
  // Three standard deviations of the binomial distribution.
  EXPECT_NEAR(passed[0], 3200, 3 * std::sqrt(4000 * .2 * .8));
  EXPECT_NEAR(passed[1], 4000, 3 * std::sqrt(8000 * .5 * .5));
}

// Admitted of `rate` requests a second, evenly spaced, in the fourth second.
struct Second {
  int64_t passed = 0;
  Duration longest_gap{};
};
Second PlaySmooth(const TierTable& table, int64_t rate) {
  Tiers tiers;
  Second second;
  Instant last = kStart + 3s;
  for (int64_t i = 0; i < 4 * rate; ++i) {
    const Instant now = kStart + Duration(i * 1'000'000'000 / rate);
    if (!Pass(tiers, table, now) || now < kStart + 3s) continue;
    ++second.passed;
    second.longest_gap = std::max(second.longest_gap, now - last);
    last = now;
  }
  second.longest_gap = std::max(second.longest_gap, kStart + 4s - last);
  return second;
}

TEST(TiersTest, SmoothAdmitsTheSameTotalWithoutABlackout) {
  Config config = Original();
  const TierTable window(config);
  config.smooth = true;
  const TierTable smooth(config);
  for (const int64_t rate :
       {20'000, 28'000, 30'000, 36'000, 40'000, 80'000, 150'000, 200'000}) {
    const Second second = PlaySmooth(smooth, rate);
    const double expected =
        static_cast<double>(smooth.AdmittedPercent(rate)) / 100;
    // Chosen: a thousandth for what the ten parts round off.
    EXPECT_NEAR(static_cast<double>(second.passed), expected, expected / 1000)
        << rate;
    EXPECT_LE(second.longest_gap, 100us) << rate;
    if (rate == 80'000) {
      EXPECT_GE(PlaySmooth(window, rate).longest_gap, 499ms);
    }
  }
}

// After a step from nothing the estimate takes a window to rise, and what
// passes until then is the price of evenness.
TEST(TiersTest, SmoothAdmitsLessThanTwiceTheMostInTheFirstSecondOfAFlood) {
  Config config = Original();
  config.smooth = true;
  const TierTable table(config);
  Tiers tiers;
  int64_t passed = 0;
  for (int64_t i = 0; i < 150'000; ++i) {
    passed +=
        Pass(tiers, table, kStart + Duration(i * 1'000'000'000 / 150'000));
  }
  EXPECT_GT(passed, 70'000);
  EXPECT_LT(passed, 87'000);
}

TEST(TiersTest, PeekCountsNothing) {
  for (const bool smooth : {false, true}) {
    Config config{.max = 10, .tiers = {{50, 50}, {100, 100}}};
    config.smooth = smooth;
    const TierTable table(config);
    Tiers tiers;
    for (int i = 0; i < 5; ++i) (void)tiers.Offer(table, kStart, 0);
    const auto before = tiers.Peek(table, kStart);
    EXPECT_EQ(tiers.Peek(table, kStart).number, before.number);
    EXPECT_TRUE(before.admitted);
  }
}

TEST(TiersTest, WrongTiersAreErrors) {
  const auto is_wrong = [](Config config) {
    return TierTable::Check(config).has_value();
  };
  EXPECT_FALSE(is_wrong(Original()));
  EXPECT_TRUE(is_wrong({.max = 0, .tiers = {{70, 20}}}));
  EXPECT_TRUE(is_wrong({.max = 10, .tiers = {}}));
  EXPECT_TRUE(is_wrong({.max = 10, .tiers = {{70, 20}, {70, 50}}}));
  EXPECT_TRUE(is_wrong({.max = 10, .tiers = {{80, 20}, {70, 50}}}));
  EXPECT_TRUE(is_wrong({.max = 10, .tiers = {{70, 101}}}));
  EXPECT_TRUE(is_wrong({.max = 10, .tiers = {{-1, 10}}}));
  EXPECT_TRUE(is_wrong({.max = 10,
                        .tiers = {{1, 1},
                                  {2, 1},
                                  {3, 1},
                                  {4, 1},
                                  {5, 1},
                                  {6, 1},
                                  {7, 1},
                                  {8, 1},
                                  {9, 1}}}));
  EXPECT_TRUE(is_wrong({.max = 10, .tiers = {{70, 20}}, .window = 11s}));
}

}  // namespace
}  // namespace weir
