#include "sim_options.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "scratch.h"

namespace weir::cli {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

TEST(SimOptionsTest, APathThatCannotBeWrittenIsFoundOutBefore) {
  const auto scratch = Scratch::Make("weir-report-");
  ASSERT_TRUE(scratch.ok());
  const auto error = CheckWritable(scratch->Path("no/report.html"));
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("no/report.html: No such file or directory"),
            std::string::npos)
      << error->message;
  EXPECT_TRUE(CheckWritable(scratch->path()));  // A folder.
}

TEST(SimOptionsTest, TryingAPathLeavesWhatWasThere) {
  const auto scratch = Scratch::Make("weir-report-");
  ASSERT_TRUE(scratch.ok());
  const std::string path = scratch->Path("report.html");
  EXPECT_FALSE(CheckWritable(path));
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(scratch->Write("report.html", "old").ok());
  EXPECT_FALSE(CheckWritable(path));
  EXPECT_EQ(std::filesystem::file_size(path), 3u);
  EXPECT_FALSE(CheckWritable(""));
}

TEST(SimOptionsTest, TimeLeftGoesOnAsBefore) {
  EXPECT_EQ(TimeLeft(seconds(10), 10, 17), "7 s");
  EXPECT_EQ(TimeLeft(minutes(6), 100, 300), "12 min");
  EXPECT_EQ(TimeLeft(minutes(20), 10, 110), "3 h 20 min");
  EXPECT_EQ(TimeLeft(seconds(0), 0, 10), "");
  EXPECT_EQ(TimeLeft(seconds(5), 10, 10), "");
}

}  // namespace
}  // namespace weir::cli
