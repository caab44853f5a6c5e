// Runs a few threads of one program under every order of their accesses to the
// region that a plan asks for, on one thread of the machine, again and again.
//
// A thread goes on until the plan says that another one shall, at one of its
// accesses.  So a fault that needs one worker to be preempted between two
// instructions is met in a few thousand runs, and the plan's numbers bring it
// back.

#ifndef WEIR_CORE_EXPLORE_EXPLORER_H_
#define WEIR_CORE_EXPLORE_EXPLORER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weir/splitmix64.h"

namespace weir::explore {

// What happens at the accesses of a run, which are counted from 0.
struct Plan {
  struct Step {
    int64_t at = 0;
    size_t thread = 0;
    bool operator<(const Step& other) const { return at < other.at; }
  };
  std::vector<Step> switches;  // Thread goes on (if it can); rising.
  std::vector<Step> kills;     // Thread ends where it is.
  // How many of the later accesses of others a held-back store of a thread
  // that was switched away from may miss; 0: they see it at once.
  int64_t hold_stores = 0;

  std::string Print() const;
};

struct Run {
  int64_t accesses = 0;
  std::vector<bool> killed;  // Of each thread.
  std::optional<std::string> fault;
};

// Runs the threads under the plan.  `look` is called at each access and says
// what is wrong, if anything is; it must not access words by way of Word.
Run Explore(const std::vector<std::function<void()>>& threads, const Plan& plan,
            const std::function<std::optional<std::string>()>& look);

// Whether a thread of the run that is under way has been killed.
bool IsKilled(size_t thread);

// For a thread of the program: ends the run with a fault.
void Fault(const std::string& what);

}  // namespace weir::explore

#endif  // WEIR_CORE_EXPLORE_EXPLORER_H_
