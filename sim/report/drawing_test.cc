#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "path.h"
#include "series.h"
#include "style.h"

namespace weir::sim_report {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// The points at which a path turns, as a browser would read them.
std::vector<std::pair<int, int>> ReadPath(const std::string& data) {
  std::vector<std::pair<int, int>> points;
  size_t at = 0;
  char command = 0;
  int x = 0;
  int y = 0;
  const auto number = [&] {
    while (data[at] == ' ') ++at;
    size_t length = 0;
    const int value = std::stoi(data.substr(at), &length);
    at += length;
    return value;
  };
  while (at < data.size()) {
    if (std::isalpha(static_cast<unsigned char>(data[at])) != 0) {
      command = data[at++];
    }
    if (command == 'M') {
      x = number();
      y = number();
    } else if (command == 'l') {
      x += number();
      y += number();
    } else if (command == 'h') {
      x += number();
    } else if (command == 'v') {
      y += number();
    }
    points.emplace_back(x, y);
  }
  return points;
}

// Goal: a path runs through just the points that were asked for.
// Method: the model keeps all points and drops those in the middle of a
// straight stretch, which the path does not need.
TEST(PathTest, RunsThroughThePointsThatWereAskedFor) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    Path path;
    std::vector<std::pair<int, int>> model = {{3, -4}};
    path.Move(3, -4);
    for (int i = 0; i < 12; ++i) {
      const int dx = static_cast<int>(random() % 3);
      const int dy = static_cast<int>(random() % 5) - 2;
      const std::pair<int, int> next = {model.back().first + dx,
                                        model.back().second + dy};
      path.Line(next.first, next.second);
      if (next == model.back()) continue;
      if (model.size() > 1) {
        const auto& before = model[model.size() - 2];
        const int ax = model.back().first - before.first;
        const int ay = model.back().second - before.second;
        if (ax * dy == ay * dx && ax * dx + ay * dy > 0) model.pop_back();
      }
      model.push_back(next);
    }
    const std::string data = path.Take();
    ASSERT_EQ(ReadPath(data), model) << "round " << round << ": " << data;
  }
}

TEST(SeriesTest, NeverMorePointsThanMayBeDrawn) {
  for (size_t bins = 0; bins <= 2000; ++bins) {
    const Points points = Thinned(std::vector<double>(bins, 1.0), Keep::kMean);
    ASSERT_LE(points.values.size(), kMostPoints);
    ASSERT_GE(points.values.size(), std::min(bins, kMostPoints / 2));
    if (bins == 0) continue;
    // The last ends where the width does.
    ASSERT_LT(points.Place(points.values.size() - 1), 1);
    ASSERT_GE(points.step * static_cast<double>(points.values.size()),
              1 - 1e-9);
  }
}

TEST(SeriesTest, ThinningKeepsTheAreaOrThePeak) {
  std::vector<double> values(600);
  values[101] = 8;
  EXPECT_EQ(Most(Thinned(values, Keep::kMost).values), 8);
  EXPECT_EQ(Most(Thinned(values, Keep::kMean).values), 4);
}

TEST(SeriesTest, WhatIsNotFiniteIsNotDrawn) {
  const double infinite = std::numeric_limits<double>::infinity();
  const Points points = Thinned({1, kNone, infinite, 2}, Keep::kMean);
  ASSERT_EQ(points.values.size(), 4u);
  EXPECT_TRUE(std::isnan(points.values[1]));
  EXPECT_TRUE(std::isnan(points.values[2]));
  EXPECT_EQ(points.values[3], 2);
}

TEST(AxisTest, TicksAreRoundAndFew) {
  std::mt19937 random(11);
  for (int i = 0; i < 5000; ++i) {
    const double most =
        std::pow(10, std::uniform_real_distribution(-3., 9.)(random));
    const Axis axis = LinearAxis(most, Unit::kNumber, 5);
    ASSERT_GE(axis.ticks.size(), 2u) << most;
    ASSERT_LE(axis.ticks.size(), 6u) << most;
    ASSERT_LE(axis.ticks.back().value, most * 1.0001);
    const double step = axis.ticks[1].value;
    const double lead =
        step / std::pow(10, std::floor(std::log10(step) + 1e-9));
    ASSERT_TRUE(std::fabs(lead - 1) < 1e-6 || std::fabs(lead - 2) < 1e-6 ||
                std::fabs(lead - 5) < 1e-6)
        << step;
  }
}

TEST(AxisTest, DecadesHoldAllValues) {
  const Axis axis = LogarithmicAxis(12, 100, Unit::kMilliseconds);
  EXPECT_EQ(axis.low, 10);
  EXPECT_EQ(axis.high, 100);
  EXPECT_NEAR(axis.Place(31.6227766), .5, 1e-6);
  // One value still has a decade to lie in.
  const Axis one = LogarithmicAxis(100, 100, Unit::kMilliseconds);
  EXPECT_LT(one.low, one.high);
}

TEST(AxisTest, NothingAtAllStillHasAnAxis) {
  EXPECT_EQ(LinearAxis(0, Unit::kNumber, 5).high, 1);
  EXPECT_EQ(LinearAxis(kNone, Unit::kNumber, 5).high, 1);
}

// Relative luminance, as [WCAG] defines it.
double Luminance(std::string_view colour) {
  double sum = 0;
  constexpr double kWeights[] = {.2126, .7152, .0722};
  for (size_t i = 0; i < 3; ++i) {
    const double value =
        std::stoi(std::string(colour.substr(1 + 2 * i, 2)), nullptr, 16) / 255.;
    sum +=
        kWeights[i] * (value <= .03928 ? value / 12.92
                                       : std::pow((value + .055) / 1.055, 2.4));
  }
  return sum;
}

double Contrast(std::string_view a, std::string_view b) {
  const auto [low, high] = std::minmax({Luminance(a), Luminance(b)});
  return (high + .05) / (low + .05);
}

// 4.5: what [WCAG] asks of text.
TEST(StyleTest, TextAndLinesReadOnTheirGround) {
  const Ink ground = Grounds()[0];
  std::vector<Ink> inks = {Grounds()[1], Grounds()[2]};
  inks.insert(inks.end(), LineInks().begin(), LineInks().end());
  for (const Ink& ink : inks) {
    EXPECT_GE(Contrast(ink.light, ground.light), 4.5) << ink.light;
    EXPECT_GE(Contrast(ink.dark, ground.dark), 4.5) << ink.dark;
  }
}

TEST(StyleTest, ShadedCellsLeaveTextReadable) {
  for (const Ink& shade : Shades()) {
    if (shade.light == "transparent") continue;
    EXPECT_GE(Contrast(Grounds()[1].light, shade.light), 4.5) << shade.light;
    EXPECT_GE(Contrast(Grounds()[1].dark, shade.dark), 4.5) << shade.dark;
  }
}

TEST(StyleTest, NoTwoStylesHaveTheSameColourAndDash) {
  std::set<std::pair<size_t, size_t>> seen;
  for (size_t style = 0; style < kStyles; ++style) {
    EXPECT_TRUE(seen.emplace(InkOfStyle(style), DashOfStyle(style)).second)
        << style;
  }
  // Those that are drawn at first differ in both.
  for (size_t a = 0; a < 6; ++a) {
    for (size_t b = 0; b < a; ++b) {
      EXPECT_NE(InkOfStyle(a), InkOfStyle(b));
      EXPECT_NE(DashOfStyle(a), DashOfStyle(b));
    }
  }
}

}  // namespace
}  // namespace weir::sim_report
