// What each stage would decide about a request, and why.

#ifndef WEIR_CLI_EXPLAIN_STEPS_H_
#define WEIR_CLI_EXPLAIN_STEPS_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weir/decision.h"
#include "weir/guard.h"
#include "weir/policy.h"
#include "weir/region.h"
#include "weir/request.h"

namespace weir::cli {

enum class Effect : uint8_t {
  kPasses,
  kAdmits,       // And no later stage is asked.
  kWaits,        // In the queue.
  kRefuses,      // And no later stage is asked.
  kWouldRefuse,  // In shadow mode.
  kAbsent,       // Off, or not configured.
  kUnknown,      // Depends on what only a running service knows.
};
std::string_view Name(Effect effect);  // "passes", "admits", ...

struct Step {
  Stage stage{};
  StageMode mode{};
  Effect effect{};
  std::string why;
};

struct Explanation {
  Request request;
  std::vector<Step> steps;  // Those after one that decides are there as well.
  Verdict verdict = Verdict::kAdmit;
  std::optional<Stage> decided_by;  // Nothing: all passed.
  Duration retry_after{};
  // At which degrade level it is answered; 0: in full.
  uint8_t degrade = 0;
};

// Walks the stages for `request`, with what `region` says, or, without one, as
// for a service that has just started.  Changes nothing.
Explanation Explain(const Policy& policy, const Request& request,
                    const Region* region, Instant now,
                    std::chrono::system_clock::time_point wall);

// For people, and as one line of JSON.
std::string RenderText(const Policy& policy, const Explanation& explanation);
std::string RenderJson(const Policy& policy, const Explanation& explanation);

}  // namespace weir::cli

#endif  // WEIR_CLI_EXPLAIN_STEPS_H_
