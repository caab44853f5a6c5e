#include "weir/config/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <system_error>

namespace weir::config {
namespace {

struct Unit {
  std::string_view name;
  int64_t nanoseconds;
};
constexpr std::array<Unit, 6> kUnits = {{{"h", 3'600'000'000'000},
                                         {"m", 60'000'000'000},
                                         {"s", 1'000'000'000},
                                         {"ms", 1'000'000},
                                         {"us", 1'000},
                                         {"ns", 1}}};
constexpr std::string_view kKnownUnits = "ns, us, ms, s, m and h";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

const Unit* FindUnit(std::string_view name) {
  for (const Unit& unit : kUnits) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

// `digits * 10^-scale`, the longest such number at the front of `text`.
struct Decimal {
  int64_t digits = 0;
  int64_t scale = 1;  // A power of ten.
  size_t size = 0;    // Bytes read; 0: there is none.
  bool fits = true;
};

// Appends a decimal digit; false when the number would not fit.
bool Append(int64_t& number, int digit) {
  return !__builtin_mul_overflow(number, 10, &number) &&
         !__builtin_add_overflow(number, digit, &number);
}

Decimal ReadDecimal(std::string_view text) {
  Decimal out;
  bool point = false;
  bool digit_last = false;
  for (const char c : text) {
    if (c == '.' && digit_last && !point) {
      point = true;
      digit_last = false;
    } else if (IsDigit(c)) {
      out.fits = out.fits && Append(out.digits, c - '0') &&
                 (!point || Append(out.scale, 0));
      digit_last = true;
    } else {
      break;
    }
    ++out.size;
  }
  if (!digit_last) out.size = 0;
  return out;
}

Error UnknownUnit(std::string_view unit) {
  if (unit.starts_with(' ')) return Error{"has a blank before its unit"};
  return Error{"has the unknown unit `" + std::string(unit) + "`; known are " +
               std::string(kKnownUnits)};
}

}  // namespace

Result<Duration> ParseDuration(std::string_view text) {
  if (!text.empty() && text[0] == '-') return Error{"is negative"};
  const Decimal number = ReadDecimal(text);
  if (number.size == 0) return Error{"is no duration"};
  const std::string_view name = text.substr(number.size);
  if (name.empty()) return Error{"has no unit"};
  const Unit* unit = FindUnit(name);
  if (unit == nullptr) return UnknownUnit(name);
  if (!number.fits) return Error{"has too many digits"};
  const int64_t whole = number.digits / number.scale;
  const int64_t rest = number.digits % number.scale;
  // rest * unit / scale, which may not fit in 64 bits before the division: in
  // lowest terms it is whole only if the reduced scale divides `rest`.
  const int64_t common = std::gcd(number.scale, unit->nanoseconds);
  const int64_t scale = number.scale / common;
  if (rest % scale != 0) return Error{"is finer than a nanosecond"};
  int64_t count = 0;
  if (__builtin_mul_overflow(whole, unit->nanoseconds, &count) ||
      __builtin_add_overflow(count, rest / scale * (unit->nanoseconds / common),
                             &count)) {
    return Error{"is longer than 292 years"};
  }
  return Duration(count);
}

std::string FormatDuration(Duration duration) {
  const int64_t count = duration.count();
  if (count == 0) return "0s";
  for (const Unit& unit : kUnits) {
    if (count % unit.nanoseconds == 0) {
      return std::to_string(count / unit.nanoseconds) + std::string(unit.name);
    }
  }
  return {};  // Not reached: every count is a whole number of ns.
}

std::string NearestDuration(std::string_view text) {
  struct Name {
    std::string_view name;
    int64_t nanoseconds;
  };
  static constexpr int64_t kSecond = 1'000'000'000;
  static constexpr std::array<Name, 41> kNames = {{
      {"ns", 1},
      {"nsec", 1},
      {"nsecs", 1},
      {"nanos", 1},
      {"nanosecond", 1},
      {"nanoseconds", 1},
      {"us", 1'000},
      {"\xc2\xb5s", 1'000},
      {"\xce\xbcs", 1'000},
      {"usec", 1'000},
      {"usecs", 1'000},
      {"micros", 1'000},
      {"microsecond", 1'000},
      {"microseconds", 1'000},
      {"ms", 1'000'000},
      {"msec", 1'000'000},
      {"msecs", 1'000'000},
      {"millis", 1'000'000},
      {"millisecond", 1'000'000},
      {"milliseconds", 1'000'000},
      {"s", kSecond},
      {"sec", kSecond},
      {"secs", kSecond},
      {"second", kSecond},
      {"seconds", kSecond},
      {"m", 60 * kSecond},
      {"min", 60 * kSecond},
      {"mins", 60 * kSecond},
      {"minute", 60 * kSecond},
      {"minutes", 60 * kSecond},
      {"h", 3600 * kSecond},
      {"hr", 3600 * kSecond},
      {"hrs", 3600 * kSecond},
      {"hour", 3600 * kSecond},
      {"hours", 3600 * kSecond},
      {"d", 86400 * kSecond},
      {"day", 86400 * kSecond},
      {"days", 86400 * kSecond},
      {"w", 7 * 86400 * kSecond},
      {"week", 7 * 86400 * kSecond},
      {"weeks", 7 * 86400 * kSecond},
  }};
  std::string plain;  // In lower case, without blanks, with decimal points.
  for (const char c : text) {
    if (c == ' ' || c == '\t') continue;
    plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32)
             : c == ','           ? '.'
                                  : c;
  }
  int64_t sum = 0;
  std::string_view rest = plain;
  while (!rest.empty()) {
    const Decimal number = ReadDecimal(rest);
    if (number.size == 0 || !number.fits) return {};
    rest.remove_prefix(number.size);
    const size_t end = std::min(rest.find_first_of("0123456789"), rest.size());
    const auto* name = std::find_if(
        kNames.begin(), kNames.end(),
        [&](const Name& known) { return known.name == rest.substr(0, end); });
    if (name == kNames.end()) return {};
    rest.remove_prefix(end);
    int64_t product = 0;
    if (__builtin_mul_overflow(number.digits, name->nanoseconds, &product) ||
        product % number.scale != 0 ||
        __builtin_add_overflow(sum, product / number.scale, &sum)) {
      return {};
    }
  }
  return plain.empty() ? std::string() : FormatDuration(Duration(sum));
}

Result<double> ParseRate(std::string_view text) {
  if (!text.empty() && text[0] == '-') return Error{"is negative"};
  const size_t slash = text.find('/');
  const std::string_view number = text.substr(0, slash);
  const Decimal decimal = ReadDecimal(number);
  if (decimal.size == 0 || decimal.size != number.size()) {
    return Error{"is no rate"};
  }
  if (slash == std::string_view::npos) return Error{"has no unit"};
  const Unit* unit = FindUnit(text.substr(slash + 1));
  if (unit == nullptr) return UnknownUnit(text.substr(slash + 1));
  double value = 0;
  const auto read =
      std::from_chars(number.data(), number.data() + number.size(), value);
  const double per_second =
      value * (1e9 / static_cast<double>(unit->nanoseconds));
  if (read.ec != std::errc() || !std::isfinite(per_second)) {
    return Error{"is too large"};
  }
  return per_second;
}

std::string FormatRate(double per_second) {
  return FormatNumber(per_second) + "/s";
}

std::string FormatNumber(double number) {
  std::array<char, 64> buffer;
  const double size = std::abs(number);
  const bool readable = number == 0 || (size >= 1e-6 && size < 1e15);
  const auto end = std::to_chars(
      buffer.data(), buffer.data() + buffer.size(), number,
      readable ? std::chars_format::fixed : std::chars_format::general);
  return std::string(buffer.data(), end.ptr);
}

}  // namespace weir::config
