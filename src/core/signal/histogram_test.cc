#include "weir/signal/histogram.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;

TEST(HistogramTest, EveryValueIsReadBackWithinOneThirtySecond) {
  // All values up to 1 ms, then each 1000th to beyond two minutes.
  for (int64_t us = 16; us < 134'000'000; us += us < 1000 ? 1 : 1 + us / 1000) {
    const int64_t back =
        Histogram::Value(Histogram::Step(microseconds(us))).count() / 1000;
    ASSERT_LE(std::abs(back - us) * 32, us + 32)
        << us << " us read as " << back;
  }
}

TEST(HistogramTest, StepsNeverGoBackAndLeaveNoGap) {
  size_t before = 0;
  for (int64_t us = 0; us < 70'000; ++us) {
    const size_t step = Histogram::Step(microseconds(us));
    ASSERT_GE(step, before);
    ASSERT_LE(step, before + 1);
    before = step;
  }
}

TEST(HistogramTest, ValuesBeyondItsRangeCountAtItsEnds) {
  EXPECT_EQ(Histogram::Step(Duration(-5)), 0u);
  EXPECT_EQ(Histogram::Step(hours(30)), Histogram::kSteps - 1);
}

TEST(HistogramTest, QuantilesAreThoseOfTheCountedValues) {
  const auto histogram = std::make_unique<Histogram>();
  Histogram::Counts counts{};
  EXPECT_EQ(Histogram::Quantile(counts, .5), Duration(0));
  for (int i = 1; i <= 1000; ++i) histogram->Record(microseconds(i * 100));
  histogram->AddTo(counts);
  EXPECT_NEAR(ToSeconds(Histogram::Quantile(counts, .5)), .05, .002);
  EXPECT_NEAR(ToSeconds(Histogram::Quantile(counts, .99)), .099, .004);
  EXPECT_NEAR(ToSeconds(Histogram::Quantile(counts, 1)), .1, .004);
}

}  // namespace
}  // namespace weir
