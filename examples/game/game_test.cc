// The experiment's claims in virtual time, and the game over loopback.

#include "game.h"

#include <gtest/gtest.h>

#include <vector>

#include "world.h"

namespace weir::game {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ExperimentTest, WithoutProtectionNothingIsInTimeAboveCapacity) {
  EXPECT_GT(Simulate({.arm = Arm::kNone, .load = .9}).settled_ratio, .98);
  for (const double load : {1.2, 2., 5., 10.}) {
    const Outcome outcome = Simulate({.arm = Arm::kNone, .load = load});
    EXPECT_EQ(outcome.settled_ratio, 0) << "load " << load;
    EXPECT_GT(outcome.late_ratio, .85) << "load " << load;
  }
}

TEST(ExperimentTest, ASecondBetweenHellosIsEnoughUpToLoad2) {
  for (const double load : {.5, .9, 1.2, 2.}) {
    const Outcome outcome = Simulate({.load = load});
    EXPECT_GT(outcome.settled_ratio, .98) << "load " << load;
    EXPECT_LE(outcome.detect_s, 5.1) << "load " << load;
    EXPECT_GE(outcome.recover_s, 0) << "load " << load;
    EXPECT_LE(outcome.recover_s, 10.1) << "load " << load;
  }
  EXPECT_LT(Simulate({.load = 5}).settled_ratio, .5);
}

TEST(ExperimentTest, NothingIsDroppedBelowCapacity) {
  EXPECT_EQ(Simulate({.load = .9}).dropped_ratio, 0);
}

TEST(ExperimentTest, FineSlicesAndStampsHoldAtTenTimesCapacity) {
  for (const Case& setup :
       {Case{.load = 10, .hello = milliseconds(100)},
        Case{.load = 10, .hello = milliseconds(20), .tick = milliseconds(1)},
        Case{.load = 10, .tick = milliseconds(1), .stamped = true}}) {
    EXPECT_GT(Simulate(setup).settled_ratio, .985);
  }
}

TEST(ExperimentTest, TheRestOfSlicesIsWorthMuchWithCoarseOnes) {
  EXPECT_GT(Simulate({.load = 5, .rest_of_slice = true}).settled_ratio,
            2 * Simulate({.load = 5}).settled_ratio);
}

TEST(ExperimentTest, NoClockNeedsToAgree) {
  for (const Clocks clocks :
       {Clocks::kOffset, Clocks::kStep, Clocks::kDrift, Clocks::kRestart}) {
    Case setup{.clocks = clocks};
    if (clocks == Clocks::kDrift) setup.before = hours(2);
    const Outcome outcome = Simulate(setup);
    EXPECT_GT(outcome.settled_ratio, .98);
    EXPECT_GT(outcome.worst_link_ratio, .95);
    EXPECT_GE(outcome.recover_s, 0);
  }
}

TEST(ExperimentTest, ComparingClocksStarvesLinks) {
  const Outcome outcome =
      Simulate({.arm = Arm::kLoopTime, .clocks = Clocks::kOffset});
  EXPECT_EQ(outcome.worst_link_ratio, 0);
  EXPECT_LT(outcome.recover_s, 0);  // Never.
}

// 2 x 64 KB of 105 bytes hold 5 s of work at 1 ms, .2 s at 36 us.
TEST(ExperimentTest, SmallBuffersAreAnAnswerOnlyForCheapMessages) {
  const auto settled = [](Arm arm, Duration cost, size_t visible) {
    return Simulate({.arm = arm,
                     .cost = cost,
                     .hello = milliseconds(100),
                     .buffer = 1248,
                     .visible = visible,
                     .overload = seconds(30),
                     .after = seconds(1)})
        .settled_ratio;
  };
  EXPECT_EQ(settled(Arm::kNone, milliseconds(1), 1248), 0);
  EXPECT_GT(settled(Arm::kNone, std::chrono::microseconds(36), 1248), .99);
  // Half of a full link, all that the kernel tells, is enough to see it.
  EXPECT_GT(settled(Arm::kDynamic, milliseconds(1), 624), .98);
}

TEST(ExperimentTest, TheSameSeedIsTheSameRun) {
  const Outcome once = Simulate({.load = 5});
  const Outcome again = Simulate({.load = 5});
  EXPECT_EQ(once.valid_ratio, again.valid_ratio);
  EXPECT_EQ(once.dropped_ratio, again.dropped_ratio);
  EXPECT_NE(once.valid_ratio, Simulate({.load = 5, .seed = 2}).valid_ratio);
}

// Until what must happen has happened, however slow the machine is.
TEST(GameTest, AWaitOverloadsTheServerAndItRecoversAfterwards) {
  GameServer::Config config;
  config.wait = Duration{};
  config.server.capacity = {.unit = milliseconds(50),
                            .window = milliseconds(300)};
  config.server.dropper.hello.tick = milliseconds(1);
  config.server.dropper.threshold = milliseconds(100);
  auto game = GameServer::Make(config);
  ASSERT_TRUE(game);
  std::vector<std::unique_ptr<AccessServer>> accesses;
  for (int i = 0; i < 2; ++i) {
    auto access = AccessServer::Make({.port = (*game)->port(),
                                      .hello_interval = milliseconds(20),
                                      .tick = milliseconds(1)},
                                     200);
    ASSERT_TRUE(access);
    accesses.push_back(std::move(*access));
  }
  const auto run = [&game] { (*game)->Run(milliseconds(20)); };
  while ((*game)->score().in_time < 20) run();
  accesses[0]->SendWait(milliseconds(20));
  while ((*game)->statistics().dropped == 0) run();
  // The command is a message and may be dropped, so it is said again and again,
  // by both links, and between runs that are far shorter than a slice: said at
  // the same place of each slice, it would be dropped each time at most places.
  while ((*game)->statistics().overloaded) {
    for (const auto& access : accesses) access->SendWait(Duration{});
    (*game)->Run(milliseconds(1));
  }
  EXPECT_EQ((*game)->statistics().dropping, 0u);
  const GameServer::Score before = (*game)->score();
  while ((*game)->score().in_time < before.in_time + 20) run();
}

}  // namespace
}  // namespace weir::game
