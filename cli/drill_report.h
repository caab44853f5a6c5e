// What a drill found: the drilled requests against the others of the resource.

#ifndef WEIR_CLI_DRILL_REPORT_H_
#define WEIR_CLI_DRILL_REPORT_H_

#include <string>

#include "weir/snapshot.h"

namespace weir::cli {

enum class DrillEnd {
  kTime,         // It ran for as long as it was meant to.
  kOverload,     // The service was overloaded, so weir ended it.
  kInterrupted,  // Somebody did.
};

enum class DrillVerdict {
  kWorks,   // No worse than the others, as far as so many can tell.
  kWorse,   // Fails more often, by more than chance explains.
  kTooFew,  // Fewer than kFewest drilled requests ended: nothing can be said.
};

struct DrillReport {
  // With so many and no failure, failures are rarer than one in ten with a
  // certainty of 95 % (the rule of three).
  static constexpr uint64_t kFewest = 30;
  // How many standard errors apart the two failure ratios must be.  Chosen:
  // chance alone gives that in one drill of 700.
  static constexpr double kErrors = 3;

  Snapshot::Drilled drilled;
  Snapshot::Drilled control;
  DrillEnd end = DrillEnd::kTime;
};

// Failed is all that ended otherwise than in time and well: a fast failure is
// `other`, and so is a client that left a branch that hangs.  What streams do
// on both sides cancels out.  Worse when the ratios of the failed differ by
// kErrors pooled standard errors; too few also where hardly any of the control
// side ends well: then there is nothing to compare with.
DrillVerdict Judge(const DrillReport& report);

// Counts since `before`, of one side.
Snapshot::Drilled Since(const Snapshot::Drilled& now,
                        const Snapshot::Drilled& before);

// A table and a sentence.
std::string Render(const DrillReport& report);
// One object in one line.
std::string RenderJson(const DrillReport& report);

}  // namespace weir::cli

#endif  // WEIR_CLI_DRILL_REPORT_H_
