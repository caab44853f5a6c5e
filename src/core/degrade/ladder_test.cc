#include "weir/degrade/ladder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Instant kStart{seconds(1000)};
constexpr Duration kStep = milliseconds(100);
constexpr DegradeLadder::Levels kTwo = {1, 1.5};

// Steps it for a time under a load that does not change, and tells how often
// the level did.
class LadderTest : public ::testing::Test {
 protected:
  int Run(Duration time, const DegradeLadder::Load& load) {
    int changes = 0;
    for (const Instant end = now_ + time; now_ < end; now_ += kStep) {
      const uint8_t before = ladder_.level();
      changes += ladder_.Step(kTwo, load, now_) != before;
    }
    return changes;
  }

  DegradeLadder ladder_;
  Instant now_ = kStart;
};

constexpr DegradeLadder::Load kCalm{false, 500, 1000};

TEST_F(LadderTest, StaysInFullWhileNothingIsShed) {
  // Demand above capacity for the length of a burst is not an overload.
  EXPECT_EQ(Run(minutes(10), {false, 1500, 1000}), 0);
  EXPECT_EQ(ladder_.level(), 0);
}

TEST_F(LadderTest, AShortOverloadDoesNotRaiseIt) {
  for (int i = 0; i < 100; ++i) {
    Run(milliseconds(300), {true, 2000, 1000});
    Run(seconds(5), kCalm);
  }
  EXPECT_EQ(ladder_.level(), 0);
}

TEST_F(LadderTest, TheFurtherDemandExceedsCapacityTheSoonerItRises) {
  Duration last = seconds(100);
  for (const double excess : {1.05, 1.5, 3., 10.}) {
    DegradeLadder ladder;
    Instant now = kStart;
    while (ladder.Step(kTwo, {true, 1000 * excess, 1000}, now) == 0) {
      now += kStep;
      ASSERT_LT(now - kStart, seconds(10)) << excess;
    }
    EXPECT_LE(now - kStart, last) << excess;
    last = now - kStart;
  }
  EXPECT_LE(last, milliseconds(300));
}

TEST_F(LadderTest, TakesTheSecondLevelOnlyWhereTheExcessAsksForIt) {
  Run(minutes(5), {true, 1400, 1000});
  EXPECT_EQ(ladder_.level(), 1);
  Run(minutes(5), {true, 1600, 1000});
  EXPECT_EQ(ladder_.level(), 2);
}

TEST_F(LadderTest, RisesOneLevelASecondAtMost) {
  EXPECT_EQ(Run(milliseconds(900), {true, 9000, 1000}), 1);
  EXPECT_EQ(ladder_.level(), 1);
}

TEST_F(LadderTest, FallsTenSecondsAfterTheLoadHasGone) {
  Run(seconds(5), {true, 1400, 1000});
  ASSERT_EQ(ladder_.level(), 1);
  Run(seconds(10), kCalm);
  EXPECT_EQ(ladder_.level(), 1);
  Run(seconds(3), kCalm);
  EXPECT_EQ(ladder_.level(), 0);
}

// A service that does 1000/s in full and half as much again when degraded,
// offered a load between: the level alone ends the overload.
TEST_F(LadderTest, DoesNotFlapWhenTheLevelItselfEndsTheOverload) {
  int changes = 0;
  for (const Instant end = now_ + std::chrono::hours(1); now_ < end;
       now_ += kStep) {
    const double capacity = ladder_.level() == 0 ? 1000 : 1500;
    const uint8_t before = ladder_.level();
    changes +=
        ladder_.Step(kTwo, {capacity < 1300, 1300, capacity}, now_) != before;
  }
  // Up once, and a trial every ten minutes.
  EXPECT_LE(changes, 1 + 2 * 6);
  EXPECT_EQ(ladder_.level(), 1);
}

TEST_F(LadderTest, TriesALowerLevelWhenCapacityWasLowForAnotherReason) {
  Run(seconds(30), {true, 450, 300});  // A slow dependency.
  ASSERT_GE(ladder_.level(), 1);
  // Both levels, each after ten minutes.
  Run(minutes(21), {false, 450, 1000});
  EXPECT_EQ(ladder_.level(), 0);
}

TEST_F(LadderTest, NothingRisesWhileCapacityIsNotKnown) {
  EXPECT_EQ(Run(minutes(1), {true, 1000, 0}), 0);
}

TEST_F(LadderTest, APolicyThatTakesLevelsAwayTakesThemAtOnce) {
  Run(minutes(1), {true, 3000, 1000});
  ASSERT_EQ(ladder_.level(), 2);
  EXPECT_EQ(ladder_.Step({1}, {true, 3000, 1000}, now_), 1);
  EXPECT_EQ(ladder_.Step({}, {true, 3000, 1000}, now_), 0);
}

TEST_F(LadderTest, TimeThatStepsBackIsNoTime) {
  Run(seconds(5), {true, 1400, 1000});
  const uint8_t level = ladder_.level();
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(ladder_.Step(kTwo, kCalm, kStart - minutes(i)), level);
  }
}

}  // namespace
}  // namespace weir
