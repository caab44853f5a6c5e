#include "weir/hunt/figures.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "weir/hunt/search.h"
#include "weir/hunt/table.h"
#include "weir/scenario/read.h"
#include "weir/sim/algorithms.h"
#include "weir/sim/world.h"

namespace weir::hunt {
namespace {

// What `weir hunt --print` writes and `weir sim` reads.
TEST(FiguresTest, APrintedWorldPlaysToTheSameFigures) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const World world = DrawWorld(seed);
    const auto figures = Play(world, {"weir", "none"}, nullptr);
    const auto read = scenario::ParseScenario(world.text, "world");
    ASSERT_TRUE(read);
    const sim::Outcomes outcomes = sim::Simulate(
        *read,
        sim::Weir("weir", nullptr, world.told_workers, world.guard_workers),
        {.seed = read->seed});
    EXPECT_EQ(outcomes.report.all.goodput_ratio, (*figures)[0].goodput);
    EXPECT_EQ(outcomes.report.all.work_ratio, (*figures)[0].work);
  }
}

TEST(FiguresTest, ThreadsAndRecordsChangeNoResult) {
  HuntOptions options{.algorithms = {"weir", "none"}};
  options.seeds.resize(8);
  std::iota(options.seeds.begin(), options.seeds.end(), 1);
  const auto one = Hunt(options);
  options.threads = 3;
  for (const Played& played : *one) {
    options.record[played.world.seed]["none"] = played.figures[1];
  }
  const auto three = Hunt(options);
  ASSERT_TRUE(one && three);
  for (size_t i = 0; i < one->size(); ++i) {
    for (size_t a = 0; a < 2; ++a) {
      EXPECT_EQ((*one)[i].figures[a].work, (*three)[i].figures[a].work);
    }
  }
}

// What ./test holds the hunted one against is what this simulator gives.  To
// write it anew: weir hunt --seeds 1-150 --rivals-to
// sim/hunt/testdata/rivals.json
TEST(FiguresTest, TheRivalsOfTheRecordPlayAsTheyAreWritten) {
  std::ifstream file(std::string(std::getenv("WEIR_SOURCE_DIR")) +
                     "/sim/hunt/testdata/rivals.json");
  std::stringstream text;
  text << file.rdbuf();
  const auto record = ParseRecord(text.str());
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->size(), 150u);
  for (const uint64_t seed : {2, 14, 41, 77, 103, 131}) {
    std::vector<std::string> names;
    for (const auto& [name, figures] : record->at(seed)) names.push_back(name);
    EXPECT_EQ(names.size(), 6u);
    const auto played = Play(DrawWorld(seed), names, nullptr);
    ASSERT_TRUE(played);
    for (size_t i = 0; i < names.size(); ++i) {
      const Figures& written = record->at(seed).at(names[i]);
      EXPECT_EQ((*played)[i].goodput, written.goodput) << seed << names[i];
      EXPECT_EQ((*played)[i].work, written.work) << seed << names[i];
      EXPECT_EQ((*played)[i].after, written.after) << seed << names[i];
    }
  }
}

TEST(FiguresTest, AnUnknownAlgorithmIsAnError) {
  const auto played = Hunt({.seeds = {1, 2}, .algorithms = {"weir", "nobody"}});
  ASSERT_FALSE(played);
  EXPECT_NE(played.error().message.find("nobody"), std::string::npos);
}

// The worst that were found come first, and mutation finds worse than drawing
// the same number of worlds.
TEST(SearchTest, FindsTheWorstFirstAndTheSameAgain) {
  const auto search = [](int worlds) {
    int played = 0;
    return *Search({.algorithms = {"none", "fixed"},
                    .kept = 10,
                    .progress = [&played, worlds] {
                      return static_cast<double>(played++) / worlds;
                    }});
  };
  const auto found = search(60);
  ASSERT_EQ(found.size(), 10u);
  for (size_t i = 1; i < found.size(); ++i) {
    EXPECT_GE(Loss(found[i - 1], 0), Loss(found[i], 0));
  }
  EXPECT_EQ(search(60)[0].world.text, found[0].world.text);
}

}  // namespace
}  // namespace weir::hunt
