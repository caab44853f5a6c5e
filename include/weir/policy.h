// What an operator wants, checked: the content of a policy file.
//
// config::LoadPolicy() makes one from TOML; code that needs no file fills one
// in and calls Check().

#ifndef WEIR_POLICY_H_
#define WEIR_POLICY_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/decision.h"
#include "weir/degrade/ladder.h"
#include "weir/rate/client_quotas.h"
#include "weir/rate/quota.h"
#include "weir/rate/system_rule.h"
#include "weir/rate/tiers.h"
#include "weir/request.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir {

inline constexpr size_t kMaxResources = 64;
inline constexpr size_t kMaxNameBytes = 47;

using StageModes = std::array<StageMode, kStages>;

// A cheaper way to answer, which what stands behind knows how to do.
struct DegradeLevel {
  std::string name{};  // As a resource's.
  // Demand over capacity from which on it is taken, [1, 100].
  double excess = 1;

  bool operator==(const DegradeLevel&) const = default;
};

// How many calls of a resource may start in a window.
struct QuotaPolicy {
  Quota::Config rule{};
  // For a calendar: a name of the time zone database, "Europe/Berlin".
  std::string zone = "UTC";

  bool operator==(const QuotaPolicy&) const = default;
};

// One kind of work: a route, a method.
struct Resource {
  std::string name{};  // 1 to kMaxNameBytes of [A-Za-z0-9._/-].
  // What requests get that bring none.
  Criticality criticality = Criticality::kImportant;
  std::optional<Duration> deadline{};  // Instead of Policy::deadline.
  bool exempt = false;                 // Health checks: passes every stage.
  bool paused = false;                 // The switch stage refuses all of it.
  // Answers are streams: a permit covers the time until the answer begins,
  // and its latency teaches nothing.
  bool stream = false;
  // Level 1 first, at most DegradeLadder::kMaxLevels; none asks for less
  // excess than the one before it.
  std::vector<DegradeLevel> degrade{};
  // The stale stage refuses what comes on a link that is further behind.
  std::optional<Duration> stale{};  // [1 ms, 1 h].
  std::optional<QuotaPolicy> quota{};
  StageModes stages{};  // kEnforce each, unless the policy says otherwise.

  bool operator==(const Resource&) const = default;
};

// Where an adapter reads a property of a request.
struct Source {
  enum class Kind : uint8_t {
    kHeader,    // `key` is a header's name, lower case.
    kBaggage,   // `key` is a member of the W3C baggage header.
    kVariable,  // `key` is a variable of the adapter (nginx: without '$').
  };
  Kind kind = Kind::kHeader;
  std::string key{};

  bool operator==(const Source&) const = default;
};

// An IPv4 or IPv6 network; IPv4 is held as ::ffff:a.b.c.d with bits + 96.
struct Network {
  std::array<uint8_t, 16> address{};
  uint8_t prefix_bits = 0;

  bool operator==(const Network&) const = default;
};

struct Policy {
  // Names the shared region and the metrics: 1 to kMaxNameBytes of [a-z0-9-].
  std::string service;

  // Time budget of a request that brings none.  [1 ms, 1 h].
  Duration deadline = std::chrono::seconds(1);
  // Longest budget that is believed.  [1 ms, 1 h], not below `deadline`.
  Duration deadline_ceiling = std::chrono::seconds(60);

  // The first source that is present and parses wins; else the resource's own.
  std::vector<Source> criticality_from;
  std::vector<Source> deadline_from;
  std::vector<Source> client_from;
  // Peers whose headers are believed; from others only variables are read.
  std::vector<Network> trusted;

  // Workers of the service behind, when known: then the limit is computed from
  // them.  0: learned.  [0, 1'000'000].
  int32_t workers = 0;
  // Bounds of the limit.  1 <= floor <= ceiling <= 1'000'000.
  int32_t limit_floor = 1;
  int32_t limit_ceiling = 1'000'000;

  // HTTP status of a shed request, 429 or 503 (the server is short).  Of one
  // beyond its quota it is always 429.
  int32_t shed_status = 503;
  // Other replicas may have room when this one has none: callers of gRPC are
  // told UNAVAILABLE then, so that they try one.
  bool try_elsewhere = false;

  // Of all resources together.
  std::optional<TierTable::Config> tiers;
  SystemRule::Config system;
  // Of each client, over all resources together.
  std::optional<ClientQuotas::Config> client_quota;

  std::vector<Resource> resources;  // 1 to kMaxResources, names unique.

  // Index of the resource of that name.
  std::optional<uint16_t> FindResource(std::string_view name) const;

  // The first broken rule of those above, or nothing.
  std::optional<Error> Check() const;

  bool operator==(const Policy&) const = default;
};

}  // namespace weir

#endif  // WEIR_POLICY_H_
