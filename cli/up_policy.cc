#include "up_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "weir/config/nearest.h"

namespace weir::cli {

std::string DefaultPolicy(std::string_view service,
                          const std::vector<std::string>& resources,
                          bool shadow) {
  std::string text = fmt::format(R"(service = "{}"
trust.networks = ["127.0.0.0/8", "::1"]
client.from = ["header:weir-client"]
)",
                                 service);
  if (shadow) {
    text +=
        R"(stages = { level = "shadow", limit = "shadow", deadline = "shadow" }
)";
  }
  text += "\n[resource.api]\n";
  std::set<std::string> written = {"api", "health", "off"};
  for (const std::string& resource : resources) {
    if (!written.insert(resource).second) continue;
    text += fmt::format("\n[resource.{}]\n", resource);
  }
  return text + "\n[resource.health]\nexempt = true\n";
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

Result<std::vector<NginxConf::Route>> ParseRoutes(
    const std::vector<std::string>& texts) {
  std::vector<NginxConf::Route> routes;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    const std::string path = text.substr(0, equals);
    // A variable of nginx, or what would end the word, is no plain path.
    if (equals == std::string::npos || equals + 1 == text.size() ||
        !path.starts_with('/') ||
        path.find_first_of(" \t\r\n$") != std::string::npos) {
      return Error{
          fmt::format("--route: `{}` is not of the form "
                      "PATH=RESOURCE, as in /checkout=checkout",
                      text)};
    }
    for (const NginxConf::Route& other : routes) {
      if (other.path == path) {
        return Error{
            fmt::format("--route: `{}` is `{}` and `{}`; only one could count",
                        path, other.resource, text.substr(equals + 1))};
      }
    }
    routes.push_back({.path = path, .resource = text.substr(equals + 1)});
  }
  return routes;
}

std::optional<Error> CheckRoutes(const std::vector<NginxConf::Route>& routes,
                                 const Policy& policy,
                                 const std::string& policy_name) {
  std::vector<std::string> known;
  for (const Resource& resource : policy.resources) {
    known.push_back(resource.name);
  }
  for (const NginxConf::Route& route : routes) {
    if (route.resource == "off" ||
        std::find(known.begin(), known.end(), route.resource) != known.end()) {
      continue;
    }
    const std::string_view nearest = config::Nearest(route.resource, known);
    return Error{fmt::format(
        "--route: {} has no resource `{}`; {}", policy_name, route.resource,
        nearest.empty()
            ? fmt::format("add `[resource.{}]` to it", route.resource)
            : fmt::format("did you mean `{}`?", nearest))};
  }
  return std::nullopt;
}

}  // namespace weir::cli
