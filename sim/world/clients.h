// The callers: they ask, wait, give up, and ask again.

#ifndef WEIR_SIM_WORLD_CLIENTS_H_
#define WEIR_SIM_WORLD_CLIENTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fabric.h"
#include "guard_caller.h"
#include "weir/rivals/rival.h"
#include "weir/scenario/arrivals.h"
#include "weir/scenario/random.h"

namespace weir::sim {

class Clients final : public EntryCaller, private Handler {
 public:
  explicit Clients(Fabric& fabric);

  void OnAnswer(Visit& visit) override;

  // The run is over: whoever still waits gives up.  Returns how many attempts
  // were never answered.
  uint64_t EndAll(Instant now);

 private:
  enum class Event : uint64_t { kArrival, kTimeout, kRetry, kHedge };

  void OnEvent(Instant now, uint64_t arg) override;
  void ScheduleArrival();
  void Begin(const scenario::Arrival& arrival, Instant now);
  void Attempt(Operation& operation);
  void OnTimeout(Operation& operation, Instant now);
  // No answer is waited for any more: asks again later, or gives up.
  void AfterFailure(Operation& operation, bool may_retry, Duration at_least,
                    Instant now);
  std::optional<Duration> NextBackoff(Operation& operation);
  bool SpendBudget();
  void EndIfDone(Operation& operation, Instant now);
  bool Cooperative(uint32_t client) const;
  Timer Later(Instant when, Event event, const Operation& operation);

  // With a client guard, or under a rival's law.
  void MakeProcesses();
  bool MayBegin(Operation& operation, Visit& visit, Instant now);
  void AfterDrop(Operation& operation, Instant now);
  void Follow(Operation& operation, const Next& next, Instant now);
  void Learn(const Operation& operation, const Visit& visit, Outcome outcome,
             bool refused, Instant now);
  bool Guarded() const { return !guards_.empty(); }
  size_t ProcessOf(const Operation& operation) const;

  Fabric& fabric_;
  const scenario::Retries& retries_;
  scenario::Arrival next_;
  std::vector<std::unique_ptr<GuardCaller>> guards_;  // By process; or none.
  std::vector<rivals::Rival> laws_;                   // The same.
  scenario::Random law_random_;
  double budget_;  // Retries that may still be made, if they are budgeted.
};

}  // namespace weir::sim

#endif  // WEIR_SIM_WORLD_CLIENTS_H_
