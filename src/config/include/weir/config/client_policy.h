// From a table of a TOML file to the policy of a caller.

#ifndef WEIR_CONFIG_CLIENT_POLICY_H_
#define WEIR_CONFIG_CLIENT_POLICY_H_

#include "weir/client/client_policy.h"
#include "weir/config/document.h"

namespace weir::config {

struct ClientSettings {
  ClientPolicy policy{};
  // Of the process, whatever it calls.
  RetryAllowance::Config allowance{};

  bool operator==(const ClientSettings&) const = default;
};

// Reads the tables `throttle`, `breaker`, `level`, `retries`, `deadline` and
// `hedge` of `section`; what is not there is as in `fallback`, which must pass
// its checks.  So does what comes out, when no complaint was made.
// docs/algorithms/client.md is the reference.
ClientSettings ReadClientSettings(const Section& section,
                                  const ClientSettings& fallback = {});

}  // namespace weir::config

#endif  // WEIR_CONFIG_CLIENT_POLICY_H_
