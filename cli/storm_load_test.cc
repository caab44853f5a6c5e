#include "storm_load.h"

#include <gtest/gtest.h>

#include <sstream>

#include "storm_calls.h"

namespace weir::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(StormLoadTest, ALoadOffersItsRateOnEachOfItsPaths) {
  const auto scenario = MakeLoad({.rate = 200,
                                  .length = seconds(20),
                                  .deadline = milliseconds(300),
                                  .paths = {"/a", "/b"},
                                  .criticality = Criticality::kVital});
  StormCalls calls(scenario, 1);
  uint64_t paths[2] = {};
  while (const auto at = calls.next()) {
    const auto attempt = calls.Take(*at);
    ASSERT_TRUE(attempt);
    ++paths[attempt->arrival.route];
    calls.End(*attempt, *at + milliseconds(1), StormOutcome::kAnswered);
  }
  // Poisson with a mean of 2000 each; 5 deviations.
  EXPECT_NEAR(static_cast<double>(paths[0]), 2000, 224);
  EXPECT_NEAR(static_cast<double>(paths[1]), 2000, 224);
  const scenario::Report report = calls.MakeReport();
  EXPECT_EQ(report.classes[0].name, "vital");
  EXPECT_EQ(report.all.good, paths[0] + paths[1]);
}

TEST(StormLoadTest, WhatIsPrintedFitsANarrowTerminal) {
  scenario::Report report;
  report.all = {.offered = 1234567,
                .good = 1000000,
                .late = 4567,
                .shed = 230000,
                .failed = 0,
                .p50 = milliseconds(4),
                .p99 = seconds(1)};
  report.answers = {{"/", "200", 1004567}, {"/", "503 deadline", 230000}};
  const std::string text = LoadText(report, seconds(1));
  EXPECT_EQ(text,
            "offered    1234567\n"
            "in time    1000000    81.0 %\n"
            "late          4567     0.4 %\n"
            "refused     230000    18.6 %\n"
            "failed           0     0.0 %\n"
            "latency  p50 4.00 ms, p99 >1000 ms\n"
            "\n"
            "answers\n"
            "  200             1004567\n"
            "  503 deadline     230000\n");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 40u) << line;
  }
}

TEST(StormLoadTest, AnUrlIsAServiceAndAPath) {
  const auto url = ParseUrl("http://127.0.0.1:8000/shop?item=1");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url->host.text(), "127.0.0.1:8000");
  EXPECT_EQ(url->path, "/shop?item=1");
  EXPECT_EQ(ParseUrl("http://localhost/")->host.text(), "localhost:80");
  EXPECT_EQ(ParseUrl("http://localhost/")->path, "");
  EXPECT_EQ(ParseUrl("http://[::1]")->host.text(), "[::1]:80");
  EXPECT_EQ(ParseUrl("[::1]:81")->host.port, 81);
}

TEST(StormLoadTest, AnUrlThatCannotBeAskedIsRefused) {
  EXPECT_NE(ParseUrl("https://x:1/").error().message.find("without TLS"),
            std::string::npos);
  EXPECT_FALSE(ParseUrl("localhost").ok());
  EXPECT_FALSE(ParseUrl("http://").ok());
  EXPECT_FALSE(ParseUrl("http://x:1/a b").ok());
}

// What would end the header and begin something else is no part of it.
TEST(StormLoadTest, NothingMaySmuggleASecondLine) {
  EXPECT_TRUE(IsHeaderLine("Authorization: Bearer x"));
  EXPECT_FALSE(IsHeaderLine("a: b\r\nc: d"));
  EXPECT_FALSE(IsHeaderLine("no colon"));
  EXPECT_FALSE(IsHeaderLine(": no name"));
  EXPECT_FALSE(IsHeaderLine("a b: c"));
  EXPECT_TRUE(IsMethod("PROPFIND"));
  EXPECT_FALSE(IsMethod("GET /"));
  EXPECT_FALSE(IsPath("/a\r\nb"));
  EXPECT_FALSE(IsPath("a"));
}

}  // namespace
}  // namespace weir::cli
