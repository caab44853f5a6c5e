// The keys of the stages that a policy may add: stale, quota, tiers, system.

#ifndef WEIR_CONFIG_POLICY_STAGES_H_
#define WEIR_CONFIG_POLICY_STAGES_H_

#include <string>

#include "weir/config/document.h"
#include "weir/policy.h"

namespace weir::config {

// `stale` and `[resource.NAME.quota]`.
void ReadResourceStages(const Section& section, Resource& resource);
// `[tiers]` and `[system]`.
void ReadServiceStages(const Section& root, Policy& policy);

// The same in normal form; nothing for what is not there.
std::string PrintResourceStages(const Resource& resource);
std::string PrintServiceStages(const Policy& policy);

}  // namespace weir::config

#endif  // WEIR_CONFIG_POLICY_STAGES_H_
