// Durations and rates as people write them: "250ms", "1.5s", "1000/s".

#ifndef WEIR_CONFIG_UNITS_H_
#define WEIR_CONFIG_UNITS_H_

#include <string>
#include <string_view>

#include "weir/result.h"
#include "weir/time.h"

namespace weir::config {

// A decimal number and one of the units ns, us, ms, s, m (minutes) and h,
// without blanks.  Exact: what is no whole number of nanoseconds is refused.
// An error's message goes on after the name of the value: "has no unit".
Result<Duration> ParseDuration(std::string_view text);

// The duration, in its shortest form, that a text of another notation stands
// for: "5 sec", "1min", "1,5s", "1h30m", "10S", "1 day".  Empty when none is
// obvious.
std::string NearestDuration(std::string_view text);

// The shortest exact form with a whole number: "1500ms", "2s", "1h".
// ParseDuration() reads it back for every duration not below zero.
std::string FormatDuration(Duration duration);

// A decimal number per unit of time, "1000/s", "1.5/ms", "90/m"; the result is
// per second, finite and not negative.  Errors read as above.
Result<double> ParseRate(std::string_view text);

// Per second, in as few digits as read back to the same value: "1000/s".
std::string FormatRate(double per_second);

// In as few digits as read back to the same value, without an exponent where
// that is readable: "0.25", "1000000".
std::string FormatNumber(double number);

}  // namespace weir::config

#endif  // WEIR_CONFIG_UNITS_H_
