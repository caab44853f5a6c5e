#include "weir/policy.h"

#include <algorithm>
#include <string>

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

bool IsServiceChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

bool IsResourceChar(char c) {
  return IsServiceChar(c) || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
         c == '/';
}

template <typename Allowed>
bool IsName(std::string_view name, Allowed allowed) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), allowed);
}

bool AreLevels(const std::vector<DegradeLevel>& levels) {
  if (levels.size() > DegradeLadder::kMaxLevels) return false;
  double least = 1;
  for (const DegradeLevel& level : levels) {
    if (!IsName(level.name, IsResourceChar)) return false;
    if (!(level.excess >= least && level.excess <= 100)) return false;
    least = level.excess;
  }
  return true;
}

// "Europe/Berlin", "Etc/GMT+3"; nothing that leads out of the database.
bool IsZone(std::string_view name) {
  return IsName(name, [](char c) { return IsResourceChar(c) || c == '+'; }) &&
         name.front() != '/' && name.find("..") == std::string_view::npos;
}

bool IsBudget(Duration budget) {
  return budget >= milliseconds(1) && budget <= hours(1);
}

}  // namespace

std::optional<uint16_t> Policy::FindResource(std::string_view name) const {
  for (size_t i = 0; i < resources.size(); ++i) {
    if (resources[i].name == name) return static_cast<uint16_t>(i);
  }
  return std::nullopt;
}

std::optional<Error> Policy::Check() const {
  if (!IsName(service, IsServiceChar)) {
    return Error{"`service` must be 1 to 47 characters of a-z, 0-9 and '-'"};
  }
  if (!IsBudget(deadline) || !IsBudget(deadline_ceiling)) {
    return Error{"deadlines must lie between 1ms and 1h"};
  }
  if (deadline > deadline_ceiling) {
    return Error{"`deadline.default` is above `deadline.ceiling`"};
  }
  if (workers < 0 || workers > 1'000'000) {
    return Error{"`limit.workers` must lie between 0 and 1000000"};
  }
  if (limit_floor < 1 || limit_ceiling > 1'000'000 ||
      limit_floor > limit_ceiling) {
    return Error{"1 <= `limit.floor` <= `limit.ceiling` <= 1000000 must hold"};
  }
  if (shed_status != 429 && shed_status != 503) {
    return Error{"`answer.status` must be 429 or 503"};
  }
  if (tiers) {
    if (auto error = TierTable::Check(*tiers)) return error;
  }
  if (auto error = SystemRule::Check(system)) return error;
  if (client_quota) {
    if (auto error = ClientQuotas::Check(*client_quota)) return error;
  }
  if (resources.empty() || resources.size() > kMaxResources) {
    return Error{"a policy needs 1 to 64 resources"};
  }
  for (size_t i = 0; i < resources.size(); ++i) {
    const Resource& resource = resources[i];
    if (!IsName(resource.name, IsResourceChar)) {
      return Error{
          "a resource's name must be 1 to 47 characters of A-Z, a-z, "
          "0-9, '.', '_', '/' and '-'"};
    }
    if (FindResource(resource.name) != i) {
      return Error{"resource `" + resource.name + "` is declared twice"};
    }
    if (resource.deadline && (!IsBudget(*resource.deadline) ||
                              *resource.deadline > deadline_ceiling)) {
      return Error{"the deadline of resource `" + resource.name +
                   "` must lie between 1ms and `deadline.ceiling`"};
    }
    if (!AreLevels(resource.degrade)) {
      return Error{"resource `" + resource.name +
                   "` must have at most 4 degrade levels, each with a name and "
                   "an excess from 1 to 100 that is not below the one before"};
    }
    if (resource.stale && !IsBudget(*resource.stale)) {
      return Error{"`stale` of resource `" + resource.name +
                   "` must lie between 1ms and 1h"};
    }
    if (resource.quota) {
      if (auto error = Quota::Check(resource.quota->rule)) return error;
      if (!IsZone(resource.quota->zone)) {
        return Error{"the time zone of the quota of resource `" +
                     resource.name + "` is no name of one"};
      }
    }
  }
  return std::nullopt;
}

}  // namespace weir
