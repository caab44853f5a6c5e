// The client guard of production in a simulated process that calls one tier.

#ifndef WEIR_SIM_WORLD_GUARD_CALLER_H_
#define WEIR_SIM_WORLD_GUARD_CALLER_H_

#include <cstdint>
#include <memory>

#include "weir/client/client_guard.h"
#include "weir/scenario/scenario.h"
#include "weir/sim/visit.h"
#include "weir/splitmix64.h"
#include "weir/time.h"

namespace weir::sim {

class GuardCaller {
 public:
  // `rules` must pass their check.
  GuardCaller(const scenario::CallerRules& rules,
              std::shared_ptr<RetryAllowance> allowance, uint64_t seed);

  // Whether `visit` may be sent; then its deadline is at most `budget` from
  // now, and no later than the call's.
  bool Begin(ClientCall& call, Visit& visit, Duration budget, Instant now);

  // The visit was answered, or is not waited for any longer.
  Next End(ClientCall& call, Visit& visit, Instant now);
  Next TimeOut(ClientCall& call, Visit& visit, Instant now);

  bool MayHedge(const ClientCall& call, Instant now);

 private:
  std::unique_ptr<ClientGuard> guard_;
  SplitMix64 draws_;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_WORLD_GUARD_CALLER_H_
