#include "weir/sim/algorithms.h"

#include <algorithm>
#include <string>

#include "rival_gate.h"
#include "weir/rivals/registry.h"

namespace weir::sim {

namespace {

constexpr std::string_view kQueue = "+queue";
constexpr std::string_view kMutant = "mutant-";

// Letters to change, add or remove to make one of the other.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row.back();
}

// Laws that stand at their callers have no place before a replica.
bool StandsBeforeReplica(const rivals::Entry& entry) {
  return entry.seat != rivals::Seat::kCaller;
}

std::string NearestName(std::string_view name) {
  std::string_view nearest = "weir";
  for (const rivals::Entry& entry : rivals::Registry()) {
    if (StandsBeforeReplica(entry) &&
        Distance(name, entry.name) < Distance(name, nearest)) {
      nearest = entry.name;
    }
  }
  return std::string(nearest);
}

// The callers' side named after '@'.
std::optional<CallerSide> FindCallers(std::string_view name) {
  using Kind = CallerSide::Kind;
  if (name == "plain") return CallerSide{};
  if (name == "weir") return CallerSide{Kind::kGuard, true, nullptr};
  for (const rivals::Entry& entry : rivals::Registry()) {
    if (!StandsBeforeReplica(entry) && entry.name == name) {
      return CallerSide{Kind::kLaw, true, &entry};
    }
  }
  return std::nullopt;
}

std::string NearestCallers(std::string_view name) {
  std::string_view nearest = "plain";
  const auto consider = [&](std::string_view other) {
    if (Distance(name, other) < Distance(name, nearest)) nearest = other;
  };
  consider("weir");
  for (const rivals::Entry& entry : rivals::Registry()) {
    if (!StandsBeforeReplica(entry)) consider(entry.name);
  }
  return std::string(nearest);
}

// What stands before the replicas under a name, or under one for several.
std::vector<Algorithm> FindServers(std::string_view whole,
                                   const std::shared_ptr<const Policy>& policy,
                                   int guard_workers) {
  if (whole == "weir" || whole == "weir-known") {
    return {
        Weir(std::string(whole), policy, whole == "weir-known", guard_workers)};
  }
  const bool queued = whole.ends_with(kQueue);
  const std::string_view name =
      whole.substr(0, whole.size() - (queued ? kQueue.size() : 0));
  std::vector<Algorithm> found;
  if (name == "all") {
    for (const rivals::Entry& entry : rivals::Registry()) {
      if (StandsBeforeReplica(entry) && !entry.name.starts_with(kMutant)) {
        found.push_back(RivalAlgorithm(entry, queued));
      }
    }
    return found;
  }
  for (const rivals::Entry* entry : rivals::FindRivals(name)) {
    if (StandsBeforeReplica(*entry)) {
      found.push_back(RivalAlgorithm(*entry, queued));
    }
  }
  return found;
}

}  // namespace

Result<std::vector<Algorithm>> FindAlgorithms(
    std::string_view list, std::shared_ptr<const Policy> policy,
    int guard_workers) {
  std::vector<Algorithm> found;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view whole = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    const size_t at = whole.find('@');
    std::vector<Algorithm> servers =
        FindServers(whole.substr(0, at), policy, guard_workers);
    if (servers.empty()) {
      std::string_view name = whole.substr(0, at);
      if (name.ends_with(kQueue)) name.remove_suffix(kQueue.size());
      return Error{"no algorithm is called `" + std::string(whole) +
                   "`; the nearest is `" + NearestName(name) + "`"};
    }
    for (Algorithm& server : servers) {
      if (at != std::string_view::npos) {
        const auto callers = FindCallers(whole.substr(at + 1));
        if (!callers) {
          return Error{"no caller's side is called `" +
                       std::string(whole.substr(at + 1)) +
                       "`; the nearest is `" +
                       NearestCallers(whole.substr(at + 1)) + "`"};
        }
        server.callers = *callers;
        server.name += whole.substr(at);
      }
      found.push_back(std::move(server));
    }
  }
  return found;
}

}  // namespace weir::sim
