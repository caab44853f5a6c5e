#include "access_log.h"

#include <gtest/gtest.h>

namespace weir::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

LogFormat Format(std::string_view text) {
  auto format = LogFormat::Parse(text);
  EXPECT_TRUE(format) << (format ? "" : format.error().message);
  return *format;
}

std::string WhyNot(const LogFormat& format, std::string_view line) {
  std::string why;
  EXPECT_FALSE(format.Read(line, &why));
  return why;
}

// 2024-05-01 12:00:00 UTC.
constexpr Duration kNoon = seconds(1'714'564'800);

TEST(AccessLogTest, CombinedIsUnderstood) {
  const auto entry = Format(kCombinedLogFormat)
                         .Read(
                             "10.1.2.3 - ann [01/May/2024:14:00:00 +0200] "
                             "\"GET /a/b?q=[x] HTTP/1.1\" 200 612 "
                             "\"http://x/\" \"Mozilla \\x22 (X11)\"",
                             nullptr);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->ended, kNoon);
  EXPECT_EQ(entry->zone, std::chrono::hours(2));
  EXPECT_EQ(entry->client, "10.1.2.3");
  EXPECT_EQ(entry->method, "GET");
  EXPECT_EQ(entry->path, "/a/b");
  EXPECT_EQ(entry->status, 200);
  EXPECT_FALSE(entry->request_time);
}

TEST(AccessLogTest, TheFormatOfNginxsPackagesIsUnderstood) {
  const auto entry =
      Format(kMainLogFormat)
          .Read(
              "10.1.2.3 - - [01/May/2024:14:00:00 +0200] \"GET /a HTTP/1.1\" "
              "200 612 \"-\" \"curl/7.88.1\" \"192.0.2.1, 10.0.0.1\"",
              nullptr);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->ended, kNoon);
  EXPECT_EQ(entry->path, "/a");
}

// Apache's %D counts microseconds, its %T seconds; nginx always has decimals.
TEST(AccessLogTest, ATimeWithoutDecimalsHasNoKnownUnit) {
  const LogFormat format = Format("$msec $uri $request_time");
  EXPECT_TRUE(format.Read("1714564800.250 / 0.020", nullptr));
  EXPECT_EQ(WhyNot(format, "1714564800.250 / 20"),
            "$request_time cannot be `20`: nginx writes seconds with decimals, "
            "as 0.020, so the unit of this one is not known");
  EXPECT_EQ(WhyNot(format, "1714564800 / 0.020").substr(0, 29),
            "$msec cannot be `1714564800`:");
  EXPECT_FALSE(
      Format("$msec $uri $upstream_response_time").Read("1.000 / 20", nullptr));
}

TEST(AccessLogTest, AZoneIsWrittenInHoursAndMinutes) {
  EXPECT_EQ(FormatZone({}), "UTC");
  EXPECT_EQ(FormatZone(std::chrono::hours(9)), "UTC+9");
  EXPECT_EQ(FormatZone(std::chrono::minutes(330)), "UTC+5:30");
  EXPECT_EQ(FormatZone(-std::chrono::minutes(570)), "UTC-9:30");
}

TEST(AccessLogTest, TheRecommendedFormatHasAllThereIsToKnow) {
  const auto entry = Format(kWeirLogFormat)
                         .Read(
                             "::1 [1714564800.250] \"POST /pay HTTP/2.0\" "
                             "200 0.125 \"0.100, 0.020\" \"vital\" "
                             "admit/waited 4.000/12",
                             nullptr);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->ended, kNoon + milliseconds(250));
  EXPECT_EQ(entry->request_time, milliseconds(125));
  EXPECT_EQ(entry->upstream_time, milliseconds(120));
  EXPECT_EQ(entry->criticality, Criticality::kVital);
  EXPECT_FALSE(entry->shed);
}

TEST(AccessLogTest, AnUpstreamThatWasNotAskedHasNoTime) {
  const LogFormat format = Format(kWeirLogFormat);
  const auto entry = format.Read(
      "::1 [1714564800.250] \"GET / HTTP/1.1\" 503 0.000 \"-\" \"-\" "
      "shed/level 0.000/12",
      nullptr);
  ASSERT_TRUE(entry);
  EXPECT_FALSE(entry->upstream_time);
  EXPECT_FALSE(entry->criticality);
  EXPECT_TRUE(entry->shed);
}

TEST(AccessLogTest, AJsonFormatWithEscapedQuotesIsUnderstood) {
  const LogFormat format = Format(
      R"(escape=json {"t":"$time_iso8601","ua":"$http_user_agent","u":"$request_uri"})");
  const auto entry = format.Read(
      R"({"t":"2024-05-01T07:00:00-05:00","ua":"a \",\"u\" b","u":"/x#y"})",
      nullptr);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->ended, kNoon);
  EXPECT_EQ(entry->path, "/x");
}

TEST(AccessLogTest, MillisecondsWinOverWholeSecondsInEitherOrder) {
  for (const std::string_view text :
       {"$msec $time_iso8601 $uri", "$time_iso8601 $msec $uri"}) {
    const bool first = text.starts_with("$msec");
    const auto entry =
        Format(text).Read(first ? "1714564800.250 2024-05-01T12:00:00+00:00 /"
                                : "2024-05-01T12:00:00+00:00 1714564800.250 /",
                          nullptr);
    ASSERT_TRUE(entry) << text;
    EXPECT_EQ(entry->ended, kNoon + milliseconds(250)) << text;
  }
}

TEST(AccessLogTest, WhatIsNoRequestHasNoPath) {
  const LogFormat format = Format("$msec \"$request\" $status");
  for (const std::string_view line :
       {"1.000 \"\\x16\\x03\\x01\" 400", "1.000 \"-\" 400", "1.000 \"\" 400",
        "1.000 \"OPTIONS * HTTP/1.1\" 200"}) {
    const auto entry = format.Read(line, nullptr);
    ASSERT_TRUE(entry) << line;
    EXPECT_EQ(entry->path, "") << line;
  }
  EXPECT_EQ(format.Read("1.000 \"GET http://h/p HTTP/1.1\" 200", nullptr)->path,
            "/p");
}

TEST(AccessLogTest, ABrokenLineIsToldFromWhereItBreaks) {
  const LogFormat format = Format("$remote_addr [$msec] \"$request\" $status");
  EXPECT_EQ(WhyNot(format, ""), "no ` [` after $remote_addr");
  EXPECT_EQ(WhyNot(format, "::1 [x] \"GET / HTTP/1.1\" 200"),
            "$msec cannot be `x`");
  EXPECT_EQ(WhyNot(format, "::1 [1.5] \"GET / HT"), "no `\" ` after $request");
  EXPECT_EQ(WhyNot(format, "::1 [1.5] \"GET / HTTP/1.1\" 20"),
            "$status cannot be `20`");
  EXPECT_EQ(WhyNot(format, "::1 [1.5] \"GET / HTTP/1.1\" 200 7"),
            "$status cannot be `200 7`");
}

TEST(AccessLogTest, ImpossibleTimesAreBroken) {
  const LogFormat format = Format("[$time_local] $uri");
  for (const std::string_view time :
       {"31/Feb/2024:14:00:00 +0200", "01/Mai/2024:14:00:00 +0200",
        "01/May/2024:24:00:00 +0200", "01/May/2024:14:00:00",
        "1/May/2024:14:00:00 +0200", "01/May/2024:14:00:-1 +0200"}) {
    EXPECT_FALSE(format.Read("[" + std::string(time) + "] /", nullptr)) << time;
  }
}

TEST(AccessLogTest, AFormatThatCannotBeReadSaysWhy) {
  const auto why = [](std::string_view text) {
    const auto format = LogFormat::Parse(text);
    return format ? "" : format.error().message;
  };
  EXPECT_NE(why("$uri").find("when a request came"), std::string::npos);
  EXPECT_NE(why("$msec $status").find("what was asked"), std::string::npos);
  EXPECT_NE(why("$msec$uri").find("nothing between"), std::string::npos);
  EXPECT_NE(why("$msec ${uri").find("without a"), std::string::npos);
  EXPECT_EQ(why("${msec} ${uri}"), "");
}

TEST(AccessLogTest, InstantsAreWrittenInTheZoneOfTheLog) {
  EXPECT_EQ(FormatLogTime(kNoon + milliseconds(300), std::chrono::hours(-13)),
            "2024-04-30 23:00:00.3");
}

}  // namespace
}  // namespace weir::cli
