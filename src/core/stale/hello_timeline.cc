#include "weir/stale/hello_timeline.h"

#include <algorithm>

namespace weir {
namespace {

constexpr Duration kDay = std::chrono::hours(24);

bool Between(Duration value, Duration low, Duration high) {
  return value >= low && value <= high;
}

}  // namespace

Result<HelloTimeline> HelloTimeline::Make(const Config& config) {
  if (!Between(config.tick, std::chrono::microseconds(1),
               std::chrono::seconds(1))) {
    return Error{"`tick` is not between 1 us and 1 s"};
  }
  if (!Between(config.window, std::chrono::milliseconds(1), kDay)) {
    return Error{"`window` is not between 1 ms and 1 day"};
  }
  if (!Between(config.leap, std::chrono::milliseconds(1), kDay)) {
    return Error{"`leap` is not between 1 ms and 1 day"};
  }
  return HelloTimeline(config);
}

Duration HelloTimeline::Hello(uint32_t stamp, Instant now, bool frozen) {
  if (empty()) {
    gap_ = Duration{};
    Anchor(stamp, now, Duration{});
    return delay_;
  }
  now = std::max(now, at_);
  // The shorter way round: a stamp that wrapped is ahead, not behind.
  const auto ticks = static_cast<int32_t>(stamp - stamp_);
  const Duration peer = peer_ + ticks * config_.tick;
  const Duration difference = (now - anchor_) - peer;
  if (ticks < 0 || difference < Ruler() - config_.leap) {
    ++steps_;
    Anchor(stamp, now, ExpectedDelay(now));
    return delay_;
  }
  gap_ = peer - peer_;
  const Duration passed = std::min(now - at_, gap_);
  peer_ = peer;
  stamp_ = stamp;
  at_ = now;
  ++stamps_;
  if (!frozen) {
    MoveWindow(passed);
    smallest_[part_] = std::min(smallest_[part_], difference);
  } else if (difference < Ruler()) {
    smallest_[part_] = difference;
  }
  delay_ = difference - Ruler();
  return delay_;
}

// From here on the peer's time is counted anew, and d is zero.
void HelloTimeline::Anchor(uint32_t stamp, Instant now, Duration delay) {
  ++stamps_;
  stamp_ = stamp;
  at_ = anchor_ = now;
  peer_ = Duration{};
  part_age_ = Duration{};
  delay_ = delay;
  smallest_.fill(-delay);
}

Duration HelloTimeline::ExpectedDelay(Instant now) const {
  if (gap_ == Duration{}) return delay_;  // Unknown.
  return std::max(Duration{}, delay_ + (now - at_) - gap_);
}

Duration HelloTimeline::Ruler() const {
  return *std::min_element(smallest_.begin(), smallest_.end());
}

// By one part at most: a peer that was silent for the whole window, which may
// be because we did not listen, must not lose its ruler at once.
void HelloTimeline::MoveWindow(Duration passed) {
  part_age_ += passed;
  if (part_age_ < config_.window / kParts) return;
  part_age_ = Duration{};
  part_ = (part_ + 1) % kParts;
  smallest_[part_] = Duration::max();
}

}  // namespace weir
