#include "up_policy.h"

#include <fmt/format.h>

namespace weir::cli {

std::string DefaultPolicy(std::string_view service) {
  return fmt::format(R"(service = "{}"
trust.networks = ["127.0.0.0/8", "::1"]
client.from = ["header:weir-client"]

[resource.api]

[resource.health]
exempt = true
)",
                     service);
}

Result<UsedResources> ChooseResources(const Policy& policy) {
  UsedResources used;
  for (const Resource& resource : policy.resources) {
    if (resource.exempt) {
      if (used.health.empty()) used.health = resource.name;
    } else if (used.requests.empty() || resource.name == "api") {
      used.requests = resource.name;
    }
  }
  if (used.requests.empty()) {
    return Error{"all resources are exempt, so there is nothing to guard"};
  }
  return used;
}

}  // namespace weir::cli
