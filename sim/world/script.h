// What all runs of a scenario under one seed have in common, whatever rules
// them: who comes and when, what the first attempt takes, and what the oracle
// makes of it.
//
// One run writes it down as it goes, the others read it instead of drawing and
// reckoning it again.  They come out the same to the bit, since all that the
// script says depends on the scenario and the seed alone.

#ifndef WEIR_SIM_WORLD_SCRIPT_H_
#define WEIR_SIM_WORLD_SCRIPT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "metrics.h"
#include "oracle.h"
#include "weir/scenario/arrivals.h"
#include "weir/sim/event_queue.h"
#include "weir/sim/visit.h"
#include "weir/time.h"

namespace weir::sim {

// Written by one run, then read by any number, on any threads.
class Script {
 public:
  // A longer one is not kept.
  // Chosen: 400 MB at most; the longest of the matrix takes a quarter.
  static constexpr size_t kMostArrivals = 4'000'000;
  static constexpr size_t kMostVerdicts = 8'000'000;

  // Whether it is all there.  False: it cannot be read.
  bool complete() const { return complete_; }

 private:
  friend class Prompter;

  struct Entry {
    scenario::Arrival arrival;
    Duration work{};
  };
  // What the oracle said when the world had come to `at`.
  struct Verdict {
    int64_t at = 0;
    uint32_t slot = 0;
    uint16_t cls = 0;
    bool lost = false;    // Requests were given up:
    double work = 0;      // the mean of their arrivals,
    double requests = 0;  // and since when work waited; in nanoseconds.
  };

  bool complete_ = false;
  std::vector<Entry> entries_;     // By number.
  std::vector<Duration> demands_;  // Of each, what its stages take.
  std::vector<Verdict> verdicts_;
};

// The voice of the script: reads one, or lives through the scenario for the
// first time and writes it down if it is given one to fill.
class Prompter final : private OracleListener {
 public:
  struct Stage {
    const scenario::Scenario& scenario;
    uint64_t seed;
    size_t resources;
    Duration longest_deadline;
    const EventQueue& events;
  };
  // `script` null: none is kept.  One that is complete is read.
  Prompter(const Stage& stage, Metrics& metrics, Script* script);

  // Whoever comes next, until nobody does.
  std::optional<scenario::Arrival> Next();

  // What the first attempt of an arrival takes, if the script knows it.
  bool Recall(Operation& operation);
  // Otherwise it was worked out: `need` is what it asks of the world.
  void Tell(const Operation& operation, const Need& need, Duration budget);

  // As the oracle's; with a script they only bring it to now.
  void SetCapacity(size_t resource, double capacity);
  void SetMeanWork(double seconds) { oracle_.SetMeanWork(seconds); }
  void Advance();
  // Whether what the oracle is told makes a difference.
  bool reads() const { return reading_ != nullptr; }
  Duration lag() const { return oracle_.lag(); }

  // The run is over: what it wrote may be read.
  void Close();

 private:
  void OnIdeal(Duration slot, size_t cls, double work,
               double requests) override;
  void OnIdealLoss(Duration arrived, Duration since) override;
  void Read();
  void Keep(const Script::Verdict& verdict);
  int64_t Now() const { return events_.now().time_since_epoch().count(); }

  const EventQueue& events_;
  Metrics& metrics_;
  const size_t stages_;  // Of the entry tier.
  const Script* reading_ = nullptr;
  Script* writing_ = nullptr;
  size_t next_entry_ = 0;
  size_t next_verdict_ = 0;
  std::optional<scenario::Arrivals> arrivals_;  // When nothing is read.
  Oracle oracle_;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_WORLD_SCRIPT_H_
