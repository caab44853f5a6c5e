// Reads lines of an nginx access log, whatever its log_format.

#ifndef WEIR_CLI_ACCESS_LOG_H_
#define WEIR_CLI_ACCESS_LOG_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/request.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir::cli {

// What one line says about one request.  The views point into the line.
struct LogEntry {
  Duration ended{};  // When nginx had sent the answer; since 1970, UTC.
  Duration zone{};   // What to add to get the local time of the log.
  std::string_view client{};
  std::string_view method{};  // May be empty.
  std::string_view path{};    // Without the query; begins with '/'.
  int status = 0;             // 0 when the format has none.
  std::optional<Duration> request_time{};  // From first byte to last.
  // What the upstream took; of several tries the sum.  Nothing: it was not
  // asked, or the format does not say.
  std::optional<Duration> upstream_time{};
  std::optional<Criticality> criticality{};
  bool shed = false;  // weir says that it refused this one.
};

// Recommended; docs/simulator.md shows it as nginx.conf has it.
extern const std::string_view kWeirLogFormat;
// The same without the variables of nginx's weir module.
extern const std::string_view kPlainLogFormat;
// What nginx writes by itself, and as the nginx.conf of its packages names
// `main`.  They have no times.
extern const std::string_view kCombinedLogFormat;
extern const std::string_view kMainLogFormat;

class LogFormat {
 public:
  // `text` is what stands in log_format, without the quotes around it.  An
  // error when it does not say when a request came and what it asked for, or
  // when two variables have nothing between them.  Unknown variables are
  // passed over.  `client`: the variable that tells callers apart.
  static Result<LogFormat> Parse(std::string_view text,
                                 std::string_view client = "remote_addr");

  // Nothing when the line is not of this format; `why` says where it parts.
  // O(length of the line), no allocation unless it fails.
  std::optional<LogEntry> Read(std::string_view line, std::string* why) const;

  // Whether instants have milliseconds ($msec), or whole seconds.
  bool has_milliseconds() const { return has_milliseconds_; }
  bool has_upstream_time() const { return has_upstream_time_; }
  bool has_time() const { return has_upstream_time_ || has_request_time_; }

 private:
  enum class Field : uint8_t {
    kOther,
    kMsec,
    kTimeLocal,
    kTimeIso,
    kClient,
    kRequest,
    kMethod,
    kUri,
    kStatus,
    kRequestTime,
    kUpstreamTime,
    kCriticality,
    kDecision,
  };
  // A variable and the text up to the next one.
  struct Part {
    Field field = Field::kOther;
    std::string name{};
    std::string after{};
  };

  static Field FieldOf(std::string_view name, std::string_view client);
  static bool Take(Field field, std::string_view value, LogEntry& entry);

  std::string before_;  // Text in front of the first variable.
  std::vector<Part> parts_;
  bool has_milliseconds_ = false;
  bool has_request_time_ = false;
  bool has_upstream_time_ = false;
};

// "2024-05-01T12:00:00+02:00" (also "Z"), as $time_iso8601 has it.  The second
// value is the zone.
struct ZonedTime {
  Duration utc{};
  Duration zone{};
};
std::optional<ZonedTime> ParseIsoTime(std::string_view text);

// "UTC", "UTC+2", "UTC-9:30".
std::string FormatZone(Duration zone);

// "2024-05-01 12:00:00", with tenths when there are any.
std::string FormatLogTime(Duration utc, Duration zone);

}  // namespace weir::cli

#endif  // WEIR_CLI_ACCESS_LOG_H_
