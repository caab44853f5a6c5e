#include "weir/rate/system_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "weir/signal/recent_load.h"
#include "weir/splitmix64.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using Config = SystemRule::Config;
using Cause = SystemRule::Cause;
using Signals = SystemRule::Signals;

constexpr Instant kStart{1000s};

Signals Load(double load) { return {.load = load, .recent_load = load}; }
Signals Cpu(double ratio) { return {.cpu_ratio = ratio}; }

// The original as its source reads: every event is kept, and every figure is
// worked out anew from those of the two halves of a second that are live.
class Model {
 public:
  explicit Model(const Config& config) : config_(config) {}

  bool Admit(const Signals& signals, int64_t inflight, int64_t now_ms) {
    const bool pass = Check(signals, static_cast<double>(inflight), now_ms);
    if (pass) passes_.push_back(now_ms);
    return pass;
  }
  void Complete(int64_t now_ms, int64_t took_ms) {
    ends_.push_back({now_ms, took_ms});
  }

 private:
  struct End {
    int64_t at, took;
  };
  static bool InHalf(int64_t at, int64_t now, int64_t age) {
    return at / 500 == now / 500 - age;
  }
  bool Check(const Signals& signals, double inflight, int64_t now) const {
    int64_t passed = 0;
    for (const int64_t at : passes_) {
      passed += InHalf(at, now, 0) || InHalf(at, now, 1);
    }
    int64_t best = 1;
    int64_t least = 5000;
    int64_t sum = 0;
    int64_t count = 0;
    for (const int64_t age : {0, 1}) {
      int64_t success = 0;
      for (const End& end : ends_) {
        if (!InHalf(end.at, now, age)) continue;
        ++success;
        ++count;
        sum += end.took;
        least = std::min(least, end.took);
      }
      best = std::max(best, success);
    }
    least = std::max<int64_t>(least, 1);
    const double mean =
        count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count);
    if (static_cast<double>(passed) + 1 > config_.qps) return false;
    if (inflight > config_.threads) return false;
    if (mean > config_.latency_ms) return false;
    if (signals.load > config_.load && inflight > 1 &&
        inflight >
            static_cast<double>(best) * 2 * static_cast<double>(least) / 1000) {
      return false;
    }
    return signals.cpu_ratio <= config_.cpu_ratio;
  }

  Config config_;
  std::vector<int64_t> passes_;
  std::vector<End> ends_;
};

// Goal: the rule decides as the original does.
// Method: 300 random worlds of 400 events each: thresholds that bind now and
// then, arrivals, ends of 0 to 6000 ms and changing signals, with gaps from
// nothing to longer than the window.
TEST(SystemRuleTest, DecidesAsTheOriginalInRandomWorlds) {
  std::array<int, 6> causes{};
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % n); };
    Config config;
    if (below(2) == 0) config.qps = 1 + below(60);
    if (below(2) == 0) config.threads = below(20);
    if (below(3) == 0) config.latency_ms = below(3000);
    if (below(2) == 0) config.load = below(10);
    if (below(3) == 0) config.cpu_ratio = below(10) / 10.;
    SystemRule rule;
    Model model(config);
    std::vector<int64_t> running;
    int64_t now_ms = 1'000'000 + below(1000);
    for (int event = 0; event < 400; ++event) {
      now_ms += below(4) == 0 ? below(below(10) == 0 ? 2500 : 100) : 0;
      const Instant now{now_ms * 1ms};
      const Signals signals{.load = static_cast<double>(below(20)) - 1,
                            .cpu_ratio = below(12) / 10. - .1};
      if (below(3) == 0 && !running.empty()) {
        const int64_t took = std::min<int64_t>(now_ms - running.back(), 6000);
        running.pop_back();
        rule.Complete(config, signals, took * 1ms, true, now);
        model.Complete(now_ms, took);
        continue;
      }
      const auto inflight = static_cast<int64_t>(running.size());
      const auto answer = rule.Admit(config, signals, inflight, now);
      ASSERT_EQ(answer.admitted(), model.Admit(signals, inflight, now_ms))
          << "seed " << seed << ", event " << event << ", "
          << Name(answer.cause);
      ++causes[static_cast<size_t>(answer.cause)];
      if (answer.admitted()) running.push_back(now_ms);
    }
  }
  for (size_t i = 0; i < causes.size(); ++i) EXPECT_GT(causes[i], 500) << i;
}

TEST(SystemRuleTest, TheFirstArmInOrderRefuses) {
  SystemRule rule;
  Config config{.qps = 0, .threads = 0, .load = 0, .cpu_ratio = 0};
  const Signals high{.load = 9, .recent_load = 9, .cpu_ratio = 1};
  EXPECT_EQ(rule.Peek(config, high, 5, kStart), Cause::kQps);
  config.qps = Config::kOff;
  EXPECT_EQ(rule.Peek(config, high, 20, kStart), Cause::kThreads);
  config.threads = Config::kOff;
  EXPECT_EQ(rule.Peek(config, high, 20, kStart), Cause::kLoad);
  config.load = Config::kOff;
  EXPECT_EQ(rule.Peek(config, high, 20, kStart), Cause::kCpu);
}

TEST(SystemRuleTest, QpsCountsWhatPassedNotWhatCompleted) {
  SystemRule rule;
  const Config config{.qps = 30};
  int passed = 0;
  for (int i = 0; i < 1000; ++i) {
    passed += rule.Admit(config, {}, i, kStart + i * 1ms).admitted();
  }
  EXPECT_EQ(passed, 30);
}

TEST(SystemRuleTest, WhatIsGivenBackMayPassAgain) {
  SystemRule rule;
  const Config config{.qps = 1};
  const auto first = rule.Admit(config, {}, 0, kStart);
  EXPECT_EQ(rule.Admit(config, {}, 0, kStart).cause, Cause::kQps);
  rule.GiveBack(first.window);
  EXPECT_TRUE(rule.Admit(config, {}, 0, kStart).admitted());
}

// Goal: a worker that keeps figures and completions to itself for a while ends
// up with what one does that writes each, and is never more than a tick late.
TEST(SystemRuleTest, AWorkerIsATickLateAtMostAndLosesNothing) {
  for (const bool robust : {false, true}) {
    const Config config{.latency_ms = 1e6, .load = 1e6, .robust = robust};
    SystemRule exact;
    SystemRule kept;
    SystemRule::Worker worker;
    SplitMix64 random(1);
    Instant now = kStart;
    double late_count = 0;
    for (int i = 0; i < 20'000; ++i) {
      now += Duration(random.Next() % 400'000);
      // What `exact` knew a tick ago is known here.
      const double before = exact.Read(robust, now).mean_latency_ms;
      (void)kept.Admit(config, {}, 0, worker, now);
      if (worker.completed == 0) {
        ASSERT_EQ(kept.Read(robust, now).mean_latency_ms, before);
      }
      late_count += worker.completed > 0 ? 1 : 0;
      const Duration took = Duration(random.Next() % 90'000'000);
      exact.Complete(config, {}, took, true, now);
      kept.Complete(config, {}, took, true, worker, now);
      if (worker.completed > 0) {
        ASSERT_LT(now, worker.write_at);
      }
    }
    EXPECT_GT(late_count, 1000) << "else nothing was kept";
    now += SystemRule::kTick;
    (void)kept.Admit(config, {}, 0, worker, now);
    const auto a = exact.Read(robust, now);
    const auto b = kept.Read(robust, now);
    EXPECT_EQ(a.mean_latency_ms, b.mean_latency_ms);
    EXPECT_EQ(a.best_per_s, b.best_per_s);
    EXPECT_EQ(a.least_latency_ms, b.least_latency_ms);
  }
}

TEST(SystemRuleTest, WhatAWorkerKeptForTooLongCountsForNothing) {
  SystemRule rule;
  const Config config{.latency_ms = 1e6};
  SystemRule::Worker worker;
  rule.Complete(config, {}, 1ms, true, worker, kStart);
  rule.Complete(config, {}, 1ms, true, worker, kStart);  // Is kept.
  // Its place has another half's completions by then.
  const Instant later = kStart + 10500ms;
  for (int i = 0; i < 5; ++i) rule.Complete(config, {}, 7ms, true, later);
  rule.Write(worker, later);
  EXPECT_EQ(rule.Read(false, later).mean_latency_ms, 7);
  EXPECT_EQ(rule.Read(false, later).best_per_s, 10);
}

TEST(SystemRuleTest, UnknownSignalsArmNothing) {
  for (const bool robust : {false, true}) {
    SystemRule rule;
    const Config config{.load = 0, .cpu_ratio = 0, .robust = robust};
    EXPECT_EQ(rule.Peek(config, {}, 1000, kStart), Cause::kNone);
  }
}

TEST(SystemRuleTest, ThresholdsThatAreNoNumbersAreErrors) {
  EXPECT_FALSE(SystemRule::Check({}));
  EXPECT_TRUE(SystemRule::Check({.qps = -1}));
  EXPECT_TRUE(SystemRule::Check({.cpu_ratio = std::nan("")}));
}

// Ten seconds of 100 requests a second that take 50 ms, so that five run.
void Settle(SystemRule& rule, const Config& config, Duration latency = 50ms) {
  for (int i = 0; i < 1000; ++i) {
    rule.Complete(config, {}, latency, true, kStart + i * 10ms);
  }
}
constexpr Instant kSettled = kStart + 10s;

TEST(SystemRuleTest, AFastEndpointShrinksTheOriginalButNotTheRobust) {
  for (const bool robust : {false, true}) {
    SystemRule rule;
    const Config config{.load = 2, .robust = robust};
    Settle(rule, config);
    // One health check of a millisecond among them.
    rule.Complete(config, {}, 1ms, true, kSettled - 1ms);
    const Cause cause = rule.Peek(config, Load(9), 4, kSettled);
    EXPECT_EQ(cause, robust ? Cause::kNone : Cause::kLoad);
    EXPECT_EQ(rule.Peek(config, Load(9), 9, kSettled), Cause::kLoad);
  }
}

TEST(SystemRuleTest, AFastFailureTeachesTheRobustNothing) {
  SystemRule rule;
  const Config config{.load = 2, .robust = true};
  Settle(rule, config);
  for (int i = 0; i < 500; ++i) {
    rule.Complete(config, {}, 1ms, false, kSettled + 1ms);
  }
  EXPECT_GE(rule.Read(true, kSettled + 1s).least_latency_ms, 49);
}

TEST(SystemRuleTest, AStandingQueueRaisesTheOriginalButNotTheRobust) {
  for (const bool robust : {false, true}) {
    SystemRule rule;
    const Config config{.cpu_ratio = .8, .robust = robust};
    Settle(rule, config);
    // For a minute the same throughput, four times as slow, at full CPU.
    for (int i = 0; i < 6000; ++i) {
      rule.Complete(config, Cpu(1), 200ms, true, kSettled + i * 10ms);
    }
    const auto figures = rule.Read(robust, kSettled + 60s);
    EXPECT_NEAR(figures.least_latency_ms, robust ? 50 : 200, 1) << robust;
  }
}

TEST(SystemRuleTest, HighCpuStopsTheOriginalButNotTheRobust) {
  for (const bool robust : {false, true}) {
    SystemRule rule;
    const Config config{.cpu_ratio = .8, .robust = robust};
    Settle(rule, config);
    const Cause cause = rule.Peek(config, Cpu(.9), 4, kSettled);
    EXPECT_EQ(cause, robust ? Cause::kNone : Cause::kCpu);
    EXPECT_EQ(rule.Peek(config, Cpu(.9), 9, kSettled), Cause::kCpu);
  }
}

TEST(SystemRuleTest, ThreadsLetOneMoreRunInTheOriginalAndNoneInTheRobust) {
  for (const bool robust : {false, true}) {
    SystemRule rule;
    const Config config{.threads = 10, .robust = robust};
    EXPECT_EQ(rule.Peek(config, {}, 9, kStart), Cause::kNone);
    EXPECT_EQ(rule.Peek(config, {}, 10, kStart),
              robust ? Cause::kThreads : Cause::kNone);
    EXPECT_EQ(rule.Peek(config, {}, 11, kStart), Cause::kThreads);
  }
}

TEST(SystemRuleTest, RobustRefusesNothingBeforeItHasLearned) {
  SystemRule rule;
  const Config config{.cpu_ratio = .8, .robust = true};
  EXPECT_EQ(rule.Peek(config, Cpu(1), 1000, kStart), Cause::kNone);
  Settle(rule, config);
  EXPECT_EQ(rule.Peek(config, Cpu(1), 1000, kSettled), Cause::kCpu);
}

// The kernel's average of `runnable` tasks, with its steps and two decimals.
class Kernel {
 public:
  double At(double runnable) {
    average_ = average_ * kExp + runnable * (1 - kExp);
    return std::floor(average_ * 100 + .5) / 100;
  }

 private:
  static constexpr double kExp = 1884. / 2048;  // EXP_1
  double average_ = 0;
};

TEST(RecentLoadTest, KnowsAStepWithinTenSecondsThatTheAverageHidesForForty) {
  Kernel kernel;
  RecentLoad recent;
  double average = 0;
  int average_s = 0;
  int recent_s = 0;
  for (int s = 0; s < 120; ++s) {
    if (s % 5 == 0) average = kernel.At(s < 20 ? 0 : 20);
    const double now = recent.Add(average, kStart + s * 1s);
    EXPECT_TRUE(s >= 20 || now < .2) << s << ": " << now;
    EXPECT_TRUE(s < 25 || std::abs(now - 20) < .3) << s << ": " << now;
    if (average_s == 0 && average > 10) average_s = s - 20;
    if (recent_s == 0 && now > 10) recent_s = s - 20;
  }
  EXPECT_GE(average_s, 35);
  EXPECT_LE(recent_s, 10);
}

TEST(RecentLoadTest, AnAverageThatStandsStillIsTheLoad) {
  RecentLoad recent;
  for (int s = 0; s < 60; ++s) {
    EXPECT_NEAR(recent.Add(3.25, kStart + s * 1s), 3.25, 1e-9) << s;
  }
}

}  // namespace
}  // namespace weir
