#include "weir/client/overload_level.h"

#include <gtest/gtest.h>

#include "weir/splitmix64.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using enum Criticality;

constexpr Instant kStart{1000s};
constexpr uint64_t kMiddle = uint64_t{1} << 63;

// Refuses one of each class from `from` down, each millisecond.
Instant RefuseFor(LevelMeter& meter, Duration time, Criticality from,
                  Instant now) {
  for (const Instant end = now + time; now < end; now += 1ms) {
    for (size_t i = Index(from); i < kCriticalities; ++i) {
      meter.OnRefused(static_cast<Criticality>(i), now);
    }
  }
  return now;
}

TEST(LevelMeterTest, AClassIsHopelessWhenItWasRefusedForAWhile) {
  LevelMeter meter;
  meter.OnAdmitted(kSheddable, kStart);
  RefuseFor(meter, 100ms, kDeferrable, kStart);
  EXPECT_FALSE(meter.Read(kStart + 99ms, kMiddle));
  const auto level = meter.Read(kStart + 100ms, kMiddle);
  ASSERT_TRUE(level);
  EXPECT_EQ(level->hopeless, kDeferrable);
  EXPECT_EQ(level->ttl, 200ms);
  EXPECT_EQ(meter.Read(kStart + 100ms, 0)->ttl, 100ms);
}

TEST(LevelMeterTest, OneAdmittedShowsThatItAndAllAboveAreNotHopeless) {
  LevelMeter meter;
  const Instant now = RefuseFor(meter, 200ms, kImportant, kStart);
  ASSERT_EQ(meter.Read(now, 0)->hopeless, kImportant);
  meter.OnAdmitted(kDeferrable, now);
  ASSERT_TRUE(meter.Read(now, 0));
  EXPECT_EQ(meter.Read(now, 0)->hopeless, kSheddable);
}

TEST(LevelMeterTest, AFewRefusalsAreNoLevel) {
  LevelMeter meter;
  for (int i = 0; i < 19; ++i) meter.OnRefused(kSheddable, kStart + i * 10ms);
  EXPECT_FALSE(meter.Read(kStart + 190ms, 0));
  meter.OnRefused(kSheddable, kStart + 190ms);
  EXPECT_TRUE(meter.Read(kStart + 190ms, 0));
}

// Callers that hold a class back let all of it come at once when the level has
// faded; a burst of refusals then says nothing about the time between.
TEST(LevelMeterTest, ABurstAfterAGapIsNoLevel) {
  LevelMeter meter;
  Instant now = RefuseFor(meter, 200ms, kSheddable, kStart);
  now += 101ms;
  RefuseFor(meter, 50ms, kSheddable, now);
  EXPECT_FALSE(meter.Read(now + 50ms, 0));
}

TEST(LevelMeterTest, ALevelEndsWithTheRefusals) {
  LevelMeter meter;
  const Instant now = RefuseFor(meter, 200ms, kSheddable, kStart);
  EXPECT_TRUE(meter.Read(now + 90ms, 0));
  EXPECT_FALSE(meter.Read(now + 101ms, 0));
}

TEST(LearnedLevelTest, DropsTheHopelessAndNobodyElse) {
  LearnedLevel learned{LearnedLevel::Config{}};
  learned.Learn({kDeferrable, 200ms}, kStart);
  EXPECT_TRUE(learned.Admit(kImportant, kStart, 0));
  (void)learned.Admit(kDeferrable, kStart, 0);  // The first is a probe.
  EXPECT_FALSE(learned.Admit(kDeferrable, kStart, 0));
  EXPECT_FALSE(learned.Admit(kSheddable, kStart, 0));
}

TEST(LearnedLevelTest, ALevelFadesToNothing) {
  LearnedLevel learned{LearnedLevel::Config{}};
  learned.Learn({kSheddable, 200ms}, kStart);
  const auto share = [&](Duration age) {
    SplitMix64 draws(9);
    int sent = 0;
    for (int i = 0; i < 10'000; ++i) {
      sent += learned.Admit(kSheddable, kStart + age, draws.Next()) ? 1 : 0;
    }
    return sent / 10'000.;
  };
  EXPECT_NEAR(share(0ms), 0.01, 0.005);
  EXPECT_NEAR(share(100ms), 0.505, 0.02);
  EXPECT_NEAR(share(180ms), 0.901, 0.01);
  EXPECT_EQ(share(200ms), 1);
  EXPECT_TRUE(learned.active(kStart + 199ms));
  EXPECT_FALSE(learned.active(kStart + 200ms));
}

TEST(LearnedLevelTest, ALevelEndsWhenOneOfTheHopelessIsTakenOn) {
  LearnedLevel learned{LearnedLevel::Config{}};
  learned.Learn({kDeferrable, 200ms}, kStart);
  // These are no news: sent before, or never said to be hopeless.
  learned.OnTaken(kSheddable, kStart);
  learned.OnTaken(kImportant, kStart + 50ms);
  EXPECT_TRUE(learned.active(kStart + 50ms));
  learned.OnTaken(kDeferrable, kStart + 50ms);
  EXPECT_FALSE(learned.active(kStart + 50ms));
  EXPECT_TRUE(learned.Admit(kSheddable, kStart + 50ms, 0));
  // It may come again.
  learned.Learn({kSheddable, 200ms}, kStart + 60ms);
  EXPECT_TRUE(learned.active(kStart + 60ms));
  learned.OnTaken(kSheddable, kStart + 55ms);
  EXPECT_TRUE(learned.active(kStart + 60ms));
}

TEST(LearnedLevelTest, OneIsSentInEachIntervalWhateverTheDraw) {
  LearnedLevel learned({.probe_ratio = 0, .probe_interval = 200ms});
  int sent = 0;
  for (int i = 0; i < 2000; ++i) {
    const Instant now = kStart + i * 1ms;
    learned.Learn({kSheddable, 200ms}, now);
    sent += learned.Admit(kSheddable, now, 0) ? 1 : 0;
  }
  EXPECT_EQ(sent, 10);
}

TEST(LearnedLevelTest, NobodyIsSilencedForMoreThanASecond) {
  LearnedLevel learned{LearnedLevel::Config{}};
  learned.Learn({kVital, 1h}, kStart);
  EXPECT_TRUE(learned.active(kStart + 999ms));
  EXPECT_FALSE(learned.active(kStart + 1s));
}

}  // namespace
}  // namespace weir
