// The policy of `weir up`, and what its nginx takes from one.

#ifndef WEIR_CLI_UP_POLICY_H_
#define WEIR_CLI_UP_POLICY_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nginx_conf.h"
#include "weir/policy.h"
#include "weir/result.h"

namespace weir::cli {

// The policy of those who bring none: ten lines at most, and no thresholds.
// With more `resources` than `api` each has its table; in `shadow` nothing is
// refused, and what would have been is counted.
std::string DefaultPolicy(std::string_view service,
                          const std::vector<std::string>& resources = {},
                          bool shadow = false);

// Which resources of a policy the private nginx uses.
struct UsedResources {
  std::string requests;  // `api`, else the first that is not exempt.
  std::string health;    // The first that is exempt; empty when none is.
};
Result<UsedResources> ChooseResources(const Policy& policy);

// Reads "/path=resource", of one --route each; "off" is a resource, too.
Result<std::vector<NginxConf::Route>> ParseRoutes(
    const std::vector<std::string>& texts);

// What is wrong with routes to resources that the policy lacks; else nothing.
std::optional<Error> CheckRoutes(const std::vector<NginxConf::Route>& routes,
                                 const Policy& policy,
                                 const std::string& policy_name);

}  // namespace weir::cli

#endif  // WEIR_CLI_UP_POLICY_H_
