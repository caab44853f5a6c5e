#include "weir/scenario/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace weir::scenario {
namespace {

// From the reference implementation of splitmix64 with state 0: its first
// three outputs.
TEST(RandomTest, MixIsSplitmix64) {
  EXPECT_EQ(Mix(0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(Mix(0x9e3779b97f4a7c15), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(Mix(2 * 0x9e3779b97f4a7c15), 0x06c45d188009454fu);
}

TEST(RandomTest, SameSeedAndStreamSameNumbers) {
  Random a(7, kArrivals);
  Random b(7, kArrivals);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(a.Next(), b.Next());
}

TEST(RandomTest, StreamsOfOneSeedDiffer) {
  EXPECT_NE(Random(7, kArrivals).Next(), Random(7, kAttributes).Next());
  EXPECT_NE(Random(7, kArrivals).Next(), Random(8, kArrivals).Next());
}

// Bounds are five standard errors of the mean of n = 200 000 draws.
TEST(RandomTest, MeansAreWhatTheyShouldBe) {
  constexpr int kDraws = 200'000;
  const double error = 5 / std::sqrt(static_cast<double>(kDraws));
  Random random(1, kService);
  double uniform = 0, exponential = 0, normal = 0, squares = 0, below = 0;
  for (int i = 0; i < kDraws; ++i) {
    uniform += random.Uniform();
    exponential += random.Exponential();
    const double z = random.Normal();
    normal += z;
    squares += z * z;
    below += static_cast<double>(random.Below(10));
  }
  EXPECT_NEAR(uniform / kDraws, .5, .29 * error);
  EXPECT_NEAR(exponential / kDraws, 1, error);
  EXPECT_NEAR(normal / kDraws, 0, error);
  EXPECT_NEAR(squares / kDraws, 1, 1.42 * error);
  EXPECT_NEAR(below / kDraws, 4.5, 2.9 * error);
}

TEST(RandomTest, LogAgreesWithTheLibraryWithinTwoUlp) {
  Random random(3);
  for (int i = 0; i < 200'000; ++i) {
    const double x = std::ldexp(1 + random.Uniform(),
                                static_cast<int>(random.Below(80)) - 54);
    const double expected = std::log(x);
    ASSERT_NEAR(Log(x), expected, 4.5e-16 * std::max(std::abs(expected), .25))
        << "x = " << x;
  }
}

TEST(RandomTest, ExpAgreesWithTheLibrary) {
  Random random(4);
  for (int i = 0; i < 200'000; ++i) {
    const double x = 60 * random.Uniform() - 30;
    const double expected = std::exp(x);
    ASSERT_NEAR(Exp(x), expected, 2e-15 * expected) << "x = " << x;
  }
}

// A change here changes every result ever reported.
TEST(RandomTest, StreamsArePinned) {
  Random random(1, kArrivals);
  EXPECT_EQ(random.Next(), 12766515004638871104u);
  EXPECT_EQ(random.Exponential(), 0.69926051892454633);
  EXPECT_EQ(random.Normal(), -1.9727295530872704);
}

TEST(RandomTest, BelowReachesBothEndsAndNothingElse) {
  Random random(3);
  std::array<int, 4> seen{};
  for (int i = 0; i < 1000; ++i) seen.at(random.Below(4)) += 1;
  for (const int count : seen) EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace weir::scenario
