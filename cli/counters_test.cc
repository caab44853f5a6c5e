#include "counters.h"

#include <gtest/gtest.h>

#include "golden.h"
#include "weir/snapshot.h"

namespace weir::cli {
namespace {

constexpr std::string_view kBegin = "<!-- counters: begin -->\n";
constexpr std::string_view kEnd = "<!-- counters: end -->\n";

// The table in the guide is made from counters.def, not written by hand.
TEST(CountersTest, OperatingGuideHasThemAsDeclared) {
  const std::string path = SourcePath("docs/operating.md");
  std::string guide = ReadFile(path);
  const size_t begin = guide.find(kBegin);
  const size_t end = guide.find(kEnd);
  ASSERT_NE(begin, std::string::npos) << path << " lacks " << kBegin;
  ASSERT_NE(end, std::string::npos) << path << " lacks " << kEnd;
  const size_t from = begin + kBegin.size();
  if (std::getenv("WEIR_UPDATE_GOLDEN") != nullptr) {
    guide.replace(from, end - from, CountersMarkdown());
    std::ofstream(path, std::ios::binary) << guide;
    return;
  }
  EXPECT_EQ(guide.substr(from, end - from), CountersMarkdown())
      << "run cli_test with WEIR_UPDATE_GOLDEN=1 to write it anew";
}

TEST(CountersTest, EachIsExplainedOnce) {
  const std::string text = CountersText();
  const auto expect_once = [&](const CounterInfo& info) {
    const std::string name = "\n  " + std::string(info.name) + ' ';
    const size_t at = text.find(name);
    ASSERT_NE(at, std::string::npos) << info.name;
    EXPECT_EQ(text.find(name, at + 1), std::string::npos) << info.name;
    EXPECT_NE(text.find(info.help, at), std::string::npos) << info.name;
  };
  for (const CounterInfo& info : kGaugeInfo) expect_once(info);
  for (const CounterInfo& info : kClassCounterInfo) expect_once(info);
  for (const CounterInfo& info : kCounterInfo) expect_once(info);
}

}  // namespace
}  // namespace weir::cli
