#include "weir/scenario/histogram.h"

#include <gtest/gtest.h>

#include "weir/scenario/random.h"

namespace weir::scenario {
namespace {

TEST(HistogramTest, EveryValueIsReadBackWithinOnePart128) {
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    const auto value = static_cast<int64_t>(random.Next() >> (1 + i % 63));
    Histogram histogram;
    if (i % 100 != 0 && i > 300) continue;  // 57 KiB each.
    histogram.Add(Duration(value));
    const auto read = static_cast<double>(histogram.Quantile(.5).count());
    ASSERT_NEAR(read, static_cast<double>(value),
                static_cast<double>(value) / 256 + 1)
        << value;
  }
}

TEST(HistogramTest, QuantilesAreThoseOfTheSortedValues) {
  Random random(2);
  Histogram histogram;
  std::vector<Duration> all;
  for (int i = 0; i < 10'000; ++i) {
    all.push_back(FromSeconds(.02 * random.Exponential()));
    histogram.Add(all.back());
  }
  std::sort(all.begin(), all.end());
  for (const double ratio : {.001, .5, .9, .99, .999, 1.}) {
    const auto exact =
        all[static_cast<size_t>(std::ceil(ratio * 10'000 - 1e-9)) - 1];
    EXPECT_NEAR(ToSeconds(histogram.Quantile(ratio)), ToSeconds(exact),
                ToSeconds(exact) * .008)
        << ratio;
  }
}

TEST(HistogramTest, EmptyIsZeroAndNegativeCountsAsZero) {
  Histogram histogram;
  EXPECT_EQ(histogram.Quantile(.99), Duration{});
  histogram.Add(Duration(-5));
  EXPECT_EQ(histogram.count(), 1u);
  EXPECT_EQ(histogram.Quantile(1), Duration{});
}

TEST(HistogramTest, AddingOneToAnotherAddsTheirCounts) {
  Histogram a;
  Histogram b;
  a.Add(Duration(100));
  b.Add(Duration(1'000'000));
  a.Add(b);
  EXPECT_EQ(a.count(), 2u);
  EXPECT_EQ(a.Quantile(.5), Duration(100));
  EXPECT_NEAR(static_cast<double>(a.Quantile(1).count()), 1e6, 8e3);
}

}  // namespace
}  // namespace weir::scenario
