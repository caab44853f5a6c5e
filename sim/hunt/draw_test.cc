#include "weir/hunt/draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace weir::hunt {
namespace {

TEST(DrawTest, TheSameSeedDrawsTheSameWorld) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const World first = DrawWorld(seed);
    const World again = DrawWorld(seed);
    EXPECT_EQ(first.text, again.text);
    EXPECT_EQ(first.guard_workers, again.guard_workers);
    EXPECT_EQ(first.told_workers, again.told_workers);
    EXPECT_EQ(first.traits, again.traits);
  }
}

TEST(DrawTest, SeedsDrawDifferentWorldsOfEveryTrait) {
  std::set<std::string> texts;
  std::set<std::string> traits;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    const World world = DrawWorld(seed);
    texts.insert(world.text);
    traits.insert(world.traits.begin(), world.traits.end());
  }
  EXPECT_EQ(texts.size(), 600u);
  for (const char* trait : {"workers 1",
                            "workers 501-5000",
                            "constant",
                            "exponential",
                            "lognormal",
                            "bimodal",
                            "heavy-tailed",
                            "sharing",
                            "one kind",
                            "a route waits",
                            "a heavy route",
                            "a pool or lock",
                            "all wait",
                            "patient callers",
                            "classes",
                            "retries",
                            "flood",
                            "spike",
                            "square",
                            "bursts",
                            "ramp",
                            "steady",
                            "peaks that fit",
                            "idle first",
                            "quick while idle",
                            "days",
                            "pauses",
                            "slow for a while",
                            "fewer workers",
                            "fails fast",
                            "fails late",
                            "fails when done",
                            "stands still",
                            "guard in a proxy",
                            "the proxy gives up",
                            "hogs",
                            "strangers",
                            "a dependency hangs",
                            "the mix moves",
                            "disturbed",
                            "guards 1",
                            "guards 9-64",
                            "told the workers",
                            "told nothing",
                            "latency < 10 ms",
                            "latency 1 s up"}) {
    EXPECT_TRUE(traits.contains(trait)) << trait;
  }
}

}  // namespace
}  // namespace weir::hunt
