// What `weir sim` can compare, by name.
//
//   weir          the guard, as production runs it, under a policy
//   weir-known    the same, told how many workers the service has
//   NAME          a rival, refusing at once what it does not let run
//   NAME+queue    the same behind a queue: the rival's limit law alone is
//                 compared then, or what it makes of a queue of its own
//   ...@CALLERS   the same with something else at the clients: `plain` (they
//                 try again as the scenario says), `weir` (a client guard), or
//                 a rival that stands there.  Without it weir's callers carry
//                 a guard where the scenario asks for it, those of others none

#ifndef WEIR_SIM_ALGORITHMS_H_
#define WEIR_SIM_ALGORITHMS_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/policy.h"
#include "weir/result.h"
#include "weir/scenario/scenario.h"
#include "weir/sim/gate.h"

namespace weir::sim {

// A policy that says nothing but what the scenario implies: its routes and its
// deadline.
Policy DefaultPolicy(const scenario::Scenario& scenario);

// A guard before each replica.  `policy` must pass Policy::Check(); routes
// that it does not name are its first resource.  Null: DefaultPolicy().
// `guard_workers`: processes that share the region, as nginx's workers do; each
// visit comes to one of them by chance.
Algorithm Weir(std::string name, std::shared_ptr<const Policy> policy,
               bool known_workers, int guard_workers = 1);

// The algorithms of a list such as "weir,envoy,fixed+queue".  A vendor's name
// stands for all of its laws, "all" for everything but mutants.  The error
// names the nearest known name.
Result<std::vector<Algorithm>> FindAlgorithms(
    std::string_view list, std::shared_ptr<const Policy> policy,
    int guard_workers = 1);

}  // namespace weir::sim

#endif  // WEIR_SIM_ALGORITHMS_H_
