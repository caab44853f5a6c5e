#include "weir/rivals/userver_rps.h"

#include <algorithm>
#include <cmath>

namespace weir::rivals {
namespace {

// Source: [USERVER] controller.cpp, where the doubling ends.
constexpr int64_t kMostUp = 10'000;

}  // namespace

bool UserverRps::Admit(const Arrival& arrival) {
  CatchUp(arrival.now);
  if (!SpendToken(arrival.now)) return false;
  ++second_.load;
  return true;
}

bool UserverRps::Take(const Start& start) {
  CatchUp(start.now);
  if (start.queue_delay > config_.late) ++second_.overload_events;
  return true;
}

void UserverRps::CatchUp(Instant now) {
  constexpr Duration kSecond = std::chrono::seconds(1);
  if (!second_ends_) second_ends_ = now + kSecond;
  // So many calm seconds change nothing any more.
  const int64_t most_steps = config_.lift_after_s + config_.overload_off_s + 2;
  for (int64_t steps = 0; now >= *second_ends_; ++steps) {
    if (steps > most_steps) {
      second_ends_ = now + kSecond;
      return;
    }
    Feed(second_);
    second_ = Second{};
    *second_ends_ += kSecond;
  }
}

bool UserverRps::UnderPressure(const Second& second) const {
  return second.overload_events >
         (overloaded_ ? config_.down_level : config_.up_level);
}

void UserverRps::Feed(const Second& second) {
  const bool pressure = UnderPressure(second);
  if (pressure) {
    ++pressed_s_;
    calm_s_ = 0;
    most_up_ = 1;
  } else {
    pressed_s_ = 0;
    ++calm_s_;
    if (most_up_ < kMostUp) most_up_ *= 2;
  }
  if (overloaded_) {
    if (pressure) {
      rate_limit_ = NextLimit(second.load);
    } else if (calm_s_ > config_.overload_off_s) {
      overloaded_ = false;
    }
  } else if (pressure) {
    overloaded_ = pressed_s_ > config_.overload_on_s;
  } else if (rate_limit_) {
    rate_limit_ = NextLimit(second.load);
  }
  if (!overloaded_ && calm_s_ > config_.lift_after_s) rate_limit_.reset();
}

int64_t UserverRps::NextLimit(int64_t load) const {
  if (!rate_limit_) {
    return std::max(config_.floor,
                    static_cast<int64_t>(std::lround(static_cast<double>(load) *
                                                     config_.start_ratio)));
  }
  const int64_t now = std::max<int64_t>(*rate_limit_, 1);
  const auto real = static_cast<double>(now);
  if (overloaded_) {
    const auto down =
        static_cast<int64_t>(std::floor(real * (1 - config_.down_ratio)));
    return std::max(config_.floor, std::min(down, now - 1));
  }
  const int64_t up = std::min<int64_t>(
      std::lround(real * (1 + config_.up_ratio)), now + most_up_);
  return std::max(up, now + 1);
}

bool UserverRps::SpendToken(Instant now) {
  const Duration elapsed = now - refilled_;
  refilled_ = now;
  if (!rate_limit_) {
    tokens_ = 0;
    return true;
  }
  const auto rate = static_cast<double>(*rate_limit_);
  tokens_ = std::min(tokens_ + rate * ToSeconds(elapsed), rate);
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

}  // namespace weir::rivals
