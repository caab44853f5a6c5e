// Counts under many threads: exact, whatever the interleaving.

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "weir/rate/quota.h"
#include "weir/rate/system_rule.h"
#include "weir/rate/tiers.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1000s};

// Runs `work(thread)` in `threads` threads that begin together.
template <typename Work>
void Together(int threads, Work work) {
  std::barrier begin(threads);
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      begin.arrive_and_wait();
      work(t);
    });
  }
  for (std::thread& thread : all) thread.join();
}

// Half of the calls have read their clock just before the edge and half just
// after it.  Fixed, the window before it is spent already; sliding, what passes
// there counts in full at the edge.
TEST(RateThreadsTest, SixtyFourThreadsAtTheEdgeOfAWindowPassExactlyItsCalls) {
  constexpr int kCalls = 1000;
  for (const Quota::Kind kind : {Quota::Kind::kFixed, Quota::Kind::kSliding}) {
    const Quota::Config config{.calls = kCalls, .kind = kind, .window = 1s};
    for (int round = 0; round < 5; ++round) {
      Quota quota;
      const Instant edge = kStart + 1s;
      if (kind == Quota::Kind::kFixed) {
        for (int i = 0; i < kCalls; ++i) {
          ASSERT_TRUE(quota.Take(config, kStart).admitted);
        }
      }
      std::atomic<int> passed = 0;
      Together(64, [&](int t) {
        for (int i = 0; i < 100; ++i) {
          const Instant now = (t + i) % 2 == 0 ? edge : edge - 1ns;
          passed += quota.Take(config, now).admitted;
        }
      });
      ASSERT_EQ(passed, kCalls) << "round " << round;
    }
  }
}

// What is given back is taken again, and nothing is lost or made: at the end
// the window holds exactly what was kept.
TEST(RateThreadsTest, GivingBackAndTakingKeepTheCountExact) {
  constexpr int kCalls = 10;
  for (const Quota::Kind kind : {Quota::Kind::kFixed, Quota::Kind::kSliding}) {
    const Quota::Config config{.calls = kCalls, .kind = kind, .window = 1s};
    Quota quota;
    std::atomic<int> kept = 0;
    std::atomic<int> most = 0;
    std::atomic<int> now_in = 0;
    Together(8, [&](int t) {
      for (int i = 0; i < 5000; ++i) {
        const Quota::Answer answer = quota.Take(config, kStart);
        if (!answer.admitted) continue;
        const int n = ++now_in;
        int seen = most;
        while (n > seen && !most.compare_exchange_weak(seen, n)) {
        }
        if (t == 0 && i < 3) {
          ++kept;
          continue;
        }
        --now_in;
        quota.GiveBack(config, answer.window);
      }
    });
    EXPECT_LE(most, kCalls);
    EXPECT_EQ(quota.Peek(config, kStart).counted, kept);
  }
}

TEST(RateThreadsTest, EveryRequestHasARankOfItsOwn) {
  constexpr int kThreads = 16;
  constexpr int kEach = 5000;
  const TierTable table(
      {.max = 40'000, .tiers = {{70, 20}, {80, 50}, {100, 100}}});
  Tiers tiers;
  std::vector<std::atomic<int>> seen(kThreads * kEach + 1);
  std::atomic<int64_t> passed = 0;
  Together(kThreads, [&](int) {
    for (int i = 0; i < kEach; ++i) {
      const Tiers::Answer answer = tiers.Offer(table, kStart, 0);
      ++seen[static_cast<size_t>(answer.number)];
      passed += answer.admitted;
    }
  });
  for (size_t n = 1; n < seen.size(); ++n) ASSERT_EQ(seen[n], 1) << n;
  EXPECT_EQ(passed, 35'200);
}

TEST(RateThreadsTest, TheSystemRulePassesExactlyItsRate) {
  const SystemRule::Config config{.qps = 777};
  SystemRule rule;
  std::atomic<int> passed = 0;
  Together(16, [&](int) {
    for (int i = 0; i < 500; ++i) {
      passed += rule.Admit(config, {}, 0, kStart).admitted();
    }
  });
  EXPECT_EQ(passed, 777);
}

}  // namespace
}  // namespace weir
