// HostFeed tells a guard what only its host knows: load and CPU for the system
// stage, and which day it is for quotas by the calendar.

#ifndef WEIR_HOST_FEED_H_
#define WEIR_HOST_FEED_H_

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "weir/guard.h"
#include "weir/host/calendar.h"
#include "weir/host/sampler.h"

namespace weir::host {

// Not thread-safe.  After a fork the child makes its own.
class HostFeed {
 public:
  // `listener` hears of sensors as a Sampler's does, and of time zones that
  // are not there, each once.
  explicit HostFeed(Sampler::Listener listener = nullptr,
                    std::string root = "");

  // How often to call Tell().  Chosen: the system stage must not be late by
  // more than what it measures, a second.
  static constexpr Duration kInterval = std::chrono::milliseconds(250);

  // Whether a guard with this policy is to be told anything.
  static bool Wants(const Policy& policy);

  // Also call it after Guard::Apply().  What the guard's policy has no use for
  // is not read.  Of several guards of one region tell all at one `now`: the
  // machine is read once.  A quota in a zone that is not there counts nothing.
  void Tell(Guard& guard, Instant now,
            std::chrono::system_clock::time_point wall);

 private:
  const TimeZone* FindZone(const std::string& name);

  Sampler::Listener listener_;
  std::string root_;
  std::optional<Sampler> sampler_;
  Instant sampled_ = Instant::min();
  std::map<std::string, std::optional<TimeZone>> zones_;
};

}  // namespace weir::host

#endif  // WEIR_HOST_FEED_H_
