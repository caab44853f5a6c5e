#include "weir/client/adaptive_throttle.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "weir/splitmix64.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using Verdict = AdaptiveThrottle::Verdict;

constexpr Instant kStart{1000s};
constexpr auto kClass = Criticality::kImportant;

TEST(AdaptiveThrottleTest, TheFormulaIsThatOfTheBook) {
  const auto ratio = [](double k, int64_t requests, int64_t accepts) {
    return AdaptiveThrottle::RefusalRatio(k, requests, accepts);
  };
  EXPECT_DOUBLE_EQ(ratio(2, 100, 100), 0);
  EXPECT_DOUBLE_EQ(ratio(2, 100, 50), 0);
  EXPECT_DOUBLE_EQ(ratio(2, 100, 25), 50. / 101);
  EXPECT_DOUBLE_EQ(ratio(2, 100, 0), 100. / 101);
  EXPECT_DOUBLE_EQ(ratio(2, 1000, 400), 200. / 1001);
  EXPECT_NEAR(ratio(1.1, 100, 90), 1. / 101, 1e-12);
  EXPECT_DOUBLE_EQ(ratio(2, 0, 0), 0);
}

// A caller that asks at a steady rate, and a backend that takes `capacity` per
// second (a bucket of a hundredth) when it is up, and says so at once.
struct Caller {
  AdaptiveThrottle throttle{AdaptiveThrottle::Config{}};
  double rate = 1000;
  double capacity = 100;
  bool up = true;
  SplitMix64 draws{7};
  Instant now = kStart;
  double room = 0;
  int64_t sent = 0;
  int64_t accepted = 0;
  int64_t refused_here = 0;

  bool Step() {
    now += FromSeconds(1 / rate);
    room = std::min(room + capacity / rate, std::max(capacity / 100, 1.));
    if (throttle.Admit(kClass, now, draws.Next()) == Verdict::kRefuse) {
      ++refused_here;
      return false;
    }
    ++sent;
    const bool takes = up && room >= 1;
    if (takes) {
      room -= 1;
      ++accepted;
    }
    throttle.Learn(kClass, takes, now);
    return takes;
  }
  void Play(Duration time) {
    const Instant end = now + time;
    while (now < end) Step();
  }
  void Forget() { sent = accepted = refused_here = 0; }
};

// Of what is sent, the share that is accepted at ten times the capacity.
double AcceptedRatio(Caller& run) {
  run.Play(130s);
  run.Forget();
  run.Play(60s);
  EXPECT_NEAR(static_cast<double>(run.accepted), run.capacity * 60,
              run.capacity * 2);
  return static_cast<double>(run.accepted) / static_cast<double>(run.sent);
}

TEST(AdaptiveThrottleTest, WithKTwoHalfOfWhatIsSentIsAccepted) {
  Caller run{.rate = 10'000, .capacity = 1000};
  EXPECT_NEAR(AcceptedRatio(run), 0.5, 0.01);
}

TEST(AdaptiveThrottleTest, WithKOnePointOneNineTenthsAreAccepted) {
  Caller run{AdaptiveThrottle({.k = 1.1}), 10'000, 1000};
  EXPECT_NEAR(AcceptedRatio(run), 1 / 1.1, 0.01);
}

TEST(AdaptiveThrottleTest, NothingIsRefusedBelowCapacity) {
  Caller run{.rate = 90};
  run.Play(300s);
  EXPECT_EQ(run.refused_here, 0);
}

TEST(AdaptiveThrottleTest, ABackendThatIsSlowToAnswerIsNotRefused) {
  AdaptiveThrottle throttle{AdaptiveThrottle::Config{}};
  SplitMix64 draws(3);
  for (int i = 0; i < 10'000; ++i) {  // All of them still run.
    ASSERT_EQ(throttle.Admit(kClass, kStart + i * 1ms, draws.Next()),
              Verdict::kPass);
  }
}

TEST(AdaptiveThrottleTest, ADeadBackendIsProbedFourTimesASecond) {
  Caller run{.rate = 500, .capacity = 1000, .up = false};
  run.Play(60s);
  run.Forget();
  run.Play(60s);
  EXPECT_GE(run.sent, 240 - 1);
  EXPECT_LE(run.sent, 240 + 5);
}

// The formula alone takes two minutes.
TEST(AdaptiveThrottleTest, AReturnIsSeenAndTheOutageForgottenWithinASecond) {
  Caller run{.rate = 500, .capacity = 1000};
  run.Play(30s);
  run.up = false;
  run.Play(60s);
  run.up = true;
  run.Play(1s);
  run.Forget();
  run.Play(60s);
  EXPECT_EQ(run.refused_here, 0);
}

TEST(AdaptiveThrottleTest, OneFailureAtOneRequestPerSecondRefusesNone) {
  Caller run{.rate = 1, .capacity = 1};
  run.Play(20s);
  run.up = false;
  run.Step();
  run.up = true;
  run.Play(300s);
  EXPECT_EQ(run.refused_here, 0);
}

TEST(AdaptiveThrottleTest, AtOneRequestPerSecondADeadBackendIsStillAsked) {
  Caller run{.rate = 1, .up = false};
  run.Play(300s);
  EXPECT_EQ(run.refused_here, 0);  // Each is a probe.
}

TEST(AdaptiveThrottleTest, CriticalitiesAreApart) {
  AdaptiveThrottle throttle{AdaptiveThrottle::Config{}};
  for (int i = 0; i < 1000; ++i) {
    throttle.Learn(Criticality::kSheddable, false, kStart);
    throttle.Learn(Criticality::kVital, true, kStart);
  }
  EXPECT_GT(throttle.RefusalRatio(Criticality::kSheddable, kStart), 0.99);
  EXPECT_EQ(throttle.RefusalRatio(Criticality::kVital, kStart), 0);
  EXPECT_EQ(throttle.RefusalRatio(Criticality::kImportant, kStart), 0);
}

TEST(AdaptiveThrottleTest, RefusalsHereCountAsRequests) {
  AdaptiveThrottle throttle({.probe_interval = 1min});
  for (int i = 0; i < 100; ++i) throttle.Learn(kClass, i < 40, kStart);
  EXPECT_DOUBLE_EQ(throttle.RefusalRatio(kClass, kStart), 20. / 101);
  EXPECT_EQ(throttle.Admit(kClass, kStart, 0), Verdict::kProbe);
  ASSERT_EQ(throttle.Admit(kClass, kStart, 0), Verdict::kRefuse);
  EXPECT_DOUBLE_EQ(throttle.RefusalRatio(kClass, kStart), 21. / 102);
}

TEST(AdaptiveThrottleTest, InShadowItsOwnRefusalsCountForNothing) {
  AdaptiveThrottle throttle({.mode = StageMode::kShadow});
  for (int i = 0; i < 100; ++i) throttle.Learn(kClass, false, kStart);
  (void)throttle.Admit(kClass, kStart, 0);
  ASSERT_EQ(throttle.Admit(kClass, kStart, 0), Verdict::kRefuse);
  EXPECT_DOUBLE_EQ(throttle.RefusalRatio(kClass, kStart), 100. / 101);
}

TEST(AdaptiveThrottleTest, ConfigsOutOfRangeAreNamed) {
  const auto message = [](const AdaptiveThrottle::Config& config) {
    const auto error = config.Check();
    return error ? error->message : "fine";
  };
  EXPECT_EQ(message({}), "fine");
  EXPECT_EQ(message({.k = 1}), "`throttle.k` must lie between 1.01 and 10");
  EXPECT_EQ(message({.window = 10ms}),
            "`throttle.window` must lie between 1s and 1h");
  EXPECT_EQ(message({.probe_interval = 0ms}),
            "`throttle.probe_interval` must lie between 1ms and 1m");
}

}  // namespace
}  // namespace weir
