#include "weir/scenario/write.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "weir/scenario/read.h"

namespace weir::scenario {
namespace {

// The scenarios that there are, but for those with rules of a client guard,
// which are not written.
std::vector<std::string> Files() {
  std::vector<std::string> files;
  const std::string root =
      std::string(std::getenv("WEIR_SOURCE_DIR")) + "/sim/scenarios";
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  }
  return files;
}

// Goal: what is written reads back to the same scenario.
// Method: there is no comparison of scenarios, but the text of one says all
// that there is to it; so the text of what was read back must be the same.
TEST(WriteTest, WhatIsWrittenReadsBackToTheSameScenario) {
  int read = 0;
  for (const std::string& file : Files()) {
    const auto scenario = LoadScenario(file);
    ASSERT_TRUE(scenario) << file;
    const std::string text = ToToml(*scenario);
    const auto again = ParseScenario(text, file);
    ASSERT_TRUE(again) << again.complaints().Print("") << text;
    EXPECT_EQ(ToToml(*again), text) << file;
    EXPECT_EQ(again->bounds.size(), scenario->bounds.size()) << file;
    ++read;
  }
  EXPECT_GT(read, 40);
}

}  // namespace
}  // namespace weir::scenario
