#include "weir/scenario/random.h"

#include <gtest/gtest.h>

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

TEST(RandomTest, BelowReachesBothEndsAndNothingElse) {
  Random random(3);
  std::array<int, 4> seen{};
  for (int i = 0; i < 1000; ++i) seen.at(random.Below(4)) += 1;
  for (const int count : seen) EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace weir::scenario
