// What is kept of a run of a drawn world, and of many.

#ifndef WEIR_HUNT_FIGURES_H_
#define WEIR_HUNT_FIGURES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/hunt/draw.h"
#include "weir/policy.h"
#include "weir/result.h"
#include "weir/sim/outcome.h"

namespace weir::hunt {

// Of one algorithm in one world.  Shares of the ideal may be above 1: a service
// that lets callers wait does what the ideal is not asked for.
struct Figures {
  double goodput = 1;  // Requests, as a share of the ideal.
  double work = 1;     // The same in service time.
  double false_shed = 0;
  // The less of the two in the phase `after`, when there is one.
  std::optional<double> after{};
  // The same of the most critical class, where it alone always fits.
  std::optional<double> vital{};
  // Share of the requests of those who are no hogs that are good, where these
  // alone always fit.
  std::optional<double> others{};

  double score() const { return goodput < work ? goodput : work; }
};

Figures FiguresOf(const World& world, const sim::Outcomes& outcomes);

// Whether a share of what the phases ask for never needs more than 0.8 of what
// the service can do.
bool Fits(const World& world, double share);

// A world and how each algorithm fared in it, in one order for all worlds.
struct Played {
  World world;
  std::vector<Figures> figures;
};

// Figures of earlier runs, by seed of the world and name of the algorithm.
using Record = std::map<uint64_t, std::map<std::string, Figures>>;

// As JSON, with the version of the generator; the other way round fails when
// the text is no such object, or of another version.
std::string ToJson(const Record& record);
Result<Record> ParseRecord(const std::string& json);

struct HuntOptions {
  std::vector<uint64_t> seeds{};
  // Such as "weir,none,fixed+queue"; the first is hunted.  Its figures are
  // never taken from a record.
  std::vector<std::string> algorithms{};
  std::shared_ptr<const Policy>
      policy{};  // Of weir; null: none but the world's.
  int threads = 1;
  Record record{};
  std::function<void()> on_world{};  // After each, from several threads.
};

// An error names an algorithm that is unknown.  The results are those of the
// seeds in order, whatever the number of threads.
Result<std::vector<Played>> Hunt(const HuntOptions& options);

// Plays one world.
Result<std::vector<Figures>> Play(const World& world,
                                  const std::vector<std::string>& algorithms,
                                  const std::shared_ptr<const Policy>& policy);

}  // namespace weir::hunt

#endif  // WEIR_HUNT_FIGURES_H_
