#include "weir/stale/capacity_meter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace weir {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();
constexpr Duration kLongestUnit = std::chrono::hours(1);

}  // namespace

Result<CapacityMeter> CapacityMeter::Make(const Config& config, Instant now) {
  if (config.unit < std::chrono::milliseconds(1) ||
      config.unit > kLongestUnit) {
    return Error{"`unit` is not between 1 ms and 1 h"};
  }
  if (config.window < config.unit ||
      config.window % config.unit != Duration{} ||
      config.window / config.unit > static_cast<int64_t>(kMaxUnits)) {
    return Error{"`window` is not 1 to " + std::to_string(kMaxUnits) +
                 " times `unit`"};
  }
  return CapacityMeter(config, now);
}

CapacityMeter::CapacityMeter(const Config& config, Instant now)
    : config_(config),
      window_units_(static_cast<size_t>(config.window / config.unit)),
      unit_end_(now + config.unit) {
  reading_.capacity = reading_.unit_capacity = kUnknown;
}

bool CapacityMeter::Advance(Instant now) {
  if (now < unit_end_) return false;
  // What the loop did since it last came here belongs to the unit that was
  // open then.  Units it slept through were empty; more of them than the
  // window holds change nothing.
  const int64_t over = (now - unit_end_) / config_.unit + 1;
  const auto most = static_cast<int64_t>(window_units_) + 1;
  for (int64_t i = 0; i < std::min(over, most); ++i) EndUnit();
  unit_end_ += over * config_.unit;
  return true;
}

void CapacityMeter::EndUnit() {
  last_ = (last_ + 1) % kMaxUnits;
  units_[last_] = open_;
  count_ = std::min(count_ + 1, window_units_);

  const double unit = ToSeconds(config_.unit);
  reading_.demand = static_cast<double>(waiting_ + open_.arrived) / unit;
  waiting_ += open_.waiting_change();
  open_ = Unit{};
  reading_.waiting = waiting_;

  // A span in which nothing was executed says nothing new.
  const double window_capacity = CapacityOver(count_);
  const double unit_capacity = CapacityOver(1);
  if (std::isfinite(unit_capacity)) {
    reading_.unit_capacity = unit_capacity;
  } else if (std::isfinite(window_capacity)) {
    reading_.unit_capacity = window_capacity;
  }
  if (std::isfinite(window_capacity)) {
    reading_.capacity = std::min(window_capacity, reading_.unit_capacity);
  }
}

double CapacityMeter::CapacityOver(size_t units) const {
  Unit sum;
  for (size_t i = 0; i < units; ++i) {
    const Unit& unit = units_[(last_ + kMaxUnits - i) % kMaxUnits];
    sum.executed += unit.executed;
    sum.busy += unit.busy;
    sum.other += unit.other;
  }
  if (sum.executed <= 0 || sum.busy <= Duration{}) return kUnknown;
  const double span = static_cast<double>(units) * ToSeconds(config_.unit);
  const double speed = static_cast<double>(sum.executed) / ToSeconds(sum.busy);
  return speed * std::max(0., 1 - ToSeconds(sum.other) / span);
}

}  // namespace weir
