#include "weir/host/calendar.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::host {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;
using Unit = Quota::Unit;

void PutNumber(std::string& out, int64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    out += static_cast<char>(value >> shift & 0xff);
  }
}

// A file of version 2 with no 32-bit part, transitions to given offsets, and a
// footer.
std::string File(std::int64_t first,
                 const std::vector<std::pair<WallTime, int64_t>>& changes,
                 const std::string& footer) {
  const auto header = [](size_t times, size_t types) {
    std::string out = "TZif2" + std::string(15, '\0');
    for (const size_t count : {size_t{0}, size_t{0}, size_t{0}, times, types,
                               types > 0 ? size_t{4} : size_t{0}}) {
      PutNumber(out, static_cast<int64_t>(count), 4);
    }
    return out;
  };
  std::string out = header(0, 0) + header(changes.size(), changes.size() + 1);
  for (const auto& change : changes) {
    PutNumber(out, change.first.time_since_epoch().count(), 8);
  }
  for (size_t i = 0; i < changes.size(); ++i) {
    out += static_cast<char>(i + 1);
  }
  const auto type = [&](int64_t offset) {
    PutNumber(out, offset, 4);
    out += std::string(2, '\0');
  };
  type(first);
  for (const auto& change : changes) type(change.second);
  return out + std::string("ABC\0", 4) + '\n' + footer + '\n';
}

TimeZone Of(const std::string& footer) {
  auto zone = TimeZone::Parse(File(0, {}, footer));
  EXPECT_TRUE(zone.ok()) << zone.error().message;
  return *zone;
}

const TimeZone kBerlin = Of("CET-1CEST,M3.5.0,M10.5.0/3");

constexpr WallTime At(int year, unsigned month, unsigned day, int hour = 0,
                      int minute = 0) {
  return sys_days(std::chrono::year(year) / static_cast<int>(month) /
                  static_cast<int>(day)) +
         std::chrono::hours(hour) + std::chrono::minutes(minute);
}

TEST(CalendarTest, ADayBeginsAtLocalMidnight) {
  const CalendarWindow day =
      WindowAt(kBerlin, Unit::kDay, At(2026, 1, 15, 22, 59));
  EXPECT_EQ(day.end, At(2026, 1, 15, 23));
  const CalendarWindow next = WindowAt(kBerlin, Unit::kDay, day.end);
  EXPECT_EQ(next.number, day.number + 1);
  EXPECT_EQ(next.end, At(2026, 1, 16, 23));
}

TEST(CalendarTest, TheDaysOfClockChangesHave23And25Hours) {
  const WallTime spring = At(2026, 3, 28, 23);
  EXPECT_EQ(WindowAt(kBerlin, Unit::kDay, spring).end - spring, 23h);
  const WallTime autumn = At(2026, 10, 24, 22);
  EXPECT_EQ(WindowAt(kBerlin, Unit::kDay, autumn).end - autumn, 25h);
}

TEST(CalendarTest, AMidnightThatTheClockSkipsBeginsTheDayAnHourLater) {
  // Sao Paulo until 2019: summer time began at midnight.
  const TimeZone sao_paulo = Of("<-03>3<-02>,M11.1.0/0,M2.3.0/0");
  const WallTime before = At(2018, 11, 4, 2, 59);
  const CalendarWindow day = WindowAt(sao_paulo, Unit::kDay, before);
  EXPECT_EQ(day.end, At(2018, 11, 4, 3));
  EXPECT_EQ(sao_paulo.OffsetAt(before), -3h);
  EXPECT_EQ(sao_paulo.OffsetAt(day.end), -2h);
  // It ended at midnight too: 18 February 2018 had an hour twice.
  const CalendarWindow autumn =
      WindowAt(sao_paulo, Unit::kDay, At(2018, 2, 17, 12));
  EXPECT_EQ(autumn.end, At(2018, 2, 18, 3));
}

TEST(CalendarTest, MonthsHaveTheirLengthsAlsoInLeapYears) {
  const auto days_of = [](int year, unsigned month) {
    const WallTime first = At(year, month, 1);
    return (WindowAt(TimeZone(), Unit::kMonth, first).end - first) / 24h;
  };
  EXPECT_EQ(days_of(2027, 2), 28);
  EXPECT_EQ(days_of(2028, 2), 29);
  EXPECT_EQ(days_of(2100, 2), 28);
  EXPECT_EQ(days_of(2026, 12), 31);
  EXPECT_EQ(WindowAt(TimeZone(), Unit::kMonth, At(2026, 12, 31)).number + 1,
            WindowAt(TimeZone(), Unit::kMonth, At(2027, 1, 1)).number);
}

TEST(CalendarTest, AWeekBeginsOnMonday) {
  const CalendarWindow week =
      WindowAt(TimeZone(), Unit::kWeek, At(2026, 11, 29, 12));  // A Sunday.
  EXPECT_EQ(week.end, At(2026, 11, 30));
  EXPECT_EQ(WindowAt(TimeZone(), Unit::kWeek, At(2026, 11, 30)).number,
            week.number + 1);
}

TEST(CalendarTest, AnHourIsSixtyMinutesWhateverTheClocksDo) {
  const TimeZone india = Of("IST-5:30");
  EXPECT_EQ(WindowAt(india, Unit::kHour, At(2026, 5, 1, 3, 29)).end,
            At(2026, 5, 1, 3, 30));
  // 02:00 to 03:00 comes twice in Berlin.
  const CalendarWindow first =
      WindowAt(kBerlin, Unit::kHour, At(2026, 10, 25, 0, 30));
  const CalendarWindow second =
      WindowAt(kBerlin, Unit::kHour, At(2026, 10, 25, 1, 30));
  EXPECT_EQ(second.number, first.number + 1);
  EXPECT_EQ(first.end, At(2026, 10, 25, 1));
}

TEST(CalendarTest, NumbersNeverFallAndEndsAreWhereTheyRise) {
  for (const Unit unit : {Unit::kHour, Unit::kDay, Unit::kWeek, Unit::kMonth}) {
    CalendarWindow window = WindowAt(kBerlin, unit, At(2026, 1, 1));
    for (WallTime at = At(2026, 1, 1); at < At(2028, 1, 1); at += 17min) {
      const CalendarWindow now = WindowAt(kBerlin, unit, at);
      ASSERT_EQ(now.number, window.number + (at >= window.end ? 1 : 0));
      window = now;
    }
  }
}

TEST(CalendarTest, TransitionsOfTheFileCountBeforeItsRule) {
  const auto zone = TimeZone::Parse(
      File(60, {{At(2000, 1, 1), 3600}, {At(2010, 1, 1), 7200}}, "XYZ-3"));
  ASSERT_TRUE(zone.ok()) << zone.error().message;
  EXPECT_EQ(zone->OffsetAt(At(1999, 12, 31)), 60s);
  EXPECT_EQ(zone->OffsetAt(At(2000, 1, 1)), 1h);
  EXPECT_EQ(zone->OffsetAt(At(2009, 12, 31)), 1h);
  EXPECT_EQ(zone->OffsetAt(At(2010, 1, 1)), 3h);
}

TEST(CalendarTest, ATornFileIsAnErrorWhereverItIsCut) {
  const std::string whole =
      File(0, {{At(2000, 1, 1), 3600}}, "CET-1CEST,M3.5.0,M10.5.0/3");
  ASSERT_TRUE(TimeZone::Parse(whole).ok());
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(TimeZone::Parse(whole.substr(0, length)).ok()) << length;
  }
}

TEST(CalendarTest, AnUnknownZoneSaysWhichFileIsMissing) {
  const auto zone = TimeZone::Load("Mars/Olympus", "/nowhere");
  ASSERT_FALSE(zone.ok());
  EXPECT_NE(zone.error().message.find("/nowhere/Mars/Olympus"),
            std::string::npos);
  EXPECT_TRUE(TimeZone::Load("UTC", "/nowhere").ok());
}

TEST(CalendarTest, APeriodEndsWhenTheWallClockSays) {
  const Instant now{1000s};
  const auto period =
      PeriodAt(kBerlin, Unit::kDay, At(2026, 3, 28, 22) + 500ms, now);
  EXPECT_EQ(period.end - now, 59min + 59s + 500ms);
  EXPECT_EQ(period.length, 23h);
}

}  // namespace
}  // namespace weir::host
