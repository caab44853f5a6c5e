// Conformance of Envoy's two filters: what its own tests assert, and
// trajectories computed from the gradient controller's formula.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "samples_test.h"
#include "weir/rivals/envoy_admission.h"
#include "weir/rivals/envoy_gradient.h"
#include "weir/splitmix64.h"

namespace weir::rivals {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

std::vector<int> Trajectory(const EnvoyGradient::Config& config, int limit,
                            Duration least, Duration sample, int windows) {
  std::vector<int> limits;
  for (int i = 0; i < windows; ++i) {
    limit = EnvoyGradient::NextLimit(config, limit, least, sample);
    limits.push_back(limit);
  }
  return limits;
}

TEST(EnvoyGradientTest, FormulaGivesTheComputedTrajectories) {
  EXPECT_THAT(Trajectory({}, 3, 5ms, 5ms, 12),
              ElementsAre(5, 8, 13, 20, 30, 43, 61, 84, 115, 155, 207, 274));
  EXPECT_THAT(Trajectory({}, 200, 5ms, 10ms, 12),
              ElementsAre(136, 94, 66, 47, 34, 25, 19, 15, 12, 10, 8, 7));
  EXPECT_THAT(
      Trajectory({}, 200, 5ms, 6250us, 12),
      ElementsAre(214, 228, 243, 258, 274, 290, 307, 324, 342, 360, 378, 397));
  EXPECT_THAT(Trajectory({}, 1000, 5ms, 100ms, 12),
              ElementsAre(522, 277, 150, 83, 47, 28, 17, 11, 7, 5, 4, 3));
  const EnvoyGradient::Config config{.floor = 7, .buffer = 0.1};
  EXPECT_THAT(Trajectory(config, 7, 5ms, 4ms, 10),
              ElementsAre(12, 20, 32, 50, 77, 116, 172, 251, 363, 521));
  EXPECT_THAT(Trajectory(config, 521, 5ms, 6ms, 10),
              ElementsAre(499, 478, 459, 441, 424, 408, 393, 379, 366, 353));
}

// A controller and the time it lives in.
class Driver {
 public:
  explicit Driver(const EnvoyGradient::Config& config) : law_(config) {
    limit();
  }

  int limit() { return law_.Limit(now_); }
  void Advance(Duration by) { now_ += by; }
  // Requests that started now and took that long.
  void Finish(int count, Duration latency, Outcome outcome = Outcome::kOk) {
    now_ += latency;
    for (int i = 0; i < count; ++i) {
      law_.Learn({.now = now_, .latency = latency, .outcome = outcome});
    }
  }
  // One window of five samples; the limit after it.
  int Window(Duration latency) {
    Finish(5, latency);
    Advance(101ms);
    return limit();
  }
  EnvoyGradient& law() { return law_; }
  Instant now() const { return now_; }

 private:
  EnvoyGradient law_;
  Instant now_ = kStart;
};

TEST(EnvoyGradientTest, MeasuresTheLeastLatencyAtTheFloor) {
  Driver driver({.floor = 7});
  EXPECT_EQ(driver.limit(), 7);
  driver.Finish(49, 13ms);
  EXPECT_TRUE(driver.law().measuring());
  EXPECT_EQ(driver.limit(), 7);
  driver.Finish(1, 13ms);
  EXPECT_FALSE(driver.law().measuring());
  EXPECT_EQ(driver.law().least_latency(), 13ms);
}

TEST(EnvoyGradientTest, TakesTheMedianOfTheSamples) {
  Driver driver({.least_samples = 5});
  for (const Duration latency : {4ms, 1ms, 5ms, 2ms, 3ms}) {
    driver.Finish(1, latency);
  }
  EXPECT_EQ(driver.law().least_latency(), 3ms);
}

TEST(EnvoyGradientTest, CancelledRequestsAreNoSamples) {
  Driver driver({.least_samples = 5});
  driver.Finish(100, 1ms, Outcome::kCancelled);
  EXPECT_TRUE(driver.law().measuring());
}

TEST(EnvoyGradientTest, GrowsInEachWindowThatStaysWithinItsBuffer) {
  Driver driver({.buffer = 0.5, .least_samples = 5});
  driver.Finish(5, 5ms);
  int before = driver.limit();
  for (int window = 0; window < 10; ++window) {
    const int limit = driver.Window(6ms);
    EXPECT_GT(limit, before) << "window " << window;
    before = limit;
  }
}

TEST(EnvoyGradientTest, FollowsItsFormulaFromWindowToWindow) {
  Driver driver({.floor = 7, .buffer = 0.1, .least_samples = 5});
  driver.Finish(5, 5ms);
  std::vector<int> limits;
  for (int i = 0; i < 10; ++i) limits.push_back(driver.Window(4ms));
  EXPECT_THAT(limits, ElementsAre(12, 20, 32, 50, 77, 116, 172, 251, 363, 521));
  limits.clear();
  for (int i = 0; i < 10; ++i) limits.push_back(driver.Window(6ms));
  EXPECT_THAT(limits,
              ElementsAre(499, 478, 459, 441, 424, 408, 393, 379, 366, 353));
}

TEST(EnvoyGradientTest, WindowsWithoutSamplesChangeNothing) {
  Driver driver({.least_samples = 5});
  driver.Finish(5, 5ms);
  const int before = driver.Window(5ms);
  driver.Advance(5 * 100ms);
  EXPECT_EQ(driver.limit(), before);
}

TEST(EnvoyGradientTest, MeasuringAgainDipsToTheFloorAndRestoresTheLimit) {
  Driver driver({.least_interval = 30s, .least_samples = 5, .jitter = 0.0});
  driver.Finish(5, 5ms);
  int limit = 0;
  for (int i = 0; i < 10; ++i) limit = driver.Window(5ms);
  ASSERT_GT(limit, 100);

  driver.Advance(29s);
  EXPECT_EQ(driver.limit(), 3);
  // Requests that had started before the dip do not count.
  for (int i = 0; i < 5; ++i) {
    driver.law().Learn({.now = driver.now(), .latency = 10s});
  }
  EXPECT_EQ(driver.limit(), 3);
  driver.Finish(5, 13ms);
  EXPECT_EQ(driver.limit(), limit);
  EXPECT_EQ(driver.law().least_latency(), 13ms);
}

TEST(EnvoyGradientTest, FiveWindowsAtTheFloorMeasureAnew) {
  Driver driver({.least_samples = 5});
  driver.Finish(5, 1ms);
  int windows = 0;
  for (; windows < 100 && !driver.law().measuring(); ++windows) {
    driver.Window(10ms);
  }
  // The fifth window of ten times the latency starts another measurement, in
  // which five windows' worth of samples is ample.
  EXPECT_EQ(windows, 5);
  driver.Finish(5, 10ms);
  EXPECT_EQ(driver.law().least_latency(), 10ms);
  int before = driver.limit();
  for (int i = 0; i < 10; ++i) {
    const int limit = driver.Window(10ms);
    EXPECT_GE(limit, before);
    before = limit;
  }
}

TEST(EnvoyGradientTest, JitterIsTheDrawModuloItsRange) {
  EXPECT_EQ(EnvoyGradient::Jittered(100s, 0.1, 15'000), 105s);
  EXPECT_EQ(EnvoyGradient::Jittered(45s, 0.0, 15'000), 45s);
}

struct RefusalCase {
  int64_t successes;
  double threshold;
  double aggression;
  double ceiling;
  double ratio;
};

TEST(EnvoyAdmissionTest, RefusesTheShareOfItsTable) {
  constexpr RefusalCase kCases[] = {
      {100, 1.0, 1, 0.8, 0.00}, {95, 1.0, 1, 0.8, 0.05},
      {75, 1.0, 1, 0.8, 0.25},  {100, 1.0, 2, 0.8, 0.00},
      {95, 1.0, 2, 0.8, 0.22},  {75, 1.0, 2, 0.8, 0.50},
      {100, .95, 1, 0.8, 0.00}, {98, .95, 1, 0.8, 0.00},
      {95, .95, 1, 0.8, 0.00},  {90, .95, 1, 0.8, 0.05},
      {75, .95, 1, 0.8, 0.20},  {50, .95, 1, 0.8, 0.46},
      {100, 1.0, 1, 0.1, 0.00}, {95, 1.0, 1, 0.1, 0.05},
      {80, 1.0, 1, 0.1, 0.10},  {0, 1.0, 1, 0.1, 0.10},
  };
  for (const RefusalCase& c : kCases) {
    const double ratio = EnvoyAdmission::RefusalRatio(
        {.threshold = c.threshold,
         .aggression = c.aggression,
         .ceiling = c.ceiling},
        {.requests = 100, .successes = c.successes});
    EXPECT_NEAR(ratio, c.ratio, 0.01)
        << c.successes << " of 100, threshold " << c.threshold
        << ", aggression " << c.aggression;
  }
}

// Answers recorded by a controller with a window of five seconds.
class AdmissionHistoryTest : public testing::Test {
 protected:
  void Record(Outcome outcome) {
    law_.Learn({.now = now_, .outcome = outcome});
  }
  // One a second for five seconds, then one more.
  void RecordSixSeconds(Outcome outcome) {
    for (int i = 0; i < 5; ++i) {
      Record(outcome);
      now_ += 1s;
    }
    Record(outcome);
  }
  void ExpectCounts(int64_t requests, int64_t successes) {
    const EnvoyAdmission::Counts counts = law_.counts(now_);
    EXPECT_EQ(counts.requests, requests);
    EXPECT_EQ(counts.successes, successes);
  }

  EnvoyAdmission law_{{.window = 5s}};
  Instant now_ = kStart;
};

TEST_F(AdmissionHistoryTest, CountsFailuresAndSuccesses) {
  Record(Outcome::kError);
  ExpectCounts(1, 0);
  Record(Outcome::kOk);
  ExpectCounts(2, 1);
}

TEST_F(AdmissionHistoryTest, ForgetsWhatLeftTheWindow) {
  RecordSixSeconds(Outcome::kOk);
  ExpectCounts(5, 5);
  now_ += 1s;
  RecordSixSeconds(Outcome::kError);
  ExpectCounts(5, 0);
  now_ += 1s;
  ExpectCounts(4, 0);
  now_ += 24h;
  ExpectCounts(0, 0);
}

TEST_F(AdmissionHistoryTest, KeepsAllOfTheWindow) {
  Record(Outcome::kOk);
  now_ += 1s;
  Record(Outcome::kOk);
  now_ += 3s;
  Record(Outcome::kOk);
  ExpectCounts(3, 3);
}

TEST_F(AdmissionHistoryTest, AveragesTheRateOverTheWholeWindow) {
  EXPECT_EQ(law_.average_rps(now_), 0);
  Record(Outcome::kOk);
  Record(Outcome::kOk);
  EXPECT_EQ(law_.average_rps(now_), 0);
  for (int i = 0; i < 3; ++i) Record(Outcome::kOk);
  EXPECT_EQ(law_.average_rps(now_), 1);
  now_ += 5s;
  EXPECT_EQ(law_.average_rps(now_), 0);
}

TEST(EnvoyAdmissionTest, RefusesAllButOneInAHundredWhenAllFailed) {
  EnvoyAdmission law({.ceiling = 1.0});
  for (int i = 0; i < 100; ++i) {
    law.Learn({.now = kStart, .outcome = Outcome::kError});
  }
  // p = 100 / 101, compared with the draw's last four digits.
  EXPECT_FALSE(law.Admit({.now = kStart, .draw = 9899}));
  EXPECT_FALSE(law.Admit({.now = kStart, .draw = 70'000}));
  EXPECT_TRUE(law.Admit({.now = kStart, .draw = 9901}));
}

TEST(EnvoyAdmissionTest, LeavesLowRatesAlone) {
  EnvoyAdmission law({.ceiling = 1.0, .least_rps = 10});
  for (int i = 0; i < 299; ++i) {
    law.Learn({.now = kStart, .outcome = Outcome::kError});
  }
  EXPECT_TRUE(law.Admit({.now = kStart}));
  law.Learn({.now = kStart, .outcome = Outcome::kError});
  EXPECT_FALSE(law.Admit({.now = kStart}));
}

TEST(EnvoyAdmissionTest, ThrottlesAFailingServiceAndForgivesItWhenIdle) {
  EnvoyAdmission law({.aggression = 2.0, .ceiling = 1.0});
  SplitMix64 random(1);
  for (int i = 0; i < 300; ++i) {
    law.Learn({.now = kStart, .outcome = Outcome::kError});
  }
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    if (law.Admit({.now = kStart, .draw = random.Next()})) {
      law.Learn({.now = kStart, .outcome = Outcome::kError});
    } else {
      ++refused;
    }
  }
  EXPECT_NEAR(refused, 300 * 0.98, 300 * 0.05);
  int admitted = 0;
  for (int i = 0; i < 100; ++i) {
    const Instant later = kStart + 120s;
    if (law.Admit({.now = later, .draw = random.Next()})) ++admitted;
    law.Learn({.now = later});
  }
  EXPECT_EQ(admitted, 100);
}

}  // namespace
}  // namespace weir::rivals
