#include "weir/stale/hello_timeline.h"

#include <gtest/gtest.h>

#include "testing/simulated_service.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart{seconds(1000)};
constexpr Duration kTick = milliseconds(100);

// A link with a peer whose clock has its own idea of the time.
class Peer {
 public:
  explicit Peer(Duration offset, HelloTimeline::Config config = {})
      : offset_(offset),
        config_(config),
        timeline_(HelloTimeline::Make(config).value()) {}

  // A Hello that was queued at `sent` and is reached `delay` later.
  Duration Hello(Duration sent, Duration delay, bool frozen = false) {
    const Duration drift(
        static_cast<int64_t>(static_cast<double>(sent.count()) * drift_ratio_));
    return timeline_.Hello(
        StampOf(Instant(sent + drift + offset_), config_.tick),
        kStart + sent + delay, frozen);
  }

  void SetClock(Duration by) { offset_ += by; }
  void Drift(double ratio) { drift_ratio_ = ratio; }
  HelloTimeline& timeline() { return timeline_; }

 private:
  Duration offset_;
  double drift_ratio_ = 0;
  HelloTimeline::Config config_;
  HelloTimeline timeline_;
};

TEST(HelloTimelineTest, StampsAreTenthsOfASecondAndRoundDown) {
  EXPECT_EQ(StampOf(Instant(seconds(9)), kTick), 90u);
  EXPECT_EQ(StampOf(Instant(milliseconds(199)), kTick), 1u);
  EXPECT_EQ(StampOf(Instant(milliseconds(-1)), kTick), 0xffffffffu);
  EXPECT_EQ(StampOf(Instant(milliseconds(-100)), kTick), 0xffffffffu);
  EXPECT_EQ(StampOf(Instant(milliseconds(-101)), kTick), 0xfffffffeu);
}

// The example of the original: the clocks differ by 9 s, at the first Hello
// and at the second; the data is not old.
TEST(HelloTimelineTest, OffsetsOfClocksCancel) {
  for (const Duration offset : {seconds(9), seconds(-9), seconds(0)}) {
    Peer peer(offset);
    EXPECT_EQ(peer.Hello(seconds(0), Duration{}), Duration{});
    EXPECT_EQ(peer.Hello(seconds(1), Duration{}), Duration{});
    EXPECT_EQ(peer.Hello(seconds(2), seconds(3)), seconds(3));
    EXPECT_EQ(peer.Hello(seconds(5), milliseconds(200)), milliseconds(200));
  }
}

TEST(HelloTimelineTest, ABetterMinimumMovesTheRuler) {
  Peer peer(hours(5));
  EXPECT_EQ(peer.Hello(seconds(0), seconds(4)), Duration{});  // In a queue.
  EXPECT_EQ(peer.Hello(seconds(1), seconds(5)), seconds(1));
  EXPECT_EQ(peer.Hello(seconds(6), seconds(1)), Duration{});
  EXPECT_EQ(peer.Hello(seconds(7), seconds(2)), seconds(1));
}

TEST(HelloTimelineTest, ABetterMinimumCountsWhileFrozenToo) {
  Peer peer(hours(5));
  peer.Hello(seconds(0), seconds(4), true);
  EXPECT_EQ(peer.Hello(seconds(4), seconds(1), true), Duration{});
  EXPECT_EQ(peer.Hello(seconds(5), seconds(3), true), seconds(2));
}

// Forgetting the delay, as the original does, makes a whole queue look fresh.
TEST(HelloTimelineTest, AClockThatIsSetKeepsTheDelay) {
  for (const seconds step :
       {seconds(3600), seconds(-3600), seconds(-9), seconds(9)}) {
    for (const bool frozen : {false, true}) {
      Peer peer(seconds(7));
      peer.Hello(seconds(0), Duration{}, frozen);
      peer.Hello(seconds(1), seconds(4), frozen);
      peer.SetClock(step);
      EXPECT_EQ(peer.Hello(seconds(2), seconds(4), frozen), seconds(4));
      EXPECT_EQ(peer.timeline().steps(), 1u);
      EXPECT_EQ(peer.Hello(seconds(3), seconds(5), frozen), seconds(5));
      EXPECT_EQ(peer.Hello(seconds(9), Duration{}, frozen), Duration{});
      EXPECT_EQ(peer.timeline().steps(), 1u);
    }
  }
}

TEST(HelloTimelineTest, AClockThatIsSetDoesNotHideWhereTheDelayGoes) {
  for (const seconds step : {seconds(3600), seconds(-3600)}) {
    for (const milliseconds now : {milliseconds(3200), milliseconds(4900)}) {
      Peer peer(seconds(7));
      peer.Hello(seconds(0), Duration{}, true);
      peer.Hello(seconds(1), seconds(4), true);
      peer.SetClock(step);
      EXPECT_EQ(peer.Hello(seconds(2), now, true), now);
      EXPECT_EQ(peer.timeline().steps(), 1u);
    }
  }
}

TEST(HelloTimelineTest, AQueueThatShrinksFastIsNoStepOfTheClock) {
  Peer peer(Duration{});
  Instant reached = kStart + seconds(100);
  // Anchored behind a queue of 100 s, which is then discarded in no time.
  for (int i = 0; i < 100; ++i) {
    peer.Hello(seconds(i), reached - kStart - seconds(i), true);
  }
  EXPECT_EQ(peer.timeline().steps(), 0u);
  EXPECT_EQ(peer.Hello(seconds(100), seconds(1), true), Duration{});
  EXPECT_EQ(peer.Hello(seconds(101), seconds(3), true), seconds(2));
}

TEST(HelloTimelineTest, AResetIsForConnectionsMadeAnew) {
  Peer peer(Duration{});
  peer.Hello(seconds(0), Duration{});
  peer.Hello(seconds(1), seconds(30));
  peer.timeline().Reset();
  EXPECT_TRUE(peer.timeline().empty());
  EXPECT_EQ(peer.Hello(seconds(2), seconds(1)), Duration{});
}

TEST(HelloTimelineTest, StampsMayWrap) {
  // Half a second before the 32 bits are used up.
  Peer peer(Duration(((int64_t{1} << 32) - 5) * kTick.count()));
  peer.Hello(seconds(0), Duration{});
  EXPECT_EQ(peer.Hello(seconds(1), milliseconds(300)), milliseconds(300));
  EXPECT_EQ(peer.Hello(seconds(2), Duration{}), Duration{});
  EXPECT_EQ(peer.timeline().steps(), 0u);
}

// 100 ppm is 0.36 s an hour; an all-time minimum would be 8.6 s off in a day.
TEST(HelloTimelineTest, DriftOfClocksIsForgottenWithTheWindow) {
  for (const double ppm : {100e-6, -100e-6}) {
    Peer peer(hours(3));
    peer.Drift(ppm);
    for (int second = 0; second <= 86'400; ++second) {
      // At most a tick of rounding and 7 ms of drift within a window.
      ASSERT_LE(peer.Hello(seconds(second), Duration{}), milliseconds(107))
          << "second " << second;
    }
    EXPECT_GE(peer.Hello(seconds(86'401), seconds(2)), seconds(2));
    EXPECT_EQ(peer.timeline().steps(), 0u);
  }
}

TEST(HelloTimelineTest, AQueueThatStandsDoesNotBecomeTheNormWhileFrozen) {
  Peer peer(Duration{});
  peer.Hello(seconds(0), Duration{});
  for (int second = 1; second <= 3600; ++second) {
    ASSERT_EQ(peer.Hello(seconds(second), seconds(3), true), seconds(3));
  }
}

TEST(HelloTimelineTest, AQueueThatStandsBecomesTheNormOtherwise) {
  Peer peer(Duration{});
  peer.Hello(seconds(0), Duration{});
  for (int second = 1; second <= 50; ++second) {
    ASSERT_EQ(peer.Hello(seconds(second), seconds(3)), seconds(3));
  }
  for (int second = 51; second <= 70; ++second) {
    peer.Hello(seconds(second), seconds(3));
  }
  EXPECT_EQ(peer.Hello(seconds(71), seconds(3)), Duration{});
}

// A paused machine finds the stamps of its pause in its buffers.
TEST(HelloTimelineTest, APauseOfOursDoesNotLoseTheRuler) {
  Peer peer(Duration{});
  for (int second = 0; second < 100; ++second) {
    peer.Hello(seconds(second), Duration{});
  }
  for (int second = 100; second < 220; ++second) {
    const Duration behind = seconds(220 - second);
    ASSERT_EQ(peer.Hello(seconds(second), behind), behind);
  }
}

TEST(HelloTimelineTest, ASilentPeerKeepsItsRuler) {
  Peer peer(Duration{});
  peer.Hello(seconds(0), Duration{});
  EXPECT_EQ(peer.Hello(hours(5), seconds(3)), seconds(3));
}

TEST(HelloTimelineTest, AClockOfOursThatStepsBackMakesNoRuler) {
  Peer peer(Duration{});
  peer.Hello(seconds(0), Duration{});
  peer.Hello(seconds(10), Duration{});
  EXPECT_EQ(peer.Hello(seconds(10), seconds(-5)), Duration{});
  EXPECT_EQ(peer.Hello(seconds(11), seconds(0)), Duration{});
}

TEST(HelloTimelineTest, EqualStampsAreNoStep) {
  Peer peer(Duration{});
  peer.Hello(seconds(5), Duration{});
  peer.Hello(seconds(5), milliseconds(50));
  EXPECT_EQ(peer.timeline().steps(), 0u);
  EXPECT_EQ(peer.timeline().delay(), milliseconds(50));
}

TEST(HelloTimelineTest, WorksAtBothEndsOfTime) {
  const Instant kEnds[] = {Instant(Duration(-(int64_t{1} << 62))),
                           Instant::max() - hours(1)};
  for (const Instant start : kEnds) {
    HelloTimeline timeline = HelloTimeline::Make({}).value();
    timeline.Hello(5, start, false);
    EXPECT_EQ(timeline.Hello(15, start + seconds(3), false), seconds(2));
  }
}

// Any stamps at all, as a hostile peer sends them: no overflow (the sanitizer
// looks), a delay that is never negative and never more than we waited.
TEST(HelloTimelineTest, HostileStampsDoNoHarm) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    testing::Random random(seed);
    HelloTimeline timeline = HelloTimeline::Make({.tick = seconds(1)}).value();
    Instant now = kStart;
    for (int i = 0; i < 2000; ++i) {
      now += Duration(static_cast<int64_t>(random.Next() % 2'000'000'000));
      const auto stamp = static_cast<uint32_t>(random.Next());
      const Duration delay = timeline.Hello(stamp, now, random.Next() % 2 == 0);
      ASSERT_GE(delay, Duration{}) << "seed " << seed << ", stamp " << i;
      ASSERT_LE(delay, now - kStart + seconds(10))
          << "seed " << seed << ", stamp " << i;
    }
  }
}

// Goal: with no steps and nothing frozen, the delay is d minus the smallest d
// of the last
// 50 to 66 s that both clocks saw pass.
TEST(HelloTimelineTest, AgreesWithTheDefinitionOnRandomLinks) {
  struct Seen {
    Duration age, difference;
  };
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    testing::Random random(seed);
    Peer peer(Duration(static_cast<int64_t>(random.Next() % 1'000'000) *
                       kTick.count()));
    std::vector<Seen> seen;
    Duration free_at{}, age{};
    for (int i = 0; i < 300; ++i) {
      const Duration sent = i * seconds(1);
      Duration delay(static_cast<int64_t>(random.Next() % 3'000'000'000));
      if (sent + delay < free_at) delay = free_at - sent;  // Order is kept.
      if (i > 0) {
        age += std::min<Duration>(seconds(1), sent + delay - free_at);
      }
      free_at = sent + delay;
      seen.push_back({age, delay});
      Duration nearest = Duration::max(), farthest = Duration::max();
      for (const Seen& s : seen) {
        if (age - s.age <= seconds(66)) {
          farthest = std::min(farthest, s.difference);
        }
        if (age - s.age <= seconds(49)) {
          nearest = std::min(nearest, s.difference);
        }
      }
      const Duration got = peer.Hello(sent, delay);
      ASSERT_LE(got, delay - farthest) << "seed " << seed << ", Hello " << i;
      ASSERT_GE(got, delay - nearest) << "seed " << seed << ", Hello " << i;
    }
  }
}

TEST(HelloTimelineTest, RefusesWhatItCannotCountWith) {
  const auto complaint = [](const HelloTimeline::Config& config) {
    auto timeline = HelloTimeline::Make(config);
    return timeline ? std::string() : timeline.error().message;
  };
  EXPECT_EQ(complaint({}), "");
  EXPECT_EQ(complaint({.tick = Duration{}}),
            "`tick` is not between 1 us and 1 s");
  EXPECT_EQ(complaint({.window = hours(25)}),
            "`window` is not between 1 ms and 1 day");
  EXPECT_EQ(complaint({.leap = Duration{}}),
            "`leap` is not between 1 ms and 1 day");
}

}  // namespace
}  // namespace weir
