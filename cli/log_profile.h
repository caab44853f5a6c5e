// What a scenario needs to know of an access log, in memory that does not grow
// with it.

#ifndef WEIR_CLI_LOG_PROFILE_H_
#define WEIR_CLI_LOG_PROFILE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "access_log.h"
#include "log_timeline.h"
#include "time_fit.h"
#include "weir/request.h"
#include "weir/result.h"

namespace weir::cli {

// "/checkout/*=vital", "POST /orders=/orders": a shell pattern for the path,
// with or without a method, and what it stands for.
struct LogRule {
  std::string method{};  // Empty: any.
  std::string pattern{};
  std::string value{};

  static Result<LogRule> Parse(std::string_view text);
  bool Matches(const LogEntry& entry) const;
};

// How often each client asked.  Beyond 65536 clients a sample of them is kept,
// chosen by a hash: half of them, a quarter, and so on.
class ClientCounts {
 public:
  void Add(std::string_view client);

  uint64_t clients() const { return counts_.size() << shift_; }
  bool sampled() const { return shift_ > 0; }
  // The probability that two requests come from the same client.  Unlike the
  // counts of the busiest it is not inflated by chance.
  double Collision() const;
  // Of all requests, those of the busiest client (of the sample).
  double TopShare() const;

 private:
  std::unordered_map<uint64_t, uint32_t> counts_;
  int shift_ = 0;  // Kept: those with this many leading zeros of the hash.
  uint64_t requests_ = 0;
};

class LogProfile {
 public:
  struct Options {
    std::vector<LogRule> routes{};  // The first that matches names the route.
    std::vector<LogRule> classes{};
    // Of arrivals; nothing: all.
    std::optional<Duration> from{};
    std::optional<Duration> to{};
  };
  // `format` must outlive this.
  LogProfile(const LogFormat& format, const Options& options);

  void Add(const LogEntry& entry);

  struct Counts {
    uint64_t requests = 0;           // What the scenario offers.
    uint64_t timed = 0;              // Of those, with a time to learn from.
    uint64_t not_http = 0;           // No method and path: port scans, TLS.
    uint64_t answered_by_nginx = 0;  // Files, redirects: no upstream asked.
    uint64_t outside = 0;            // Before `from`, or from `to` on.
    uint64_t refused = 0;            // Requests that were refused: 429 or 503.
    uint64_t failed = 0;             // Other answers of 499 and above.
    uint64_t out_of_order = 0;       // Lines that ended before the line above.
    Duration most_out_of_order{};
  };
  struct Route {
    uint64_t requests = 0;
    TimeSample times;
  };

  const Counts& counts() const { return counts_; }
  const LogTimeline& timeline() const { return timeline_; }
  const ClientCounts& clients() const { return clients_; }
  const ClassCounts& classes() const { return classes_; }
  const std::map<std::string, Route, std::less<>>& routes() const {
    return routes_;
  }
  Duration zone() const { return zone_.value_or(Duration{}); }
  bool routes_overflowed() const { return routes_overflowed_; }

 private:
  Criticality ClassOf(const LogEntry& entry) const;
  Route& RouteOf(const LogEntry& entry);

  const LogFormat& format_;
  const Options& options_;
  Counts counts_;
  LogTimeline timeline_;
  ClientCounts clients_;
  ClassCounts classes_{};
  std::map<std::string, Route, std::less<>> routes_;
  bool routes_overflowed_ = false;
  std::optional<Duration> zone_;
  std::optional<Duration> latest_;
  std::string route_name_;  // Kept, so that it need not be allocated.
};

// The route of a path: parts that look like numbers or keys become "_", so
// "/orders/4711/items" is "/orders/_/items"; so does what scenarios do not
// allow in a path.  At most four parts.
void RouteOfPath(std::string_view path, std::string& route);

}  // namespace weir::cli

#endif  // WEIR_CLI_LOG_PROFILE_H_
