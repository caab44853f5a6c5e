#include "access_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

namespace weir::cli {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// Exactly `count` digits at the front of `text`, which are taken off it.
std::optional<int> TakeDigits(std::string_view& text, size_t count) {
  int value = 0;
  if (text.size() < count) return std::nullopt;
  const auto read = std::from_chars(text.data(), text.data() + count, value);
  if (read.ec != std::errc() || read.ptr != text.data() + count ||
      text[0] == '-') {
    return std::nullopt;
  }
  text.remove_prefix(count);
  return value;
}

bool TakeText(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

// "+0200", "+02:00" or "Z", and nothing after it.
std::optional<Duration> ParseZone(std::string_view text) {
  if (text == "Z") return Duration{};
  const bool west = text.starts_with('-');
  if (!west && !text.starts_with('+')) return std::nullopt;
  text.remove_prefix(1);
  const auto hour = TakeDigits(text, 2);
  TakeText(text, ":");
  const auto minute = TakeDigits(text, 2);
  if (!hour || !minute || !text.empty()) return std::nullopt;
  const Duration zone = hours(*hour) + minutes(*minute);
  return west ? -zone : zone;
}

std::optional<Duration> Days(int year, int month, int day) {
  const std::chrono::year_month_day date{
      std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
      std::chrono::day(static_cast<unsigned>(day))};
  // Durations reach from 1970 to 2262.
  if (!date.ok() || year < 1970 || year > 2200) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch();
}

// "13:55:36", taken off `text`.
std::optional<Duration> TakeClock(std::string_view& text) {
  const auto hour = TakeDigits(text, 2);
  if (!hour || !TakeText(text, ":")) return std::nullopt;
  const auto minute = TakeDigits(text, 2);
  if (!minute || !TakeText(text, ":")) return std::nullopt;
  const auto second = TakeDigits(text, 2);
  // 60: a leap second.
  if (!second || *hour > 23 || *minute > 59 || *second > 60) {
    return std::nullopt;
  }
  return hours(*hour) + minutes(*minute) + seconds(*second);
}

// "10/Oct/2000:13:55:36 -0700".
std::optional<ZonedTime> ParseLocalTime(std::string_view text) {
  constexpr std::array<std::string_view, 12> kMonths = {
      "Jan", "Feb", "Mar", "Apr", "May", "Jun",
      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = TakeDigits(text, 2);
  if (!day || !TakeText(text, "/")) return std::nullopt;
  const auto month =
      std::find(kMonths.begin(), kMonths.end(), text.substr(0, 3));
  if (month == kMonths.end()) return std::nullopt;
  text.remove_prefix(3);
  if (!TakeText(text, "/")) return std::nullopt;
  const auto year = TakeDigits(text, 4);
  if (!year || !TakeText(text, ":")) return std::nullopt;
  const auto clock = TakeClock(text);
  if (!clock || !TakeText(text, " ")) return std::nullopt;
  const auto zone = ParseZone(text);
  const auto days =
      Days(*year, static_cast<int>(month - kMonths.begin()) + 1, *day);
  if (!zone || !days) return std::nullopt;
  return ZonedTime{*days + *clock - *zone, *zone};
}

// Seconds with one to nine decimals, as nginx writes its times: "0.123".  One
// without is another program's, which may count in anything.
std::optional<Duration> ParseSeconds(std::string_view text) {
  int64_t whole = 0;
  const auto read =
      std::from_chars(text.data(), text.data() + text.size(), whole);
  // A hundred years and more are no instant of ours.
  if (read.ec != std::errc() || whole < 0 || text[0] == '-' ||
      whole > int64_t{7'000'000'000}) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<size_t>(read.ptr - text.data()));
  Duration value = seconds(whole);
  if (!TakeText(text, ".") || text.empty() || text.size() > 9)
    return std::nullopt;
  int64_t unit = 1'000'000'000;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value += Duration((c - '0') * (unit /= 10));
  }
  return value;
}

// "0.010", "0.010, 0.200 : 0.030" (several tries), "-" (none).  False when it
// is something else.
bool ParseUpstreamTimes(std::string_view text, std::optional<Duration>& out) {
  while (true) {
    const size_t end = text.find_first_of(",:");
    std::string_view one = text.substr(0, end);
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (one != "-" && !one.empty()) {
      const auto time = ParseSeconds(one);
      if (!time) return false;
      out = out.value_or(Duration{}) + *time;
    }
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
  }
}

void TakePath(std::string_view target, LogEntry& entry) {
  // "GET http://host/path" is what proxies are asked.
  if (const size_t scheme = target.find("://");
      scheme != std::string_view::npos && !target.starts_with('/')) {
    const size_t slash = target.find('/', scheme + 3);
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  target = target.substr(0, target.find_first_of("?#"));
  // Anything else ("-", bytes of a TLS greeting) is no path: left empty.
  if (target.starts_with('/')) entry.path = target;
}

}  // namespace

const std::string_view kPlainLogFormat =
    "$remote_addr [$msec] \"$request\" $status $request_time "
    "\"$upstream_response_time\" \"$http_weir_criticality\"";
const std::string_view kWeirLogFormat =
    "$remote_addr [$msec] \"$request\" $status $request_time "
    "\"$upstream_response_time\" \"$http_weir_criticality\" "
    "$weir_decision/$weir_reason $weir_queue_ms/$weir_limit";
const std::string_view kCombinedLogFormat =
    "$remote_addr - $remote_user [$time_local] \"$request\" $status "
    "$body_bytes_sent \"$http_referer\" \"$http_user_agent\"";

const std::string_view kMainLogFormat =
    "$remote_addr - $remote_user [$time_local] \"$request\" $status "
    "$body_bytes_sent \"$http_referer\" \"$http_user_agent\" "
    "\"$http_x_forwarded_for\"";

LogFormat::Field LogFormat::FieldOf(std::string_view name,
                                    std::string_view client) {
  if (name == client) return Field::kClient;
  struct Known {
    std::string_view name;
    Field field;
  };
  static constexpr Known kKnown[] = {
      {"msec", Field::kMsec},
      {"time_local", Field::kTimeLocal},
      {"time_iso8601", Field::kTimeIso},
      {"request", Field::kRequest},
      {"request_method", Field::kMethod},
      {"request_uri", Field::kUri},
      {"uri", Field::kUri},
      {"status", Field::kStatus},
      {"request_time", Field::kRequestTime},
      {"upstream_response_time", Field::kUpstreamTime},
      {"http_weir_criticality", Field::kCriticality},
      {"weir_decision", Field::kDecision},
  };
  for (const Known& known : kKnown) {
    if (known.name == name) return known.field;
  }
  return Field::kOther;
}

Result<LogFormat> LogFormat::Parse(std::string_view text,
                                   std::string_view client) {
  for (const std::string_view escape :
       {"escape=json ", "escape=default ", "escape=none "}) {
    if (TakeText(text, escape)) break;
  }
  LogFormat format;
  std::string* literal = &format.before_;
  while (!text.empty()) {
    if (text[0] != '$') {
      literal->push_back(text[0]);
      text.remove_prefix(1);
      continue;
    }
    text.remove_prefix(1);
    const bool braces = TakeText(text, "{");
    size_t length = 0;
    while (length < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[length])) != 0 ||
            text[length] == '_')) {
      ++length;
    }
    const std::string_view name = text.substr(0, length);
    text.remove_prefix(length);
    if (name.empty() || (braces && !TakeText(text, "}"))) {
      return Error{"the log format has a `$` without a variable's name"};
    }
    if (!format.parts_.empty() && literal->empty()) {
      return Error{fmt::format(
          "${} and ${} have nothing between them in the log format, so no one "
          "can tell where the first one ends; put a space there",
          format.parts_.back().name, name)};
    }
    format.parts_.push_back(
        {.field = FieldOf(name, client), .name = std::string(name)});
    literal = &format.parts_.back().after;
  }
  const auto has = [&format](std::initializer_list<Field> fields) {
    return std::any_of(
        format.parts_.begin(), format.parts_.end(), [&](const Part& part) {
          return std::find(fields.begin(), fields.end(), part.field) !=
                 fields.end();
        });
  };
  if (!has({Field::kMsec, Field::kTimeLocal, Field::kTimeIso})) {
    return Error{
        "the log format does not say when a request came; add $msec (best), "
        "$time_iso8601 or $time_local"};
  }
  if (!has({Field::kRequest, Field::kUri})) {
    return Error{
        "the log format does not say what was asked for; add \"$request\" or "
        "$uri"};
  }
  format.has_milliseconds_ = has({Field::kMsec});
  format.has_request_time_ = has({Field::kRequestTime});
  format.has_upstream_time_ = has({Field::kUpstreamTime});
  return format;
}

bool LogFormat::Take(Field field, std::string_view value, LogEntry& entry) {
  switch (field) {
    case Field::kMsec: {
      const auto at = ParseSeconds(value);
      if (at) entry.ended = *at;
      return at.has_value();
    }
    case Field::kTimeLocal:
    case Field::kTimeIso: {
      const auto at = field == Field::kTimeIso ? ParseIsoTime(value)
                                               : ParseLocalTime(value);
      if (!at) return false;
      // $msec is the finer one when a format has both.
      if (entry.ended == Duration{}) entry.ended = at->utc;
      entry.zone = at->zone;
      return true;
    }
    case Field::kClient:
      entry.client = value;
      return true;
    case Field::kRequest: {
      const size_t space = value.find(' ');
      if (space == std::string_view::npos) return true;
      entry.method = value.substr(0, space);
      value.remove_prefix(space + 1);
      TakePath(value.substr(0, value.find(' ')), entry);
      return true;
    }
    case Field::kMethod:
      entry.method = value;
      return true;
    case Field::kUri:
      TakePath(value, entry);
      return true;
    case Field::kStatus: {
      const auto status = TakeDigits(value, 3);
      if (status) entry.status = *status;
      return status && value.empty();
    }
    case Field::kRequestTime:
      entry.request_time = ParseSeconds(value);
      return entry.request_time.has_value();
    case Field::kUpstreamTime:
      return ParseUpstreamTimes(value, entry.upstream_time);
    case Field::kCriticality:
      entry.criticality = ParseCriticality(value);
      return true;
    case Field::kDecision:
      entry.shed = value == "shed";
      return true;
    case Field::kOther:
      return true;
  }
  return true;
}

std::optional<LogEntry> LogFormat::Read(std::string_view line,
                                        std::string* why) const {
  std::string_view rest = line;
  LogEntry entry;
  if (!TakeText(rest, before_)) {
    if (why != nullptr) *why = fmt::format("does not begin with `{}`", before_);
    return std::nullopt;
  }
  for (const Part& part : parts_) {
    size_t end = rest.size();
    if (!part.after.empty()) {
      end = rest.find(part.after);
      // Where quotes are escaped with a backslash (escape=json), those inside
      // do not end the value.
      while (part.after[0] == '"' && end != std::string_view::npos && end > 0 &&
             rest[end - 1] == '\\') {
        end = rest.find(part.after, end + 1);
      }
    }
    if (end == std::string_view::npos) {
      if (why != nullptr) {
        *why = fmt::format("no `{}` after ${}", part.after, part.name);
      }
      return std::nullopt;
    }
    const std::string_view value = rest.substr(0, end);
    if (!Take(part.field, value, entry)) {
      if (why != nullptr) {
        const bool whole =
            !value.empty() &&
            value.find_first_not_of("0123456789") == std::string_view::npos;
        const bool seconds = part.field == Field::kMsec ||
                             part.field == Field::kRequestTime ||
                             part.field == Field::kUpstreamTime;
        *why = fmt::format(
            "${} cannot be `{}`{}", part.name, value.substr(0, 40),
            whole && seconds ? ": nginx writes seconds with decimals, as "
                               "0.020, so the unit of this one is not known"
                             : "");
      }
      return std::nullopt;
    }
    rest.remove_prefix(end + part.after.size());
  }
  if (!rest.empty()) {
    if (why != nullptr) {
      *why = fmt::format("goes on with `{}`", rest.substr(0, 40));
    }
    return std::nullopt;
  }
  return entry;
}

std::optional<ZonedTime> ParseIsoTime(std::string_view text) {
  const auto year = TakeDigits(text, 4);
  if (!year || !TakeText(text, "-")) return std::nullopt;
  const auto month = TakeDigits(text, 2);
  if (!month || !TakeText(text, "-")) return std::nullopt;
  const auto day = TakeDigits(text, 2);
  if (!day || !TakeText(text, "T")) return std::nullopt;
  const auto clock = TakeClock(text);
  const auto zone = ParseZone(text);
  const auto days = Days(*year, *month, *day);
  if (!clock || !zone || !days) return std::nullopt;
  return ZonedTime{*days + *clock - *zone, *zone};
}

std::string FormatZone(Duration zone) {
  if (zone == Duration{}) return "UTC";
  const auto all = std::chrono::abs(std::chrono::round<minutes>(zone)).count();
  std::string text =
      fmt::format("UTC{}{}", zone < Duration{} ? '-' : '+', all / 60);
  return all % 60 == 0 ? text : fmt::format("{}:{:02}", text, all % 60);
}

std::string FormatLogTime(Duration utc, Duration zone) {
  const Duration local = utc + zone;
  const auto day = std::chrono::floor<std::chrono::days>(local);
  const std::chrono::year_month_day date{std::chrono::sys_days(day)};
  const std::chrono::hh_mm_ss clock{
      std::chrono::floor<std::chrono::milliseconds>(local - day)};
  std::string text = fmt::format(
      "{:04}-{:02}-{:02} {:02}:{:02}:{:02}", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      clock.hours().count(), clock.minutes().count(), clock.seconds().count());
  const auto tenths = clock.subseconds().count() / 100;
  return tenths == 0 ? text : fmt::format("{}.{}", text, tenths);
}

}  // namespace weir::cli
