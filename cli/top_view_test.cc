#include "top_view.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "golden.h"
#include "top_figures.h"

namespace weir::cli {
namespace {

using namespace std::chrono_literals;

// A usual terminal without the line of keys.
constexpr Size kUsual{.columns = 80, .rows = 23};
constexpr Style kColour{.bold = "\x1b[1m",
                        .dim = "\x1b[2m",
                        .red = "\x1b[31m",
                        .green = "\x1b[32m",
                        .yellow = "\x1b[33m",
                        .reset = "\x1b[0m"};

void Count(Snapshot& snapshot, ClassCounter counter,
           const std::array<uint64_t, kCriticalities>& counts) {
  snapshot.by_class[static_cast<size_t>(counter)] = counts;
}

void Set(Snapshot& snapshot, Gauge gauge, double value) {
  snapshot.gauges[static_cast<size_t>(gauge)] = value;
}

// A service of 1000/s that is offered 10000/s, two seconds apart.
TopFrame Overloaded() {
  TopFrame frame;
  frame.seconds = 2;
  frame.time = "14:02:11";
  Snapshot& now = frame.now;
  now.service = "checkout";
  now.policy_version = 3;
  now.inflight = 30;
  now.waiting = {0, 9, 27, 0};
  Count(now, ClassCounter::offered_total, {1500, 5000, 7000, 11001});
  Count(now, ClassCounter::admitted_total, {1500, 1490, 2, 1});
  Count(now, ClassCounter::waited_total, {900, 1800, 300, 0});
  Count(now, ClassCounter::shed_level_total, {0, 2900, 6500, 11000});
  Count(now, ClassCounter::shed_deadline_total, {0, 3, 0, 0});
  Count(now, ClassCounter::finished_ok_total, {1490, 1480, 2, 1});
  Count(now, ClassCounter::late_total, {0, 0, 0, 0});
  now.counters[static_cast<size_t>(Counter::rounds_total)] = 31;
  Set(now, Gauge::limit, 30);
  Set(now, Gauge::capacity_per_s, 998.4);
  Set(now, Gauge::demand_per_s, 9984);
  Set(now, Gauge::base_latency_us, 20'100);
  Set(now, Gauge::budget_us, 500'000);
  Set(now, Gauge::queue_target, 36);
  Set(now, Gauge::overloaded, 1);
  Set(now, Gauge::law_mode, 1);
  Set(now, Gauge::level, 380);
  now.resources = {{"/admin", true, 40, 40}, {"/pay", false, 24461, 20363}};
  now.workers = {{0, {4711, 9}, 16, 20}, {1, {4712, 9}, 14, 16}};
  frame.alive = {true, true};

  Snapshot& before = frame.before;
  before = now;
  Count(before, ClassCounter::offered_total, {500, 1000, 1000, 2000});
  Count(before, ClassCounter::admitted_total, {500, 500, 2, 1});
  Count(before, ClassCounter::waited_total, {0, 0, 0, 0});
  Count(before, ClassCounter::shed_level_total, {0, 500, 1000, 1999});
  Count(before, ClassCounter::finished_ok_total, {500, 500, 2, 1});
  before.resources = {{"/pay", false, 4461, 3463}};
  // 98 of the last two seconds at 31 ms and 2 at 70 ms; older ones at 1 s.
  before.latency[Histogram::Step(1s)] = 500;
  now.latency[Histogram::Step(1s)] = 500;
  now.latency[Histogram::Step(31ms)] = 98;
  now.latency[Histogram::Step(70ms)] = 2;
  now.queue_delay[Histogram::Step(400us)] = 60;
  now.queue_delay[Histogram::Step(33ms)] = 40;
  return frame;
}

TopFrame Calm() {
  TopFrame frame = Overloaded();
  Snapshot& now = frame.now;
  now.inflight = 4;
  now.waiting = {};
  Set(now, Gauge::overloaded, 0);
  Set(now, Gauge::demand_per_s, 212.3);
  Set(now, Gauge::level, 0);
  Count(now, ClassCounter::offered_total, {510, 1090, 1100, 2003});
  Count(now, ClassCounter::admitted_total, {510, 590, 102, 4});
  now.by_class[static_cast<size_t>(ClassCounter::shed_level_total)] =
      frame.before[ClassCounter::shed_level_total];
  return frame;
}

// What a terminal would count.
size_t Columns(std::string_view line) {
  size_t columns = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      i = line.find('m', i);
    } else {
      ++columns;
    }
  }
  return columns;
}

TEST(TopViewTest, Overload) {
  ExpectGolden(RenderScreen(Overloaded(), kUsual, {}), "top_overload.txt");
}

TEST(TopViewTest, OperatingGuideShowsThatScreen) {
  const std::string page = RenderScreen(Overloaded(), kUsual, {});
  const std::string top = page.substr(0, page.find("\n\nper second"));
  EXPECT_NE(ReadFile(SourcePath("docs/operating.md")).find(top),
            std::string::npos)
      << top;
}

TEST(TopViewTest, CalmService) {
  ExpectGolden(RenderScreen(Calm(), kUsual, {}), "top_calm.txt");
}

TEST(TopViewTest, FirstReadingHasNoRates) {
  TopFrame frame = Overloaded();
  frame.seconds = 0;
  ExpectGolden(RenderScreen(frame, kUsual, {}), "top_first.txt");
}

TEST(TopViewTest, JustMadeRegion) {
  TopFrame frame;
  frame.seconds = 1;
  frame.time = "00:00:01";
  frame.now.service = "new";
  Set(frame.now, Gauge::limit, 4);
  Set(frame.now, Gauge::queue_target, 1e15);
  frame.now.workers = {{0, {1, 1}, 0, 0}};
  frame.alive = {true};
  ExpectGolden(RenderScreen(frame, kUsual, {}), "top_new.txt");
}

TEST(TopViewTest, StoppedService) {
  TopFrame frame = Calm();
  frame.state = ServiceState::kNoWorkers;
  frame.alive = {false, false};
  ExpectGolden(RenderScreen(frame, kUsual, {}), "top_stopped.txt");
}

TEST(TopViewTest, WideScreenWithColour) {
  TopFrame frame = Overloaded();
  frame.alive = {true, false};
  ExpectGolden(RenderScreen(frame, {.columns = 120, .rows = 30}, kColour),
               "top_wide_colour.txt");
}

TEST(TopViewTest, CountersWithTheirMeaning) {
  int offset = 3;
  ExpectGolden(RenderCounters(Overloaded(), kUsual, {}, offset),
               "top_counters.txt");
  EXPECT_EQ(offset, 3);
  offset = 10'000;
  ExpectGolden(
      RenderCounters(Overloaded(), {.columns = 130, .rows = 12}, {}, offset),
      "top_counters_end.txt");
}

TEST(TopViewTest, Lines) {
  TopFrame gone = Overloaded();
  gone.state = ServiceState::kRemoved;
  ExpectGolden(RenderLine(Overloaded()) + '\n' + RenderLine(Calm()) + '\n' +
                   RenderLine(gone),
               "top_lines.txt");
}

TEST(TopViewTest, Json) {
  ExpectGolden(nlohmann::ordered_json::parse(RenderJson(Overloaded())).dump(2),
               "top.json");
}

TEST(TopViewTest, JsonIsOneLineWhateverBytesANameHas) {
  TopFrame frame = Overloaded();
  frame.now.resources[0].name = "\xff\n\"";
  frame.now.gauges[0] = std::numeric_limits<double>::infinity();
  const std::string json = RenderJson(frame);
  EXPECT_EQ(json.find('\n'), std::string::npos);
  EXPECT_TRUE(nlohmann::json::accept(json)) << json;
}

TEST(TopViewTest, AnySizeGetsJustAsManyLinesAndNoLongerOnes) {
  TopFrame frame = Overloaded();
  for (int i = 0; i < 64; ++i) {
    frame.now.workers.push_back({i, {100'000 + i, 1}, 5, 5});
    frame.now.resources.push_back({std::string(47, 'x'), false, 1, 1});
  }
  for (int rows = 1; rows <= 60; ++rows) {
    for (int columns = 1; columns <= 200; columns += 7) {
      const Size size{.columns = columns, .rows = rows};
      int offset = rows;
      for (const std::string& page :
           {RenderScreen(frame, size, kColour),
            RenderCounters(frame, size, kColour, offset)}) {
        std::istringstream lines(page);
        int count = 0;
        for (std::string line; std::getline(lines, line); ++count) {
          ASSERT_LE(Columns(line), static_cast<size_t>(columns))
              << rows << " rows: " << line;
        }
        // getline() does not see an empty last line.
        if (page.empty() || page.back() == '\n') ++count;
        ASSERT_EQ(count, rows) << columns << " columns";
      }
    }
  }
}

TEST(TopFiguresTest, RatesOfARegionMadeAnewAreNotNegative) {
  TopFrame frame = Overloaded();
  std::swap(frame.now, frame.before);
  for (size_t i = 0; i < kClassCounters; ++i) {
    const auto rates = Rate(frame, i);
    ASSERT_TRUE(rates.has_value());
    for (const double rate : *rates) EXPECT_GE(rate, 0);
  }
}

TEST(TopFiguresTest, QuantilesAreOfTheIntervalAlone) {
  const TopFrame frame = Overloaded();
  EXPECT_LT(*Quantile(frame, &Snapshot::latency, 1), 100ms)
      << "those of 1 s are older";
}

TEST(TopFiguresTest, CutClassFollowsTheDefinitionOfLevel) {
  EXPECT_EQ(CutClass(0), std::nullopt);
  EXPECT_EQ(CutClass(1), Criticality::kSheddable);
  EXPECT_EQ(CutClass(127), Criticality::kSheddable);
  EXPECT_EQ(CutClass(128), Criticality::kDeferrable);
  EXPECT_EQ(CutClass(256), Criticality::kImportant);
  EXPECT_EQ(CutClass(511), Criticality::kVital);
  EXPECT_EQ(CutClass(1e9), Criticality::kVital);
}

TEST(TopFiguresTest, NumbersAreShort) {
  EXPECT_EQ(FormatNumber(0), "0");
  EXPECT_EQ(FormatNumber(.44), "0.4");
  EXPECT_EQ(FormatNumber(9.94), "9.9");
  EXPECT_EQ(FormatNumber(9.96), "10");
  EXPECT_EQ(FormatNumber(99'999), "99999");
  EXPECT_EQ(FormatNumber(123'456), "123k");
  EXPECT_EQ(FormatNumber(4'500'000), "4.5M");
  EXPECT_EQ(FormatNumber(std::nan("")), "-");
}

TEST(TopFiguresTest, DurationsAreShort) {
  EXPECT_EQ(FormatDuration(0us), "0 us");
  EXPECT_EQ(FormatDuration(999us), "999 us");
  EXPECT_EQ(FormatDuration(1ms), "1.0 ms");
  EXPECT_EQ(FormatDuration(99'960us), "100 ms");
  EXPECT_EQ(FormatDuration(999'600us), "1.00 s");
}

}  // namespace
}  // namespace weir::cli
