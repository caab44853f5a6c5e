// Windows of the calendar in a time zone, for quotas by the hour, day, week or
// month.
//
// The zone is read from the database of the system (TZif files), without the
// process-wide TZ and tzset(), which no library may touch.  Source: [RFC8536];
// the rule after the last transition is POSIX's TZ.

#ifndef WEIR_HOST_CALENDAR_H_
#define WEIR_HOST_CALENDAR_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/guard.h"
#include "weir/rate/quota.h"
#include "weir/result.h"

namespace weir::host {

using WallTime = std::chrono::sys_seconds;  // UTC.

class TimeZone {
 public:
  TimeZone() = default;  // UTC.

  // A zone of the database, "Europe/Berlin"; "UTC" needs none.
  static Result<TimeZone> Load(
      const std::string& name,
      const std::string& database = "/usr/share/zoneinfo");
  // The same from the content of a file.
  static Result<TimeZone> Parse(std::string_view tzif);

  // What is added to UTC for the local time at `at`.
  std::chrono::seconds OffsetAt(WallTime at) const;

 private:
  struct Change {
    WallTime at;
    std::chrono::seconds offset;
  };
  // When summer time begins or ends in a year, in local time before it.
  struct Rule {
    enum class Kind : uint8_t { kMonthWeek, kDay, kDayWithoutLeap };
    Kind kind = Kind::kMonthWeek;
    int month = 0, week = 0, day = 0;
    std::chrono::seconds time = std::chrono::hours(2);
    std::chrono::local_seconds In(std::chrono::year year) const;
  };
  struct Footer {
    std::chrono::seconds standard{};
    std::chrono::seconds summer{};
    bool has_summer = false;
    std::array<Rule, 2> rules{};  // Begin, end.
  };
  class FooterReader;
  std::chrono::seconds ByFooter(WallTime at) const;

  std::vector<Change> changes_;   // By time.
  std::chrono::seconds first_{};  // Before the first change.
  bool has_footer_ = false;
  Footer footer_;
};

struct CalendarWindow {
  uint32_t number = 0;  // Grows by one from each to the next.
  WallTime end;         // The first second that is not in it.
};

// The window of `unit` that `at` lies in.  Weeks begin on Monday.  Days,
// weeks and months begin at local midnight, or where the clock skips that, at
// the first instant after it; hours are 60 minutes, also when clocks are
// changed.
CalendarWindow WindowAt(const TimeZone& zone, Quota::Unit unit, WallTime at);

// What Guard::SetPeriod() wants, when it is `wall` at `now`.
Guard::CalendarPeriod PeriodAt(const TimeZone& zone, Quota::Unit unit,
                               std::chrono::system_clock::time_point wall,
                               Instant now);

}  // namespace weir::host

#endif  // WEIR_HOST_CALENDAR_H_
