#include "help.h"

#include <gtest/gtest.h>

#include <sstream>

namespace weir::cli {
namespace {

TEST(HelpTest, TextIsWrappedAtSpaces) {
  EXPECT_EQ(Wrapped("one two three", 0, 2, 8), "one two\n  three");
  EXPECT_EQ(Wrapped("one two three", 4, 2, 8), "one\n  two\n  three");
  EXPECT_EQ(Wrapped("unbreakable-word x", 0, 2, 8), "unbreakable-word\n  x");
  EXPECT_EQ(Wrapped("a,bcd,efg,hi", 0, 2, 8), "a,bcd,\n  efg,hi");
  EXPECT_EQ(Wrapped("", 0, 2, 8), "");
  EXPECT_EQ(Wrapped("a\nb", 0, 2, 8), "a\n  b");
}

std::string HelpOf(size_t width) {
  CLI::App app("Overload control for services.", "weir");
  app.formatter(std::make_shared<HelpFormatter>(width));
  CLI::App* storm = app.add_subcommand(
      "storm", "Offer a scenario's load to a service and tell how it fared");
  std::string target;
  storm
      ->add_option("--target", target,
                   "Where to, as http://127.0.0.1:8000; the service must be "
                   "there already, and is asked until it is idle")
      ->required();
  return storm->help("weir");
}

TEST(HelpTest, NoLineIsWiderThanTheTerminal) {
  for (const size_t width : {40u, 60u, 80u}) {
    std::istringstream help(HelpOf(width));
    size_t lines = 0;
    for (std::string line; std::getline(help, line); ++lines) {
      EXPECT_LE(line.size(), width) << line;
    }
    EXPECT_GT(lines, 5u);
  }
}

TEST(HelpTest, TheUsageNamesTheWholeCommand) {
  EXPECT_NE(HelpOf(80).find("Usage: weir storm ["), std::string::npos)
      << HelpOf(80);
}

}  // namespace
}  // namespace weir::cli
