#include "weir/hunt/change.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "weir/hunt/figures.h"
#include "weir/hunt/table.h"

namespace weir::hunt {
namespace {

// What doing nothing loses to a limit.
double LossOfNothing(const World& world) {
  const auto figures = Play(world, {"none", "fixed"}, nullptr);
  return 1 - (*figures)[0].score() / std::max((*figures)[1].score(), 1e-9);
}

TEST(ChangeTest, AMinimisedWorldIsSimplerAndStillLoses) {
  int tried = 0;
  for (uint64_t seed = 1; tried < 2; ++seed) {
    const World world = DrawWorld(seed);
    const double loss = LossOfNothing(world);
    if (loss < .5) continue;
    ++tried;

    const World simple = Minimise(world, .8 * loss, LossOfNothing);

    EXPECT_LT(simple.text.size(), world.text.size()) << seed;
    EXPECT_GE(LossOfNothing(simple), .8 * loss) << seed;
    EXPECT_EQ(Minimise(world, .8 * loss, LossOfNothing).text, simple.text);
  }
}

// A world in which all that can be left out is left out.
TEST(ChangeTest, WhatDoesNotMatterIsLeftOut) {
  const World simple =
      Minimise(DrawWorld(1), 0, [](const World&) { return 1; });
  EXPECT_EQ(simple.guard_workers, 1);
  const scenario::Scenario& s = simple.scenario;
  EXPECT_EQ(s.retries.count, 0);
  EXPECT_EQ(s.routes.size(), 1u);
  EXPECT_EQ(s.classes.size(), 1u);
  EXPECT_EQ(s.tiers[0].stages.size(), 1u);
  EXPECT_TRUE(s.tiers[0].changes.empty());
  EXPECT_TRUE(s.tiers[0].pauses.empty());
  EXPECT_EQ(s.timeout, s.deadline);
  // But for what a world needs to be judged by more than its edges.
  ASSERT_EQ(s.phases.size(), 2u);
  EXPECT_GE(s.phases[0].duration, 4 * s.deadline);
  EXPECT_EQ(s.phases[1].name, kEnd);
  EXPECT_EQ(s.phases[1].duration, s.deadline);
}

TEST(ChangeTest, MutantsArePlayableAndDifferent) {
  scenario::Random random(1);
  std::set<std::string> texts;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    World world = DrawWorld(seed);
    for (int i = 0; i < 5; ++i) {
      world = Mutate(world, random);
      EXPECT_TRUE(Playable(world.scenario));
      texts.insert(world.text);
    }
  }
  EXPECT_GT(texts.size(), 150u);
}

}  // namespace
}  // namespace weir::hunt
