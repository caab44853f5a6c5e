#include "weir/rivals/dagor.h"

#include <cmath>

#include "weir/splitmix64.h"

namespace weir::rivals {

int32_t Dagor::LevelOf(const Arrival& arrival) {
  // Another hash each hour, so that nobody is the last for ever.
  const auto hour = static_cast<uint64_t>(arrival.now.time_since_epoch() /
                                          std::chrono::hours(1));
  const uint64_t user =
      Mix64(arrival.client ^ Mix64(hour + 1)) % uint64_t{kUsers};
  return static_cast<int32_t>(Index(arrival.criticality)) * kUsers +
         static_cast<int32_t>(user);
}

bool Dagor::Admit(const Arrival& arrival) {
  if (arrival.now - window_start_ >= config_.window ||
      all_ >= config_.window_requests) {
    EndWindow(arrival.now);
  }
  const int32_t level = LevelOf(arrival);
  ++arrivals_[static_cast<size_t>(level)];
  ++all_;
  if (level > cursor_) return false;
  ++admitted_;
  return true;
}

bool Dagor::Take(const Start& start) {
  queueing_ += start.queue_delay;
  ++started_;
  return true;
}

void Dagor::EndWindow(Instant now) {
  const bool overloaded =
      started_ > 0 && queueing_ / started_ > config_.threshold;
  const auto admitted = static_cast<double>(admitted_);
  int64_t prefix = admitted_;
  if (overloaded) {
    const auto expected = static_cast<int64_t>((1 - config_.alpha) * admitted);
    while (prefix > expected && cursor_ > 0) {
      prefix -= arrivals_[static_cast<size_t>(cursor_)];
      --cursor_;
    }
  } else {
    const int64_t expected =
        admitted_ + static_cast<int64_t>(
                        std::ceil(config_.beta * static_cast<double>(all_)));
    while (prefix < expected && cursor_ < kLevels - 1) {
      ++cursor_;
      prefix += arrivals_[static_cast<size_t>(cursor_)];
    }
  }
  arrivals_.fill(0);
  all_ = 0;
  admitted_ = 0;
  queueing_ = Duration::zero();
  started_ = 0;
  window_start_ = now;
}

}  // namespace weir::rivals
