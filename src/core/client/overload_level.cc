#include "weir/client/overload_level.h"

#include <algorithm>

#include "../relaxed.h"
#include "weir/splitmix64.h"

namespace weir {
namespace {

constexpr Duration kLongestTtl = std::chrono::seconds(1);

constexpr int64_t NanosecondsOf(Instant now) {
  return now.time_since_epoch().count();
}

}  // namespace

// What is admitted shows that all that is more critical is not hopeless.
// Nothing is written while nothing is refused.
void LevelMeter::OnAdmitted(Criticality criticality, Instant /*now*/) {
  for (size_t i = 0; i <= Index(criticality); ++i) {
    if (classes_[i].refused.load(kRelaxed) != 0) {
      classes_[i].refused.store(0, kRelaxed);
    }
  }
}

void LevelMeter::OnRefused(Criticality criticality, Instant now) {
  const int64_t at = NanosecondsOf(now);
  Class& cls = classes_[Index(criticality)];
  const bool gap = at - cls.last_at.load(kRelaxed) > kSilence.count();
  if (gap) cls.refused.store(0, kRelaxed);
  if (cls.refused.fetch_add(1, kRelaxed) == 0) cls.first_at.store(at, kRelaxed);
  cls.last_at.store(at, kRelaxed);
}

std::optional<OverloadLevel> LevelMeter::Read(Instant now,
                                              uint64_t draw) const {
  const int64_t at = NanosecondsOf(now);
  for (size_t i = 0; i < kCriticalities; ++i) {
    const Class& cls = classes_[i];
    if (cls.refused.load(kRelaxed) >= kLeastRefused &&
        at - cls.last_at.load(kRelaxed) <= kSilence.count() &&
        at - cls.first_at.load(kRelaxed) >= kSilence.count()) {
      const double spread = 0.5 + ToUnit(draw);
      return OverloadLevel{static_cast<Criticality>(i),
                           FromSeconds(ToSeconds(kTtl) * spread)};
    }
  }
  return std::nullopt;
}

std::optional<Error> LearnedLevel::Config::Check() const {
  if (!(probe_ratio >= 0 && probe_ratio <= 1)) {
    return Error{"`level.probe_ratio` must lie between 0 and 1"};
  }
  if (probe_interval <= Duration{} ||
      probe_interval > std::chrono::minutes(1)) {
    return Error{"`level.probe_interval` must be above 0s and at most 1m"};
  }
  return std::nullopt;
}

void LearnedLevel::Learn(const OverloadLevel& level, Instant now) {
  if (config_.mode == StageMode::kOff || level.ttl <= Duration{}) return;
  const int64_t ttl_ms =
      std::min(level.ttl, kLongestTtl) / std::chrono::milliseconds(1);
  const int64_t at_us = NanosecondsOf(now) / 1000;
  level_.store(static_cast<uint64_t>(at_us) << 16 |
                   static_cast<uint64_t>(ttl_ms) << 2 | Index(level.hopeless),
               kRelaxed);
}

void LearnedLevel::OnTaken(Criticality criticality, Instant sent_at) {
  uint64_t word = level_.load(kRelaxed);
  if (word == 0 || Index(criticality) < (word & 3) ||
      NanosecondsOf(sent_at) / 1000 <= static_cast<int64_t>(word >> 16)) {
    return;
  }
  // Unless another one has been learned meanwhile.
  level_.compare_exchange_strong(word, 0, kRelaxed);
}

LearnedLevel::Known LearnedLevel::Get(Instant now) const {
  const uint64_t word = level_.load(kRelaxed);
  if (word == 0) return {};
  const auto ttl_us = static_cast<double>((word >> 2 & 0x3fff) * 1000);
  const auto age_us = static_cast<double>(NanosecondsOf(now) / 1000 -
                                          static_cast<int64_t>(word >> 16));
  if (age_us >= ttl_us) return {};
  return {static_cast<Criticality>(word & 3),
          1 - std::max(age_us, 0.0) / ttl_us};
}

bool LearnedLevel::Admit(Criticality criticality, Instant now, uint64_t draw) {
  const Known known = Get(now);
  if (known.strength <= 0 || criticality < known.hopeless) return true;
  const int64_t at = NanosecondsOf(now);
  if (ToUnit(draw) >= known.strength * (1 - config_.probe_ratio)) {
    last_probe_.store(at, kRelaxed);
    return true;
  }
  int64_t last = last_probe_.load(kRelaxed);
  return at - last >= config_.probe_interval.count() &&
         last_probe_.compare_exchange_strong(last, at, kRelaxed);
}

}  // namespace weir
