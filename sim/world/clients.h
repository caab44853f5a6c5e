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
  enum class Event : uint64_t {
    kArrival,
    kTimeout,
    kRetry,
    kHedge,
    kThought,
  };
  // One that waits for its answers.
  struct ClosedClient {
    const scenario::ClosedClients* rules;
    uint32_t asked = 0;
  };

  void OnEvent(Instant now, uint64_t arg) override;
  void Expect(uint64_t arg) override;
  void ScheduleArrival();
  void MakeClosed();
  // The closed client's next number: what its thinking and all that its
  // request takes are drawn from, whatever happens to the others.
  uint64_t ClosedNumber(size_t index) const;
  void Think(size_t index, bool first, Instant now);
  void Ask(size_t index, Instant now);
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
  bool Guarded(const Operation& operation) const {
    return !guards_.empty() && Careful(operation);
  }
  bool UnderLaw(const Operation& operation) const {
    return !laws_.empty() && Careful(operation);
  }
  // Whether the client is one of those that carry what the callers may carry.
  bool Careful(const Operation& operation) const;
  static double LuckOf(uint32_t client);
  size_t ProcessOf(const Operation& operation) const;

  Fabric& fabric_;
  const scenario::Retries& retries_;
  scenario::Arrival next_;
  std::vector<std::unique_ptr<GuardCaller>> guards_;  // By process; or none.
  std::vector<rivals::Rival> laws_;                   // The same.
  scenario::Random law_random_;
  std::vector<ClosedClient> closed_;
  uint32_t first_closed_ = 0;  // Number of the first one among all clients.
  size_t phase_ = 0;           // Of the last one that asked.
  double budget_;  // Retries that may still be made, if they are budgeted.
};

}  // namespace weir::sim

#endif  // WEIR_SIM_WORLD_CLIENTS_H_
