#include "weir/client/deadline.h"

#include <algorithm>

namespace weir {

std::optional<Error> DeadlineRules::Check() const {
  using std::chrono::hours, std::chrono::milliseconds, std::chrono::minutes;
  if (margin < Duration{} || margin > minutes(1)) {
    return Error{"`deadline.margin` must lie between 0s and 1m"};
  }
  if (ceiling < milliseconds(1) || ceiling > hours(1)) {
    return Error{"`deadline.ceiling` must lie between 1ms and 1h"};
  }
  return std::nullopt;
}

std::optional<Duration> DeadlineRules::Budget(Instant deadline,
                                              Instant now) const {
  if (deadline == kNever) return ceiling;
  // Compared before they are subtracted: instants may lie far apart.
  if (deadline <= now) return std::nullopt;
  const Duration left = std::min(deadline - now - margin, ceiling);
  if (left < std::chrono::milliseconds(1)) return std::nullopt;
  return left;
}

Instant DeadlineRules::Receive(Duration budget, Instant now) const {
  return now + std::clamp(budget, Duration{}, ceiling);
}

}  // namespace weir
