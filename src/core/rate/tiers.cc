#include "weir/rate/tiers.h"

#include <algorithm>
#include <limits>

namespace weir {
namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

}  // namespace

std::optional<Error> TierTable::Check(const Config& config) {
  if (config.max < 1 || config.max > kMostMax) {
    return Error{"`tiers.max` must lie between 1 and 1000000000"};
  }
  if (config.tiers.empty() || config.tiers.size() > kMostTiers) {
    return Error{"`tiers.tiers` needs 1 to 8 tiers"};
  }
  if (config.window < std::chrono::milliseconds(100) ||
      config.window > std::chrono::seconds(10)) {
    return Error{"`tiers.window` must lie between 100ms and 10s"};
  }
  int32_t below = -1;
  for (const Tier& tier : config.tiers) {
    if (tier.limit_percent < 0 || tier.limit_percent > 1000 ||
        tier.drop_percent < 0 || tier.drop_percent > 100) {
      return Error{
          "a tier is [limit, drop], a limit from 0 to 1000 % of `max` and a "
          "share from 0 to 100 % to drop above it"};
    }
    if (tier.limit_percent <= below) {
      return Error{
          "the limits of `tiers.tiers` must rise from each to the next"};
    }
    below = tier.limit_percent;
  }
  return std::nullopt;
}

TierTable::TierTable(const Config& config)
    : count_(config.tiers.size()),
      window_(config.window),
      smooth_(config.smooth),
      random_(config.random) {
  bounds_.fill(kEnd);
  for (size_t i = 0; i < count_; ++i) {
    bounds_[i] = config.max * config.tiers[i].limit_percent / 100;
    drops_[i] = config.tiers[i].drop_percent;
  }
}

TierTable::Place TierTable::Find(int64_t n) const {
  Place place{0, n};
  for (size_t i = 0; i < count_ && n > bounds_[i]; ++i) {
    place = {drops_[i], n - bounds_[i]};
  }
  return place;
}

int64_t TierTable::AdmittedPercent(int64_t r) const {
  int64_t admitted = r * 100;
  for (size_t i = 0; i < count_ && r > bounds_[i]; ++i) {
    admitted -= (std::min(r, bounds_[i + 1]) - bounds_[i]) * drops_[i];
  }
  return admitted;
}

// r, as of the window that ends at `now`: of its oldest part only what the
// window still covers.
int64_t Tiers::Recent(const TierTable& table, Instant now) const {
  const Duration part = table.window() / kParts;
  const uint64_t current = WindowNumber(now, part);
  const auto count = [&](uint64_t number) {
    const Word::Reading reading = parts_[number % parts_.size()].Read(number);
    // A part that another has begun anew meanwhile is none of this window.
    return reading.window == (number & Word::kNumbers)
               ? static_cast<int64_t>(reading.value)
               : 0;
  };
  int64_t sum = 0;
  for (uint64_t age = 0; age < kParts; ++age) sum += count(current - age);
  return sum +
         count(current - kParts) * WindowLeft(now, part).count() / part.count();
}

Tiers::Answer Tiers::Peek(const TierTable& table, Instant now) const {
  Answer answer;
  if (table.smooth()) {
    answer.number = Recent(table, now);
    const int64_t r = std::max<int64_t>(answer.number, 1);
    answer.drop_ratio = 1 - static_cast<double>(table.AdmittedPercent(r)) /
                                (100 * static_cast<double>(r));
  } else {
    answer.number = static_cast<int64_t>(
                        rank_.Read(WindowNumber(now, table.window())).value) +
                    1;
    answer.drop_ratio = table.Find(answer.number).drop_percent / 100.;
  }
  answer.admitted = answer.drop_ratio < 1;
  if (!answer.admitted) answer.retry_after = WindowLeft(now, table.window());
  return answer;
}

Tiers::Answer Tiers::Offer(const TierTable& table, Instant now,
                           uint64_t random) {
  const auto add_one = [](uint64_t n) { return std::optional(n + 1); };
  Answer answer;
  bool drop = false;
  if (table.smooth()) {
    const uint64_t part = WindowNumber(now, table.window() / kParts);
    parts_[part % parts_.size()].Update(part, add_one);
    answer = Peek(table, now);
    const auto share = static_cast<uint64_t>(answer.drop_ratio * 4294967296.);
    if (table.random()) {
      drop = (random >> 32) < share;
    } else if (share > 0) {
      const uint64_t owed = owed_.fetch_add(share, std::memory_order_relaxed);
      drop = (owed + share) >> 32 != owed >> 32;
    }
  } else {
    const auto reading =
        rank_.Update(WindowNumber(now, table.window()), add_one);
    answer.number = static_cast<int64_t>(reading.value) + 1;
    const TierTable::Place place = table.Find(answer.number);
    answer.drop_ratio = place.drop_percent / 100.;
    if (table.random()) {
      drop =
          static_cast<int32_t>((random >> 32) * 100 >> 32) < place.drop_percent;
    } else {
      drop = place.rank * place.drop_percent / 100 !=
             (place.rank - 1) * place.drop_percent / 100;
    }
  }
  answer.admitted = !drop;
  answer.retry_after =
      drop ? WindowLeft(now, table.window()) : Duration::zero();
  return answer;
}

}  // namespace weir
