#include "weir/host/calendar.h"

#include <algorithm>
#include <optional>

#include "file.h"

namespace weir::host {
namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::hours;
using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::minutes;
using std::chrono::seconds;
using std::chrono::year;

// Big-endian fields of a file that may be cut off anywhere.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : left_(bytes) {}
  bool ok() const { return ok_; }
  std::string_view Take(uint64_t count) {
    if (count > left_.size()) {
      ok_ = false;
      left_ = {};
      return {};
    }
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }
  int64_t Number(size_t bytes) {
    const std::string_view taken = Take(bytes);
    uint64_t value =
        !taken.empty() && (taken[0] & 0x80) != 0 ? ~uint64_t{0} : 0;
    for (const char c : taken) value = value << 8 | static_cast<uint8_t>(c);
    return static_cast<int64_t>(value);
  }
  std::string_view rest() const { return left_; }

 private:
  std::string_view left_;
  bool ok_ = true;
};

struct Header {
  bool ok = false;
  char version = 0;
  uint64_t utc_flags = 0, wall_flags = 0, leaps = 0;
  uint64_t times = 0, types = 0, chars = 0;
  uint64_t BodyBytes(uint64_t time_bytes) const {
    return times * time_bytes + times + types * 6 + chars +
           leaps * (time_bytes + 4) + wall_flags + utc_flags;
  }
};

Header TakeHeader(Bytes& bytes) {
  Header h;
  const bool magic = bytes.Take(4) == "TZif";
  const std::string_view version = bytes.Take(1);
  bytes.Take(15);
  for (uint64_t* count :
       {&h.utc_flags, &h.wall_flags, &h.leaps, &h.times, &h.types, &h.chars}) {
    *count = static_cast<uint64_t>(bytes.Number(4)) & 0xffffffff;
  }
  h.ok = magic && bytes.ok();
  if (h.ok) h.version = version[0];
  return h;
}

local_seconds ToLocal(WallTime at, seconds offset) {
  return local_seconds((at + offset).time_since_epoch());
}

// Number of the day, week or month of a local time.
int64_t NumberOf(Quota::Unit unit, local_seconds local) {
  const local_days day = floor<days>(local);
  switch (unit) {
    case Quota::Unit::kWeek:
      // Day 0 of the count was a Thursday.
      return floor<std::chrono::weeks>(day.time_since_epoch() + days(3))
          .count();
    case Quota::Unit::kMonth: {
      const std::chrono::year_month_day date(day);
      return static_cast<int>(date.year()) * 12 +
             static_cast<int>(static_cast<unsigned>(date.month())) - 1;
    }
    default:
      return day.time_since_epoch().count();
  }
}

// A month of 31 days, and an hour more.
constexpr seconds kLongestWindow = days(31) + hours(2);

}  // namespace

// Reads "CET-1CEST,M3.5.0,M10.5.0/3".
class TimeZone::FooterReader {
 public:
  explicit FooterReader(std::string_view text) : text_(text) {}

  std::optional<Footer> Read() {
    Footer footer;
    if (!SkipName() || !ReadTime(footer.standard)) return std::nullopt;
    footer.standard = -footer.standard;  // POSIX counts west of Greenwich.
    if (text_.empty()) return footer;
    footer.has_summer = true;
    footer.summer = footer.standard + hours(1);
    if (!SkipName()) return std::nullopt;
    if (!text_.empty() && text_[0] != ',') {
      if (!ReadTime(footer.summer)) return std::nullopt;
      footer.summer = -footer.summer;
    }
    for (Rule& rule : footer.rules) {
      if (!Skip(',') || !ReadRule(rule)) return std::nullopt;
    }
    if (!text_.empty()) return std::nullopt;
    return footer;
  }

 private:
  bool Skip(char c) {
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool SkipName() {
    const bool quoted = Skip('<');
    const auto is_end = [&](char c) {
      return quoted ? c == '>' : (c < 'A' || c > 'Z') && (c < 'a' || c > 'z');
    };
    size_t length = 0;
    while (length < text_.size() && !is_end(text_[length])) ++length;
    text_.remove_prefix(length);
    return length >= 3 && (!quoted || Skip('>'));
  }
  bool ReadNumber(int& number) {
    number = 0;
    size_t digits = 0;
    while (digits < text_.size() && digits < 4 && text_[digits] >= '0' &&
           text_[digits] <= '9') {
      number = number * 10 + (text_[digits++] - '0');
    }
    text_.remove_prefix(digits);
    return digits > 0;
  }
  bool ReadTime(seconds& time) {
    const bool negative = Skip('-');
    if (!negative) Skip('+');
    int h = 0;
    int m = 0;
    int s = 0;
    if (!ReadNumber(h) || (Skip(':') && !ReadNumber(m)) ||
        (Skip(':') && !ReadNumber(s))) {
      return false;
    }
    time = hours(h) + minutes(m) + seconds(s);
    if (negative) time = -time;
    return true;
  }
  bool ReadRule(Rule& rule) {
    bool fine = false;
    if (Skip('M')) {
      rule.kind = Rule::Kind::kMonthWeek;
      fine = ReadNumber(rule.month) && Skip('.') && ReadNumber(rule.week) &&
             Skip('.') && ReadNumber(rule.day) && rule.month >= 1 &&
             rule.month <= 12 && rule.week >= 1 && rule.week <= 5 &&
             rule.day <= 6;
    } else {
      rule.kind = Skip('J') ? Rule::Kind::kDayWithoutLeap : Rule::Kind::kDay;
      fine = ReadNumber(rule.day) && rule.day <= 366;
    }
    return fine && (!Skip('/') || ReadTime(rule.time));
  }

  std::string_view text_;
};

local_seconds TimeZone::Rule::In(year y) const {
  const local_days first = local_days(y / 1 / 1);
  switch (kind) {
    case Kind::kMonthWeek: {
      const std::chrono::weekday weekday(static_cast<unsigned>(day));
      const auto m = y / month;
      const local_days date =
          week == 5 ? local_days(m / weekday[std::chrono::last])
                    : local_days(m / weekday[static_cast<unsigned>(week)]);
      return date + time;
    }
    case Kind::kDay:
      return first + days(day) + time;
    case Kind::kDayWithoutLeap:
      return first + days(day - 1 + (y.is_leap() && day >= 60 ? 1 : 0)) + time;
  }
  return first;
}

Result<TimeZone> TimeZone::Load(const std::string& name,
                                const std::string& database) {
  if (name == "UTC") return TimeZone();
  const std::string path = database + '/' + name;
  auto text = ReadWhole(path);
  if (!text) return text.error();
  if (!*text) {
    return Error{"there is no time zone `" + name + "`: no file " + path +
                 "; is the package tzdata installed?"};
  }
  auto zone = Parse(**text);
  if (!zone) return Error{path + ": " + zone.error().message};
  return zone;
}

Result<TimeZone> TimeZone::Parse(std::string_view tzif) {
  Bytes bytes(tzif);
  Header header = TakeHeader(bytes);
  if (!header.ok) return Error{"it is no time zone file"};
  if (header.version < '2') return Error{"it is of a version before 2"};
  bytes.Take(header.BodyBytes(4));  // The same again in 32 bits.
  header = TakeHeader(bytes);
  const std::string_view body = bytes.Take(header.BodyBytes(8));
  if (!header.ok || !bytes.ok() || header.types == 0) {
    return Error{"it is cut off"};
  }
  Bytes times(body.substr(0, header.times * 8));
  Bytes kinds(body.substr(header.times * 8, header.times));
  Bytes types(body.substr(header.times * 9, header.types * 6));
  std::vector<seconds> offsets;
  for (uint64_t i = 0; i < header.types; ++i) {
    offsets.emplace_back(types.Number(4));
    types.Take(2);
  }
  TimeZone zone;
  zone.first_ = offsets[0];
  for (uint64_t i = 0; i < header.times; ++i) {
    const WallTime at{seconds(times.Number(8))};
    const auto kind = static_cast<uint8_t>(kinds.Take(1)[0]);
    if (kind >= offsets.size()) return Error{"it is damaged"};
    zone.changes_.push_back({at, offsets[kind]});
  }
  std::string_view footer = bytes.rest();
  if (footer.size() < 2 || footer.front() != '\n' || footer.back() != '\n') {
    return Error{"it has no rule for the time to come"};
  }
  footer = footer.substr(1, footer.size() - 2);
  if (footer.empty()) return zone;
  const auto rule = FooterReader(footer).Read();
  if (!rule) return Error{"its rule is none: " + std::string(footer)};
  zone.has_footer_ = true;
  zone.footer_ = *rule;
  return zone;
}

seconds TimeZone::ByFooter(WallTime at) const {
  if (!footer_.has_summer) return footer_.standard;
  const auto y =
      std::chrono::year_month_day(floor<days>(ToLocal(at, footer_.standard)))
          .year();
  const WallTime begin(
      (footer_.rules[0].In(y) - footer_.standard).time_since_epoch());
  const WallTime end(
      (footer_.rules[1].In(y) - footer_.summer).time_since_epoch());
  const bool summer =
      begin < end ? at >= begin && at < end : at >= begin || at < end;
  return summer ? footer_.summer : footer_.standard;
}

seconds TimeZone::OffsetAt(WallTime at) const {
  if (has_footer_ && (changes_.empty() || at >= changes_.back().at)) {
    return ByFooter(at);
  }
  const auto next = std::upper_bound(
      changes_.begin(), changes_.end(), at,
      [](WallTime t, const Change& change) { return t < change.at; });
  return next == changes_.begin() ? first_ : std::prev(next)->offset;
}

CalendarWindow WindowAt(const TimeZone& zone, Quota::Unit unit, WallTime at) {
  const seconds offset = zone.OffsetAt(at);
  if (unit == Quota::Unit::kHour) {
    // Of an offset that is no whole hour the rest counts, so that hours begin
    // with the local hour, and never twice.
    const seconds rest = offset - floor<hours>(offset);
    const auto number = floor<hours>(at.time_since_epoch() + rest);
    return {static_cast<uint32_t>(number.count()),
            WallTime(number + hours(1) - rest)};
  }
  // The local time jumps where clocks are changed, but it does not come back to
  // an earlier day for longer than that hour; so the end is found by halving.
  const auto number_at = [&](WallTime t) {
    return NumberOf(unit, ToLocal(t, zone.OffsetAt(t)));
  };
  const int64_t number = number_at(at);
  WallTime inside = at;
  WallTime past = at + kLongestWindow;
  while (past - inside > seconds(1)) {
    const WallTime middle = inside + (past - inside) / 2;
    (number_at(middle) > number ? past : inside) = middle;
  }
  return {static_cast<uint32_t>(number), past};
}

Guard::CalendarPeriod PeriodAt(const TimeZone& zone, Quota::Unit unit,
                               std::chrono::system_clock::time_point wall,
                               Instant now) {
  const auto at = floor<seconds>(wall);
  const CalendarWindow window = WindowAt(zone, unit, at);
  const CalendarWindow next = WindowAt(zone, unit, window.end);
  return {window.number,
          now + std::chrono::duration_cast<Duration>(window.end - wall),
          next.end - window.end};
}

}  // namespace weir::host
