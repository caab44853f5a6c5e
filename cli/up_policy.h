// The policy of `weir up`, and what its nginx takes from one.

#ifndef WEIR_CLI_UP_POLICY_H_
#define WEIR_CLI_UP_POLICY_H_

#include <string>
#include <string_view>

#include "weir/policy.h"
#include "weir/result.h"

namespace weir::cli {

// The policy of those who bring none: ten lines at most, and no thresholds.
std::string DefaultPolicy(std::string_view service);

// Which resources of a policy the private nginx uses.
struct UsedResources {
  std::string requests;  // `api`, else the first that is not exempt.
  std::string health;    // The first that is exempt; empty when none is.
};
Result<UsedResources> ChooseResources(const Policy& policy);

}  // namespace weir::cli

#endif  // WEIR_CLI_UP_POLICY_H_
