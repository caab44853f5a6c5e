// From policy files to policies and back; docs/policy.md is their reference.

#ifndef WEIR_CONFIG_POLICY_H_
#define WEIR_CONFIG_POLICY_H_

#include <string>
#include <string_view>
#include <vector>

#include "weir/config/complaint.h"
#include "weir/config/document.h"
#include "weir/policy.h"
#include "weir/result.h"

namespace weir::config {

// Every policy these return passes Policy::Check().  Complaints speak of
// `name`, or of the path.
Checked<Policy> ParsePolicy(std::string text, std::string name);
Checked<Policy> LoadPolicy(const std::string& path);

// The same from a document that was read; for those who want its rows too.
Checked<Policy> ReadPolicy(Document& document);

// The normal form of a policy that passes Check(): a policy file that
// ParsePolicy() reads back to the same policy.
std::string PrintPolicy(const Policy& policy);

// "header:NAME" (any case), "baggage:KEY" or "variable:NAME".
Result<Source> ParseSource(std::string_view text);
// What a text that is none most likely stands for, "$remote_addr" or
// "x-api-key"; empty when nothing is obvious.  The same for networks.
std::string NearestSource(std::string_view text);
std::string NearestNetwork(std::string_view text);
std::string FormatSource(const Source& source);

// "10.0.0.0/8", "fd00::/8"; without a prefix, one address.
Result<Network> ParseNetwork(std::string_view text);
std::string FormatNetwork(const Network& network);

}  // namespace weir::config

#endif  // WEIR_CONFIG_POLICY_H_
