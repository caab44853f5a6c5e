#include "spelling.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace weir::cli {
namespace {

class SpellingTest : public ::testing::Test {
 protected:
  SpellingTest() {
    CLI::App* storm = app_.add_subcommand("storm", "");
    storm->add_option("--target", target_, "");
    storm->add_flag("--live,!--no-live", live_, "");
    CLI::App* segment = app_.add_subcommand("segment", "");
    segment->add_subcommand("list", "");
  }
  std::string Say(const std::vector<std::string>& arguments) const {
    return FindUnknownWord(app_, arguments).value_or("fine");
  }

  CLI::App app_{"", "weir"};
  std::string target_;
  bool live_ = false;
};

TEST_F(SpellingTest, AMistypedCommandGetsTheNearestOne) {
  EXPECT_EQ(Say({"strom", "x"}),
            "unknown command `strom`; did you mean `storm`?\n"
            "see: weir --help");
  EXPECT_EQ(Say({"segment", "lsit"}),
            "unknown command `lsit`; did you mean `list`?\n"
            "see: weir segment --help");
}

TEST_F(SpellingTest, AWordThatIsNearNothingGetsNoSuggestion) {
  EXPECT_EQ(Say({"cheese"}), "unknown command `cheese`\nsee: weir --help");
}

TEST_F(SpellingTest, AMistypedOptionGetsTheNearestOfItsCommand) {
  EXPECT_EQ(Say({"storm", "--taget=x"}),
            "unknown option `--taget`; did you mean `--target`?\n"
            "see: weir storm --help");
  EXPECT_EQ(Say({"--verison"}), "unknown option `--verison`\nsee: weir --help");
}

TEST_F(SpellingTest, WhatIsKnownIsLeftAlone) {
  EXPECT_EQ(Say({"storm", "a-file", "--target", "x", "--no-live", "--help"}),
            "fine");
  EXPECT_EQ(Say({"storm", "--", "--taget"}), "fine");
  EXPECT_EQ(Say({}), "fine");
  EXPECT_EQ(Say({"segment"}), "fine");
}

}  // namespace
}  // namespace weir::cli
