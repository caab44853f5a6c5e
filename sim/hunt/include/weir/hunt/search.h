// Looks for the worlds in which an algorithm loses most.

#ifndef WEIR_HUNT_SEARCH_H_
#define WEIR_HUNT_SEARCH_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/hunt/figures.h"
#include "weir/policy.h"
#include "weir/result.h"

namespace weir::hunt {

struct SearchOptions {
  uint64_t first_seed = 1;                // Of the worlds that are drawn.
  std::vector<std::string> algorithms{};  // The first is hunted.
  size_t baseline = 0;                    // Which of them does nothing.
  std::shared_ptr<const Policy> policy{};
  int threads = 1;
  size_t kept = 40;  // Worlds of which others are made.
  // Asked before each world: how much of the search is over, 1 to stop.
  std::function<double()> progress{};
};

// Draws worlds for the first half, then changes the worst of those it has.
// Returns these, the worst first.  With one thread, and as long as it goes on
// for the same number of worlds, it finds the same.
Result<std::vector<Played>> Search(const SearchOptions& options);

}  // namespace weir::hunt

#endif  // WEIR_HUNT_SEARCH_H_
