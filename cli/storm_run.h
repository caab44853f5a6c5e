// Plays a scenario against a service: open loop, over HTTP/1.1.

#ifndef WEIR_CLI_STORM_RUN_H_
#define WEIR_CLI_STORM_RUN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "loopback.h"
#include "storm_calls.h"
#include "weir/result.h"
#include "weir/scenario/report.h"
#include "weir/scenario/scenario.h"
#include "weir/time.h"

namespace weir::cli {

struct StormOptions {
  HostPort target;
  uint64_t seed = 1;
  // Criticality in the header `baggage: criticality=...` instead of
  // `weir-criticality`.
  bool baggage = false;
  std::string method = "GET";
  std::vector<std::string> headers{};  // "Name: value", after ours.
  std::string body{};
  // Called some five times a second with the instant and the counts so far.
  std::function<void(Duration, const StormCalls::Counts&)> progress{};
  // Asked as often; true ends the run, and the report is of what was played.
  std::function<bool()> stop{};
};

// Send lag above which a run says nothing about the service.
// Chosen: a fifth of the 50 ms that answers take in the scenarios here.
inline constexpr Duration kMostSendLag = std::chrono::milliseconds(10);

// Requests are sent when the scenario says so, whatever became of those before:
// one that finds no idle connection opens another.  Latency counts from the
// intended instant, so neither a stall of the service nor one of the generator
// is hidden; how late requests were sent is reported, and a run in which that
// matters is marked invalid.
//
// A caller that gives up closes its connection with a reset, as a process that
// is gone would; so ports are free again at once.  A kept connection that the
// service closed before it took the request costs nothing: the request is sent
// again on a new one.
//
// Returns an error when the service cannot be reached to begin with.  Of a
// scenario for which CannotOffer() says something it plays the rest.
Result<scenario::Report> RunStorm(const scenario::Scenario& scenario,
                                  const StormOptions& options);

// What of a scenario no generator can offer, and why; nothing when it can offer
// all of it.
std::optional<Error> CannotOffer(const scenario::Scenario& scenario);

// Asks once a second until an answer that is no refusal comes within
// `deadline`: work left over from a former run would count against this one.
// False: not within `patience`.
bool WaitUntilIdle(const HostPort& target, const std::string& path,
                   Duration deadline, Duration patience);

}  // namespace weir::cli

#endif  // WEIR_CLI_STORM_RUN_H_
