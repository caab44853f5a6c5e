#include "weir/client/adaptive_throttle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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

// What is sent per second of 500 asked for, to a backend that takes what
// `takes` says, and what it takes.
struct Rates {
  double sent = 0;
  double accepted = 0;
};
template <typename Takes>
Rates PlayAgainst(Takes takes, double k, Duration warm_up, Duration time) {
  AdaptiveThrottle throttle({.k = k});
  SplitMix64 draws(7);
  Rates rates;
  for (Instant now = kStart; now < kStart + warm_up + time;) {
    // Arrivals at random, as many callers make them.
    now += FromSeconds(-std::log(1 - ToUnit(draws.Next())) / 500);
    if (throttle.Admit(kClass, now, draws.Next()) == Verdict::kRefuse) continue;
    const bool accepted = takes(now);
    throttle.Learn(kClass, accepted, now);
    if (now < kStart + warm_up) continue;
    rates.sent += 1 / ToSeconds(time);
    rates.accepted += accepted / ToSeconds(time);
  }
  return rates;
}

// So many in each window of the clock, then none.
auto FixedWindow(int calls, Duration window) {
  return [=, count = 0, number = int64_t{0}](Instant now) mutable {
    const int64_t current = now.time_since_epoch() / window;
    if (current != number) count = 0;
    number = current;
    return count++ < calls;
  };
}

// Forgetting at each window's start let 185, 253 and 260 a second through.
TEST(AdaptiveThrottleTest, ItKeepsItsKBeforeABackendThatWorksInWindows) {
  const auto keeps = [](const Rates& rates, double k, double most) {
    EXPECT_NEAR(rates.accepted, 50, 1.5);
    EXPECT_LT(rates.sent, most) << k;
    EXPECT_GT(rates.sent, k * 49);
  };
  keeps(PlayAgainst(FixedWindow(50, 1s), 2, 1min, 5min), 2, 110);
  keeps(PlayAgainst(FixedWindow(500, 10s), 2, 2min, 5min), 2, 110);
  keeps(PlayAgainst(FixedWindow(3000, 1min), 2, 10min, 10min), 2, 110);
  keeps(PlayAgainst(FixedWindow(50, 1s), 1.1, 1min, 5min), 1.1, 70);
}

// As the tiers of JD's collector do: the more of a window is spent, the larger
// the share that is dropped.
TEST(AdaptiveThrottleTest, ItKeepsItsKBeforeTiersOfAWindow) {
  const auto tiers = [count = 0., start = kStart,
                      draws = SplitMix64(9)](Instant now) mutable {
    if (now > start + 1s) {
      start = now;
      count = 0;
    }
    const double used = ++count / 57;
    const double drop = used <= .7 ? 0 : used <= .8 ? .2 : used <= 1 ? .5 : 1;
    return ToUnit(draws.Next()) >= drop;
  };
  const Rates rates = PlayAgainst(tiers, 2, 1min, 5min);
  EXPECT_NEAR(rates.accepted, 49, 1.5);
  EXPECT_LT(rates.sent, 110);
}

// At a K as small as this a chance refusal or two must not throttle more, or
// the backend ends up idle.
TEST(AdaptiveThrottleTest, ABackendWithAShortQueueIsKeptBusy) {
  const auto bucket = [room = 5., last = kStart](Instant now) mutable {
    room = std::min(5., room + 50 * ToSeconds(now - last));
    last = now;
    if (room < 1) return false;
    room -= 1;
    return true;
  };
  EXPECT_GT(PlayAgainst(bucket, 1.1, 1min, 5min).accepted, 0.85 * 50);
}

TEST(AdaptiveThrottleTest, ARefusalBringsTheHistoryBackUnlessItWasLongAgo) {
  const auto ratio_after = [](Duration calm) {
    AdaptiveThrottle throttle{AdaptiveThrottle::Config{}};
    for (int i = 0; i < 1000; ++i) throttle.Learn(kClass, false, kStart);
    for (int i = 0; i < 20; ++i) throttle.Learn(kClass, true, kStart + 1ms);
    EXPECT_EQ(throttle.Admit(kClass, kStart + calm, 0), Verdict::kPass);
    throttle.Learn(kClass, false, kStart + calm);
    return throttle.RefusalRatio(kClass, kStart + calm);
  };
  EXPECT_GT(ratio_after(300ms), 0.9);
  EXPECT_EQ(ratio_after(1s), 0);
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
