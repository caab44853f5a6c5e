// Conformance of brpc's two adaptive limiters: its own tests, and trajectories
// that the original gave when run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "samples_test.h"
#include "weir/rivals/brpc_auto.h"
#include "weir/rivals/brpc_timeout.h"

namespace weir::rivals {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

// A window short enough for ten or a hundred samples, as brpc's tests use it.
BrpcWindow::Config ShortWindow(double tolerated_failures) {
  return {.length = 10ms,
          .least_samples = 5,
          .most_samples = 1000,
          .tolerated_failures = tolerated_failures};
}

// The least latency after one window of `succeeded` answers of 100 us and
// `failed` of 1000 us.
int64_t LeastLatency(int succeeded, int failed, double tolerated_failures) {
  BrpcAuto::Config config;
  config.window = ShortWindow(tolerated_failures);
  BrpcAuto law(config);
  // 100 samples over exactly the window's length, the last one at its end.
  for (int i = 0; i < succeeded + failed; ++i) {
    const bool fails = i < failed;
    const auto at = i + 1 == succeeded + failed ? 10ms : Duration(i * 100us);
    law.Learn({.now = kStart + at,
               .latency = fails ? 1000us : 100us,
               .outcome = fails ? Outcome::kError : Outcome::kOk});
  }
  return law.least_latency_us();
}

// The formula's values; brpc's tests allow 180..250, 80..130, 80..130,
// 450..650 and 7000..9000 around them.
TEST(BrpcAutoTest, ChargesFailuresToSuccesses) {
  EXPECT_EQ(LeastLatency(90, 10, 0), 212);
  EXPECT_EQ(LeastLatency(90, 10, 0.2), 100);
  EXPECT_EQ(LeastLatency(90, 10, 0.1), 100);
  EXPECT_EQ(LeastLatency(50, 50, 0.1), 545);
  EXPECT_EQ(LeastLatency(10, 90, 0.1), 8100);
}

struct WindowResult {
  int limit;
  int explore_percent;
  friend bool operator==(const WindowResult&, const WindowResult&) = default;
  friend std::ostream& operator<<(std::ostream& out, const WindowResult& r) {
    return out << r.limit << " (" << r.explore_percent << " %)";
  }
};

// Windows of a second with 200 sampled answers, 5 ms apart, `failing` of which
// fail after 100 ms; the others of `per_second` successes come between them
// and count for the rate alone.
class BrpcRun {
 public:
  std::vector<WindowResult> Windows(int count, Duration latency, int per_second,
                                    int failing = 0) {
    std::vector<WindowResult> results;
    for (int i = 0; i < count; ++i) {
      Window(latency, per_second, failing);
      results.push_back(
          {law_.Limit(now_), static_cast<int>(law_.explore() * 100 + 0.5)});
    }
    return results;
  }
  int64_t least_latency_us() const { return law_.least_latency_us(); }

 private:
  void Window(Duration latency, int per_second, int failing) {
    const int unsampled = per_second - (200 - failing);
    for (int sample = 0; sample < 200; ++sample) {
      now_ += 5ms;
      const bool fails = sample < failing;
      Answer(now_, fails ? Duration(100ms) : latency,
             fails ? Outcome::kError : Outcome::kOk);
      // Too soon after the sample to be one.
      const int upto = unsampled * (sample + 1) / 200;
      for (int i = unsampled * sample / 200; i < upto; ++i) {
        Answer(now_ + 1us, latency, Outcome::kOk);
      }
    }
  }
  void Answer(Instant at, Duration latency, Outcome outcome) {
    law_.Learn({.now = at, .latency = latency, .outcome = outcome});
  }

  BrpcAuto law_{{}};
  Instant now_ = kStart;
};

TEST(BrpcAutoTest, FollowsTheOriginalsTrajectory) {
  BrpcRun run;
  EXPECT_THAT(run.Windows(8, 10ms, 1000),
              ElementsAreArray(std::vector<WindowResult>(8, {13, 30})));
  using R = WindowResult;
  EXPECT_THAT(run.Windows(8, 20ms, 2000),
              ElementsAre(R{25, 28}, R{25, 26}, R{24, 24}, R{24, 22}, R{24, 20},
                          R{23, 18}, R{23, 16}, R{22, 14}));
  EXPECT_THAT(run.Windows(8, 12ms, 2000),
              ElementsAre(R{22, 12}, R{22, 10}, R{21, 8}, R{21, 6}, R{21, 6},
                          R{21, 6}, R{21, 6}, R{21, 6}));
  EXPECT_EQ(run.least_latency_us(), 10'000);
}

TEST(BrpcAutoTest, LimitRestsOnTheBestHoweverLargeTheExcess) {
  BrpcRun run;
  run.Windows(8, 10ms, 1000);
  run.Windows(12, 20ms, 2000);
  EXPECT_THAT(run.Windows(8, 40ms, 2000),
              ElementsAreArray(std::vector<WindowResult>(8, {21, 6})));
}

TEST(BrpcAutoTest, FailuresLowerTheLimitAndAWindowOfThemHalvesIt) {
  BrpcRun run;
  using R = WindowResult;
  EXPECT_THAT(run.Windows(3, 10ms, 5000),
              ElementsAre(R{65, 30}, R{65, 30}, R{65, 30}));
  EXPECT_THAT(run.Windows(3, 10ms, 5000, 20),
              ElementsAre(R{64, 28}, R{63, 26}, R{62, 24}));
  EXPECT_THAT(run.Windows(2, 10ms, 5000, 200),
              ElementsAre(R{31, 24}, R{15, 24}));
}

TEST(BrpcAutoTest, FloorIsTheNumberOfWorkers) {
  BrpcRun run;
  EXPECT_EQ(run.Windows(1, 1ms, 1000).back().limit, 9);
}

// Goal: within 25 to 50 s it cuts its limit to .9 of the product, ignores
// answers for twice the latency and then learns the least latency anew, here
// one four times as long.
TEST(BrpcAutoTest, RemeasuringTakesALoadedLatencyForTheLeast) {
  BrpcRun run;
  run.Windows(2, 10ms, 2000);
  bool cut = false;
  int windows = 0;
  for (; windows < 60 && run.least_latency_us() < 40'000; ++windows) {
    const int limit = run.Windows(1, 40ms, 2000).back().limit;
    cut = cut || (limit < 20 && run.least_latency_us() == 10'000);
  }
  EXPECT_TRUE(cut);
  EXPECT_GE(windows, 22);
  EXPECT_LE(windows, 50);
}

class BrpcTimeoutTest : public testing::Test {
 protected:
  void Answer(int count, Outcome outcome = Outcome::kOk) {
    for (int i = 0; i < count; ++i) {
      now_ += 1us;
      law_.Learn({.now = now_, .latency = 50us, .outcome = outcome});
    }
  }
  void ExpectCounts(int succeeded, int failed) {
    EXPECT_EQ(law_.window().succeeded(), succeeded);
    EXPECT_EQ(law_.window().failed(), failed);
  }

  // Every answer a sample, ten at most to a window.
  BrpcTimeout law_{{.window = {.length = 10ms,
                               .least_samples = 5,
                               .most_samples = 10,
                               .sampling_interval = Duration(1)}}};
  Instant now_ = kStart;
};

TEST_F(BrpcTimeoutTest, WindowEndsWhenItIsOldEnoughAndHasFive) {
  Answer(4);
  ExpectCounts(4, 0);
  now_ += 10ms;
  Answer(1);
  ExpectCounts(0, 0);
  EXPECT_EQ(law_.average(), 50us);

  Answer(5);
  now_ += 10ms;
  Answer(1);
  ExpectCounts(0, 0);
  EXPECT_EQ(law_.average(), 50us);
}

TEST_F(BrpcTimeoutTest, WindowEndsWhenItIsFull) {
  Answer(9);
  ExpectCounts(9, 0);
  Answer(1);
  ExpectCounts(0, 0);
  EXPECT_EQ(law_.average(), 50us);
}

TEST_F(BrpcTimeoutTest, CountsSuccessesAndFailuresApart) {
  Answer(6);
  ExpectCounts(6, 0);
  law_.ResetWindow(now_);
  Answer(3);
  Answer(3, Outcome::kError);
  ExpectCounts(3, 3);
}

TEST_F(BrpcTimeoutTest, AWindowOfFailuresDoublesTheAverage) {
  Answer(10);
  Answer(10, Outcome::kError);
  EXPECT_EQ(law_.average(), 100us);
}

TEST(BrpcWindowTest, TakesOneSampleEachHundredMicroseconds) {
  BrpcTimeout law({});
  for (const Duration at : {0us, 1us, 101us, 102us}) {
    law.Learn({.now = kStart + at, .latency = 50us});
  }
  EXPECT_EQ(law.window().succeeded(), 2);
  EXPECT_EQ(law.window().failed(), 0);
}

TEST(BrpcTimeoutAdmissionTest, AloneOrFewAndFast) {
  BrpcTimeout fast({.timeout = 500ms});
  EXPECT_TRUE(fast.Admit({.now = kStart, .inflight = 99}));
  EXPECT_FALSE(fast.Admit({.now = kStart, .inflight = 100}));

  BrpcTimeout slow({.timeout = 500ms, .initial_average = 500ms});
  EXPECT_TRUE(slow.Admit({.now = kStart, .inflight = 0}));
  EXPECT_FALSE(slow.Admit({.now = kStart, .inflight = 1}));
}

}  // namespace
}  // namespace weir::rivals
