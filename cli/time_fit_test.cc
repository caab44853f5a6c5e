#include "time_fit.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "weir/scenario/capacity.h"
#include "weir/scenario/service_time.h"

namespace weir::cli {
namespace {

using scenario::Span;
using std::chrono::milliseconds;
using enum Span::Distribution;

// SplitMix64 as the scenario's own worlds do; rounded as nginx does if asked
// to.
TimeSample SampleOf(const Span& span, Duration unit = Duration(1)) {
  TimeSample sample;
  scenario::Random random(7);
  for (int i = 0; i < 50'000; ++i) {
    sample.Add(scenario::Draw(span, random) / unit * unit);
  }
  return sample;
}

TEST(TimeFitTest, EachDistributionIsFoundAgain) {
  const Span spans[] = {
      {.distribution = kConstant, .mean = milliseconds(20)},
      {.distribution = kExponential, .mean = milliseconds(20)},
      {.distribution = kUniform, .mean = milliseconds(20)},
      {.distribution = kLognormal, .mean = milliseconds(20), .sigma = .7},
      {.distribution = kBimodal,
       .fast = milliseconds(5),
       .slow = milliseconds(200),
       .slow_ratio = .04},
  };
  for (const Span& span : spans) {
    const TimeFit fit = FitTimes(SampleOf(span));
    EXPECT_EQ(fit.span.distribution, span.distribution);
    EXPECT_NEAR(scenario::MeanSeconds(fit.span), scenario::MeanSeconds(span),
                .03 * scenario::MeanSeconds(span));
    EXPECT_LT(fit.distance, .05) << static_cast<int>(span.distribution);
    if (span.distribution == kLognormal) {
      EXPECT_NEAR(fit.span.sigma, span.sigma, .03);
    }
    if (span.distribution == kBimodal) {
      EXPECT_NEAR(fit.span.slow_ratio, span.slow_ratio, .004);
    }
  }
}

TEST(TimeFitTest, RoundingToMillisecondsDoesNotHideTheDistribution) {
  const TimeFit fit = FitTimes(
      SampleOf({.distribution = kExponential, .mean = milliseconds(30)},
               milliseconds(1)));
  EXPECT_EQ(fit.span.distribution, kExponential);
}

TEST(TimeFitTest, ABadFitSaysSo) {
  // Three heaps, which no distribution of a scenario has.
  TimeSample sample;
  for (int i = 0; i < 999; ++i) {
    sample.Add(milliseconds(std::array{1, 50, 400}[i % 3]));
  }
  EXPECT_GT(FitTimes(sample).distance, .1);
}

TEST(TimeFitTest, TimesOfZeroAreHalfAMillisecond) {
  TimeSample sample;
  sample.Add(Duration{});
  sample.Add(Duration{});
  const TimeFit fit = FitTimes(sample);
  EXPECT_EQ(fit.span.distribution, kConstant);
  EXPECT_EQ(fit.span.mean, std::chrono::microseconds(500));
}

// The slow model: all weights summed.
TEST(TimeFitTest, ZipfIsTheExponentOfTheCollisions) {
  for (const uint64_t clients : {2u, 50u, 20'000u}) {
    for (const double zipf : {.3, .9, 1., 1.4, 2.5}) {
      double sum = 0;
      double squares = 0;
      for (uint64_t k = 1; k <= clients; ++k) {
        const double weight = std::pow(static_cast<double>(k), -zipf);
        sum += weight;
        squares += weight * weight;
      }
      EXPECT_NEAR(FitZipf(clients, squares / (sum * sum)), zipf, 1e-3)
          << clients;
      EXPECT_NEAR(TopShare(clients, zipf), 1 / sum, 1e-5 / sum);
    }
  }
}

TEST(TimeFitTest, EqualClientsAreNotZipf) {
  EXPECT_EQ(FitZipf(100, .01), 0);
  EXPECT_EQ(FitZipf(100, .009), 0);
  EXPECT_EQ(FitZipf(1, 1), 0);
  EXPECT_EQ(FitZipf(100, 1), 3);
}

}  // namespace
}  // namespace weir::cli
