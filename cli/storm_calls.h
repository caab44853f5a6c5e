// What the generator's clients want, without sockets: which attempt is to start
// when, what a failed one leads to, and how each request ended.
//
// Time is an argument: durations since the start of the scenario.

#ifndef WEIR_CLI_STORM_CALLS_H_
#define WEIR_CLI_STORM_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "weir/scenario/arrivals.h"
#include "weir/scenario/random.h"
#include "weir/scenario/scenario.h"
#include "weir/scenario/tally.h"
#include "weir/time.h"

namespace weir::cli {

// One attempt to send.
struct StormAttempt {
  scenario::Arrival arrival;
  Duration intended{};  // Latency and deadline count from here.
  uint64_t number = 0;  // scenario::AttemptNumber().
  uint32_t call = 0;    // For StormCalls alone.
};

enum class StormOutcome : uint8_t {
  kAnswered,  // In time or late.
  kShed,
  kFailed,
  kGivenUp,  // Not answered within the timeout.
};

class StormCalls {
 public:
  // `scenario` must outlive this.
  StormCalls(const scenario::Scenario& scenario, uint64_t seed);

  // When the next attempt is to start; nothing while none is known.
  std::optional<Duration> next() const;

  // The next attempt when it is due by `now`.
  std::optional<StormAttempt> Take(Duration now);

  // How an attempt ended, each exactly once.  `work` is the service time that
  // the answer told, `retry_after` what a refusal asked for; else zero.
  void End(const StormAttempt& attempt, Duration now, StormOutcome outcome,
           Duration work = {}, Duration retry_after = {});

  // Whether all requests have ended and none will come.
  bool done() const { return !arrival_ && live_ == 0; }

  struct Counts {
    uint64_t offered = 0;  // Started, so far.
    uint64_t good = 0;
    uint64_t late = 0;
    uint64_t shed = 0;
    uint64_t failed = 0;
  };
  const Counts& counts() const { return counts_; }

  scenario::Report MakeReport() const { return tally_.Make(); }
  // Of what has ended, for a run that is stopped at `end`.
  scenario::Report MakeReportUntil(Duration end) const {
    return tally_.MakeUntil(end);
  }

 private:
  // A request, its retries and hedges.
  struct Call {
    scenario::Arrival arrival;
    uint32_t attempts = 0;  // Started.
    uint32_t inflight = 0;
    uint32_t planned = 0;  // Delayed attempts that have this call.
    bool finished = false;
  };
  struct Delayed {
    Duration at{};
    uint64_t order = 0;
    uint32_t call = 0;
    bool hedge = false;
    bool operator>(const Delayed& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  StormAttempt StartAttempt(uint32_t call, Duration intended);
  void Plan(uint32_t call, Duration at, bool hedge);
  std::optional<Duration> RetryDelay(const Call& call, StormOutcome outcome,
                                     Duration now, Duration retry_after);
  void Finish(uint32_t call, Duration now, scenario::Ending ending,
              Duration work);
  void FreeIfIdle(uint32_t call);

  const scenario::Scenario& scenario_;
  scenario::Arrivals arrivals_;
  scenario::Random random_;
  scenario::Tally tally_;
  std::optional<scenario::Arrival> arrival_;  // The next one.
  std::vector<Call> calls_;
  std::vector<uint32_t> free_;
  std::priority_queue<Delayed, std::vector<Delayed>, std::greater<>> delayed_;
  uint64_t order_ = 0;
  uint64_t most_attempts_;
  double budget_;
  size_t live_ = 0;
  Counts counts_;
};

}  // namespace weir::cli

#endif  // WEIR_CLI_STORM_CALLS_H_
