#include "weir/host/feed.h"

#include <algorithm>
#include <utility>

namespace weir::host {
namespace {

// Readings that are nearer to each other say little about the time between.
// Chosen: well under kInterval, so that no call of a late timer is skipped.
constexpr Duration kLeastBetween = std::chrono::milliseconds(100);

bool WantsMachine(const Policy& policy) {
  return policy.system.load < SystemRule::Config::kOff ||
         policy.system.cpu_ratio < SystemRule::Config::kOff;
}

bool WantsCalendar(const Resource& resource) {
  return resource.quota && resource.quota->rule.kind == Quota::Kind::kCalendar;
}

}  // namespace

bool HostFeed::Wants(const Policy& policy) {
  return WantsMachine(policy) ||
         std::any_of(policy.resources.begin(), policy.resources.end(),
                     WantsCalendar);
}

HostFeed::HostFeed(Sampler::Listener listener, std::string root)
    : listener_(std::move(listener)), root_(std::move(root)) {}

void HostFeed::Tell(Guard& guard, Instant now,
                    std::chrono::system_clock::time_point wall) {
  const Policy& policy = guard.policy();
  if (WantsMachine(policy) && (!sampler_ || now - sampled_ >= kLeastBetween)) {
    sampled_ = now;
    if (!sampler_) sampler_.emplace(listener_, root_);
    const HostSignals signals = sampler_->Sample(now);
    guard.Watch({.load = signals.load ? signals.load->one_minute : -1,
                 .cpu_ratio = signals.cpu ? signals.cpu->ratio : -1},
                now);
  }
  for (size_t i = 0; i < policy.resources.size(); ++i) {
    if (!WantsCalendar(policy.resources[i])) continue;
    const auto& quota = policy.resources[i].quota;
    if (const TimeZone* zone = FindZone(quota->zone)) {
      guard.SetPeriod(static_cast<uint16_t>(i),
                      PeriodAt(*zone, quota->rule.unit, wall, now));
    }
  }
}

const TimeZone* HostFeed::FindZone(const std::string& name) {
  auto found = zones_.find(name);
  if (found == zones_.end()) {
    Result<TimeZone> zone = TimeZone::Load(name, root_ + "/usr/share/zoneinfo");
    if (!zone && listener_) {
      listener_("a quota of the calendar counts nothing: " +
                zone.error().message);
    }
    found = zones_
                .emplace(name,
                         zone ? std::optional(std::move(*zone)) : std::nullopt)
                .first;
  }
  return found->second ? &*found->second : nullptr;
}

}  // namespace weir::host
