// The caller's half with several threads: for ThreadSanitizer, and for what
// must hold whatever the interleaving.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "weir/client/client_guard.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1000s};
constexpr int kThreads = 4;

void OnThreads(const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
}

TEST(ClientThreadsTest, HalfOpenLetsExactlyItsProbesRun) {
  for (int round = 0; round < 200; ++round) {
    CircuitBreaker breaker({.probes = 3});
    for (int i = 0; i < 20; ++i) {
      breaker.Finish(breaker.Admit(kStart), CircuitBreaker::Result::kBad, {},
                     kStart);
    }
    std::atomic<int> allowed = 0;
    OnThreads([&](int) {
      for (int i = 0; i < 50; ++i) {
        if (breaker.Admit(kStart + 1s).allowed) ++allowed;
      }
    });
    ASSERT_EQ(allowed, 3) << "round " << round;
  }
}

TEST(ClientThreadsTest, AnAllowanceIsSpentExactly) {
  for (int round = 0; round < 50; ++round) {
    RetryAllowance allowance{RetryAllowance::Config{}};
    std::atomic<int> taken = 0;
    OnThreads([&](int) {
      for (int i = 0; i < 100; ++i) {
        if (allowance.Spend(kStart + round * 1ms)) ++taken;
      }
    });
    ASSERT_EQ(taken, 60) << "round " << round;
  }
}

TEST(ClientThreadsTest, NoTokenIsLostOrMade) {
  RetryTokens tokens({.max_tokens = 1000, .token_ratio = 1});
  for (int i = 0; i < 400; ++i) tokens.OnFailure(kStart);
  OnThreads([&](int) {
    for (int i = 0; i < 10'000; ++i) {
      tokens.OnFailure(kStart);
      tokens.OnSuccess();
    }
  });
  EXPECT_DOUBLE_EQ(tokens.tokens(kStart), 600);
}

TEST(ClientThreadsTest, ThrottledClassIsProbedOncePerInterval) {
  AdaptiveThrottle throttle{AdaptiveThrottle::Config{}};
  for (int i = 0; i < 1000; ++i) {
    throttle.Learn(Criticality::kVital, false, kStart);
  }
  std::atomic<int> probes = 0;
  OnThreads([&](int) {
    for (int i = 0; i < 1000; ++i) {
      if (throttle.Admit(Criticality::kVital, kStart + 1s, 0) ==
          AdaptiveThrottle::Verdict::kProbe) {
        ++probes;
      }
    }
  });
  EXPECT_EQ(probes, 1);
}

// Goal: all parts at once, under ThreadSanitizer, add up.
TEST(ClientThreadsTest, OneGuardServesAllThreads) {
  constexpr int kCalls = 20'000;
  ClientPolicy policy;
  policy.hedge_after = 1ms;
  const auto guard = std::move(*ClientGuard::Make(policy));
  std::atomic<uint64_t> sent = 0;
  OnThreads([&](int t) {
    SplitMix64 draws(static_cast<uint64_t>(t));
    Instant now = kStart;
    for (int i = 0; i < kCalls; ++i) {
      now += 100us;
      const uint64_t draw = draws.Next();
      ClientCall call{.criticality = static_cast<Criticality>(draw % 4)};
      // Half a second of failures of all kinds, half a second of health.
      const bool bad = i / 5000 % 2 == 1;
      Answer answer;
      if (bad) answer.kind = static_cast<AnswerKind>(draw / 4 % 6);
      if (bad && draw % 7 == 0) answer.level = {{Criticality::kSheddable, 9ms}};
      for (Next next{.step = Next::Step::kRetry};
           next.step == Next::Step::kRetry;) {
        Attempt attempt = guard->Begin(call, now, draw);
        if (!attempt.send) break;
        ++sent;
        (void)guard->MayHedge(call, now);
        next = guard->End(call, attempt, answer, now, draw);
      }
    }
  });
  const ClientCounts counts = guard->counts();
  EXPECT_EQ(counts.sent, sent);
  uint64_t dropped = 0;
  for (const uint64_t drops : counts.dropped) dropped += drops;
  EXPECT_EQ(counts.sent + dropped,
            uint64_t{kThreads * kCalls} + counts.retries);
}

}  // namespace
}  // namespace weir
