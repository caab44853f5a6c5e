// The requests of a scenario, one after another in order of time.
//
// The generator and the simulator both draw from this, so the n-th request is
// the same one in both: same instant, class, client and route.  It makes first
// attempts only; retries and hedges follow from what happens to those.

#ifndef WEIR_SCENARIO_ARRIVALS_H_
#define WEIR_SCENARIO_ARRIVALS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "weir/scenario/random.h"
#include "weir/scenario/scenario.h"
#include "weir/time.h"

namespace weir::scenario {

struct Arrival {
  Duration at{};        // Since the start of the scenario.
  uint64_t number = 0;  // Counts from 0.
  uint32_t client = 0;  // [0, count), then the hogs'.
  uint16_t phase = 0;   // Indices into the scenario's lists.
  uint16_t cls = 0;
  uint16_t route = 0;
};

// The instants of one stream with a rate that changes.  The integral of the
// rate between two arrivals is exponential with mean 1 (Poisson) or exactly 1
// (constant), which is right for any shape.  Ramps, and loads that follow the
// current capacity, move in steps of 10 ms.
class Instants {
 public:
  // `scenario` must outlive this.  `hog` null: the phases' own load.
  Instants(const Scenario& scenario, uint64_t seed, const Hog* hog,
           uint64_t stream);

  // The next instant, or nothing once the scenario (or the hog) is over.
  std::optional<Duration> Next();
  size_t phase() const { return phase_; }  // Of the last one.

 private:
  // A span of time in which the rate is constant.
  struct Piece {
    Duration end{};
    double per_second = 0;
  };
  bool NextPiece();
  double Gap();

  const Scenario& scenario_;
  const Hog* hog_;
  Random random_;
  Random bursts_;
  double nominal_;  // Capacity at the start.
  Piece piece_;
  Duration now_{};
  double need_ = 0;  // Integral of the rate still to pass until the next one.
  size_t phase_ = 0;
  Duration phase_start_{};
  Duration flip_{};   // End of the current half of a square or burst.
  bool high_ = true;  // So that the first half of a square is its low one.
};

// Picks an index with given weights, in O(1) however many there are.
//
// Source: [CHEN1974], the method of guide tables: where a search for a uniform
// number begins is looked up by its first digits.
class Picker {
 public:
  // Weights >= 0 with a sum above 0; at least one.
  explicit Picker(std::vector<double> weights);

  // `uniform` in [0, 1).
  size_t Pick(double uniform) const;

 private:
  std::vector<double> cumulative_;  // Ends with 1.
  std::vector<uint32_t> guide_;     // First index that a cell may have.
};

class Arrivals {
 public:
  // `scenario` must outlive this.  Memory: 12 bytes per Zipf-weighted client.
  Arrivals(const Scenario& scenario, uint64_t seed);

  // O(hogs), no allocation.
  std::optional<Arrival> Next();

 private:
  struct Source {
    Instants instants;
    const Hog* hog;
    uint32_t first_client;
    std::optional<Duration> next;
  };
  uint32_t DrawClient();

  const Scenario& scenario_;
  Random attributes_;
  std::vector<Source> sources_;
  std::optional<Picker> clients_;  // If they are not all alike.
  std::vector<Picker> routes_;     // Of each phase; so are
  std::vector<Picker> classes_;
  uint64_t number_ = 0;
};

}  // namespace weir::scenario

#endif  // WEIR_SCENARIO_ARRIVALS_H_
