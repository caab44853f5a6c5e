// Counts how requests end, and makes the report.

#ifndef WEIR_SCENARIO_TALLY_H_
#define WEIR_SCENARIO_TALLY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/scenario/histogram.h"
#include "weir/scenario/report.h"
#include "weir/scenario/scenario.h"
#include "weir/time.h"

namespace weir::scenario {

enum class Ending : uint8_t { kGood, kLate, kShed, kFailed };

struct Ended {
  Duration at{};   // Intended start of the first attempt.
  Duration end{};  // When the caller knew.
  uint16_t phase = 0;
  uint16_t cls = 0;
  Ending ending = Ending::kGood;
  uint32_t attempts = 1;
  Duration work{};  // Its service time; zero when not known.
};

class Tally {
 public:
  // `scenario` must outlive this.  Memory: 60 bytes per simulated 10 ms.
  Tally(const Scenario& scenario, uint64_t seed);

  void Add(const Ended& ended);  // O(1).

  // All that was added so far.
  Report Make() const;

  // The same for a run that was stopped at `end` (> 0), as if the scenario had
  // ended there.
  Report MakeUntil(Duration end) const;

 private:
  struct Group {
    Figures counts;
    Histogram latency;
  };
  struct Step {
    double work = 0;       // Offered, in seconds, by arrival.
    double good_work = 0;  // Done in time, in seconds, by answer.
    uint32_t offered = 0;
    uint32_t shed = 0;
    uint32_t bad = 0;  // Shed, late or failed.
  };
  // A span of time in which more is offered on average than can be done.
  struct Overload {
    size_t from;
    size_t to;
  };

  size_t StepOf(Duration at) const;
  size_t PhaseOf(size_t step) const;
  std::vector<Overload> FindOverloads() const;
  void FillIdeals(Report& report) const;
  void FillSpans(Report& report) const;
  Duration Converge(const Overload& overload) const;
  Duration Recover(const Overload& overload, size_t until) const;

  const Scenario& scenario_;
  uint64_t seed_;
  std::vector<double> capacity_;      // Requests per step.
  std::vector<double> mean_seconds_;  // Service time of a request, per step.
  std::vector<Step> steps_;
  std::vector<std::vector<uint32_t>> offered_;  // Per class and step.
  std::vector<Group> phases_;
  std::vector<Group> classes_;
  std::vector<double> good_work_;  // Per phase.
};

}  // namespace weir::scenario

#endif  // WEIR_SCENARIO_TALLY_H_
