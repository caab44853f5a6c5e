#include "weir/client/backoff.h"

#include <algorithm>

#include "weir/splitmix64.h"

namespace weir {

std::optional<Error> Backoff::Check() const {
  if (first <= Duration{}) {
    return Error{"`retries.backoff` must be above 0s"};
  }
  if (!(factor >= 1 && factor <= 10)) {
    return Error{"`retries.factor` must lie between 1 and 10"};
  }
  if (ceiling < first || ceiling > std::chrono::hours(1)) {
    return Error{"`retries.ceiling` must lie between `retries.backoff` and 1h"};
  }
  return std::nullopt;
}

Duration Backoff::Period(int32_t retry) const {
  double period = ToSeconds(first);
  for (int32_t i = 0; i < retry && period < ToSeconds(ceiling); ++i) {
    period *= factor;
  }
  return std::min(FromSeconds(period), ceiling);
}

Duration Backoff::Wait(int32_t retry, uint64_t draw) const {
  return FromSeconds(ToSeconds(Period(retry)) * ToUnit(draw));
}

Duration Backoff::WaitFor(Duration told, uint64_t draw) const {
  return told + Wait(0, draw);
}

}  // namespace weir
