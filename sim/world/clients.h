// The callers: they ask, wait, give up, and ask again.

#ifndef WEIR_SIM_WORLD_CLIENTS_H_
#define WEIR_SIM_WORLD_CLIENTS_H_

#include <cstdint>
#include <optional>

#include "fabric.h"
#include "weir/scenario/arrivals.h"

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

  Fabric& fabric_;
  const scenario::Retries& retries_;
  scenario::Arrivals arrivals_;
  scenario::Arrival next_;
  double budget_;  // Retries that may still be made, if they are budgeted.
};

}  // namespace weir::sim

#endif  // WEIR_SIM_WORLD_CLIENTS_H_
