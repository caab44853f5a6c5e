#include "method_resource.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "weir/config/nearest.h"

namespace weir::grpc {
namespace {

// "/pkg.Service/Method" as its names in a policy, the most special first.
std::array<std::string_view, 5> NamesOf(std::string_view full_name) {
  if (!full_name.empty() && full_name.front() == '/')
    full_name.remove_prefix(1);
  const size_t slash = std::min(full_name.find('/'), full_name.size());
  const std::string_view package_service = full_name.substr(0, slash);
  const size_t dot = package_service.rfind('.');
  const size_t after = dot == std::string_view::npos ? 0 : dot + 1;
  return {full_name, full_name.substr(after), package_service,
          package_service.substr(after), "default"};
}

}  // namespace

Result<uint16_t> FindResource(const Policy& policy, std::string_view method) {
  for (const std::string_view name : NamesOf(method)) {
    if (const auto index = policy.FindResource(name)) return *index;
  }
  if (policy.resources.size() == 1) return uint16_t{0};
  std::vector<std::string> known;
  for (const Resource& resource : policy.resources) {
    known.push_back(resource.name);
  }
  std::string hint;
  for (const std::string_view name : NamesOf(method)) {
    const std::string_view nearest = config::Nearest(name, known);
    if (!nearest.empty() && hint.empty()) {
      hint = "; did you mean it by `" + std::string(nearest) + "`?";
    }
  }
  return Error{"the policy of `" + policy.service + "` has no resource for " +
               std::string(method) + hint +
               " (a resource `default` takes all that have none)"};
}

}  // namespace weir::grpc
