#include "weir/config/units.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>

namespace weir::config {
namespace {

using namespace std::chrono_literals;

TEST(UnitsTest, DurationsReadExactly) {
  const std::pair<std::string, Duration> cases[] = {
      {"250ms", 250ms}, {"1.5s", 1500ms},
      {"20us", 20us},   {"2m", 2min},
      {"1h", 1h},       {"0s", 0ns},
      {"0.001us", 1ns}, {"1.250h", 75min},
      {"0.1s", 100ms},  {"9223372036s", 9223372036s}};
  for (const auto& [text, duration] : cases) {
    const auto read = ParseDuration(text);
    ASSERT_TRUE(read.ok()) << text << ' ' << read.error().message;
    EXPECT_EQ(*read, duration) << text;
  }
}

TEST(UnitsTest, WhatIsNoDurationSaysWhy) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "is no duration"},
      {"fast", "is no duration"},
      {"1.s", "is no duration"},
      {".5s", "is no duration"},
      {"250", "has no unit"},
      {"-1s", "is negative"},
      {"0.0000000000002h", "is finer than a nanosecond"},
      {"0.1ns", "is finer than a nanosecond"},
      {"300000000000h", "is longer than 292 years"},
      {"99999999999999999999s", "has too many digits"}};
  for (const auto& [text, why] : cases) {
    const auto read = ParseDuration(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().message, why) << text;
  }
  EXPECT_EQ(ParseDuration("5 s").error().message,
            "has a blank before its unit");
  EXPECT_NE(ParseDuration("5d").error().message.find("unknown unit `d`"),
            std::string::npos);
}

TEST(UnitsTest, DurationsRoundTrip) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100'000; ++i) {
    const auto count = static_cast<int64_t>(random() >> (1 + random() % 62));
    const Duration duration(count);
    const std::string text = FormatDuration(duration);
    const auto read = ParseDuration(text);
    ASSERT_TRUE(read.ok()) << text << ' ' << read.error().message;
    ASSERT_EQ(*read, duration) << text;
  }
  EXPECT_EQ(FormatDuration(1500ms), "1500ms");
  EXPECT_EQ(FormatDuration(120s), "2m");
}

TEST(UnitsTest, RatesArePerSecond) {
  EXPECT_EQ(*ParseRate("1000/s"), 1000);
  EXPECT_EQ(*ParseRate("1.5/ms"), 1500);
  EXPECT_EQ(*ParseRate("90/m"), 1.5);
  EXPECT_EQ(*ParseRate("0/s"), 0);
  for (const std::string text : {"", "1000", "/s", "1000/", "1000/x", "-1/s",
                                 "1e5/s", "nan/s", "inf/s", "1000 /s"}) {
    EXPECT_FALSE(ParseRate(text).ok()) << text;
  }
}

TEST(UnitsTest, NumbersRoundTrip) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 100'000; ++i) {
    const double number = std::ldexp(static_cast<double>(random() >> 11),
                                     static_cast<int>(random() % 80) - 90);
    const std::string text = FormatNumber(number);
    ASSERT_EQ(std::stod(text), number) << text;
  }
  EXPECT_EQ(FormatNumber(1'000'000), "1000000");
  EXPECT_EQ(FormatNumber(0.25), "0.25");
}

TEST(UnitsTest, ADurationOfAnotherNotationHasAnObviousAnswer) {
  EXPECT_EQ(NearestDuration("5 sec"), "5s");
  EXPECT_EQ(NearestDuration("1min"), "1m");
  EXPECT_EQ(NearestDuration("1h30m"), "90m");
  EXPECT_EQ(NearestDuration("1,5 Seconds"), "1500ms");
  EXPECT_EQ(NearestDuration("250 msec"), "250ms");
  EXPECT_EQ(NearestDuration("3\xc2\xb5s"), "3us");
  EXPECT_EQ(NearestDuration("1 day"), "24h");
}

TEST(UnitsTest, WhatIsNoDurationHasNone) {
  for (const char* text : {"", "soon", "5", "5 parsecs", "s5", "-1s", "1.5ns",
                           "9999999999999999999s", "300000d300000d"}) {
    EXPECT_EQ(NearestDuration(text), "") << text;
  }
}

}  // namespace
}  // namespace weir::config
