// LimitLaw: rounds, estimates and what is read from them.  law_modes.cc has
// what each mode does with a round.

#include "weir/limit/limit_law.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "law_constants.h"

namespace weir {

using namespace law;

void LimitLaw::Reset(const LimitConfig& new_config, Duration default_budget,
                     Instant now) {
  *this = LimitLaw{};
  config = new_config;
  budget = ToSeconds(default_budget);
  demand.Reset(budget, now);
  heard_at = bound_at = asked_at = relaxed_at = now;
  if (config.workers > 0) mode = Known{};
  SetLimit(config.workers > 0 ? KnownLimit(config.workers) : kInitialLimit,
           now);
}

void LimitLaw::Configure(const LimitConfig& new_config, Instant now) {
  const bool was_known = std::holds_alternative<Known>(mode);
  config = new_config;
  if (config.workers > 0) {
    mode = Known{};
    limit = KnownLimit(config.workers);
  } else if (was_known) {
    // What the workers gave is a good place to search from.
    mode = Search{};
  }
  SetLimit(limit, now);
  CheckInvariants();
}

double LimitLaw::SampleFactor() const {
  return std::clamp(variation, 1., kMaxSampleFactor);
}

double LimitLaw::Unit() const { return kSamples * SampleFactor() + limit; }

double LimitLaw::ProvedBase() const {
  return proved ? std::min(base_latency, budget) : 0;
}

double LimitLaw::Slack() const { return budget - ProvedBase(); }

// Inflight that the service may have without answering too late, were it
// saturated (Little).
double LimitLaw::MostService() const {
  return capacity * (ProvedBase() + Slack() * kServiceShare);
}

double LimitLaw::service_latency() const {
  if (std::holds_alternative<Search>(mode) || capacity <= 0) {
    return std::numeric_limits<double>::infinity();
  }
  return kHeadroom *
         std::max(base_latency, static_cast<double>(slots()) / capacity);
}

int64_t LimitLaw::slots() const {
  // Rounded down: a second place before one worker doubles each latency.
  return std::max<int64_t>(1, static_cast<int64_t>(limit + kRounding));
}

double LimitLaw::queue_target() const {
  // Arrivals at random fluctuate with 1, service with its own variation; with
  // heavy tails a longer queue was tried and only waited longer.
  const double noise = (1 + std::min(1., variation)) / 2;
  const double natural = capacity * base_latency * noise;
  return std::max(kMinQueueTarget,
                  std::min(kQueueDeviations * std::sqrt(natural),
                           capacity * Slack() * kQueueShare));
}

double LimitLaw::waiting_bound(Instant now) const {
  if (demand.standing(now)) return queue_target();
  const Demand::Supply supply{.capacity = capacity, .slack = Slack()};
  const double room = Demand::Room(supply);
  // While capacity is only known to be at least so much, deadlines bound it.
  const bool searching = std::holds_alternative<Search>(mode) || capacity <= 0;
  return searching ? std::max(kSearchRoom, room) : room;
}

int64_t LimitLaw::round_size() const {
  double size = kSamples * SampleFactor();
  switch (mode_name()) {
    case LawMode::kSearch:
      size = kStartSamples * SampleFactor();
      break;
    case LawMode::kKnown:
      size = kStartSamples;
      break;
    case LawMode::kDrain: {
      const Drain& drain = std::get<Drain>(mode);
      if (drain.phase != Drain::Phase::kTake) {
        size = static_cast<double>(slots());
      } else if (drain.in_vain) {
        size = kStartSamples;
      }
      break;
    }
    case LawMode::kCruise:
    case LawMode::kUp:
      size = std::max(size, limit);
      break;
  }
  return std::llround(size);
}

Instant LimitLaw::round_end() const {
  switch (mode_name()) {
    case LawMode::kSearch:
      // So long that also those were answered that take long.
      return round_from + FromSeconds(std::max(round_mean, round_stay / 2));
    case LawMode::kCruise:
    case LawMode::kUp:
      return round_from + FromSeconds(base_latency);
    case LawMode::kDrain:
      return round_from + FromSeconds(round_stay);
    case LawMode::kKnown:
      break;
  }
  return round_from;
}

double LimitLaw::Throughput(const LawInput& input, Instant now) const {
  const double elapsed = ToSeconds(now - round_from);
  return elapsed > 0 ? static_cast<double>(input.completions) / elapsed : 0;
}

// Whether it was the limit that held throughput back in the open round, and
// not demand.
bool LimitLaw::HeldBack(const LawInput& input, Instant now) const {
  if (input.bound) return true;
  const bool refused = static_cast<double>(round_refused) >
                       kWanting * static_cast<double>(input.completions);
  // Where answers come too late, all that waits is hopeless and dropped: the
  // queue looks empty although the places are taken (Little).
  const bool late = round_mean > ProvedBase() + Slack() * kLateShare;
  const double places = kTaken * static_cast<double>(slots());
  return (late || refused) &&
         (static_cast<double>(input.inflight) > places ||
          input.latency_sum > places * ToSeconds(now - round_from));
}

bool LimitLaw::RoundIsOver(const LawInput& input, Instant now) const {
  if (now <= round_from) return false;
  const int64_t answers = input.completions + input.lost;
  if (answers >= round_size() && now >= round_end()) return true;
  // Slow services are judged by fewer answers, not later and later.
  return static_cast<double>(answers) >= kFewSamples &&
         ToSeconds(now - round_from) >= kLongRound * budget;
}

// Whether those that were answered account for what held the places: else
// others hold them, which take long, and what they will give is not seen yet.
bool LimitLaw::IsBalanced(const LawInput& input, Instant now) const {
  const double elapsed = ToSeconds(now - round_from);
  return input.latency_sum >= kBalance * limit * elapsed ||
         elapsed >= kLongImbalance * std::max(budget, round_stay);
}

bool LimitLaw::IsSilent(Instant now, double seconds) const {
  return ToSeconds(now - std::max(heard_at, round_from)) >= seconds;
}

// Whether it is known, and not for long, that more inflight brings nothing.
bool LimitLaw::IsFresh(Instant now) const {
  switch (mode_name()) {
    case LawMode::kKnown:
      return true;
    case LawMode::kCruise:
      return !std::get<Cruise>(mode).growing && now - asked_at < 2 * kAge;
    case LawMode::kUp:
    case LawMode::kDrain:
      return now - asked_at < 2 * kAge;
    case LawMode::kSearch:
      break;
  }
  return false;
}

void LimitLaw::OpenRound(Instant from) {
  ++round;
  round_from = std::max(round_from, from);
  round_mean = round_stay = 0;
  round_refused = heard = 0;
}

void LimitLaw::SetLimit(double wanted, Instant now) {
  limit =
      std::clamp<double>(std::max(1., wanted), config.floor, config.ceiling);
  OpenRound(now);
}

void LimitLaw::Learn(const LawInput& input, Instant now) {
  if (input.budgets > 0) {
    const double n = static_cast<double>(input.budgets);
    budget += (input.budget_sum / n - budget) * std::min(1., n / kBudgetWeight);
    demand.budget = budget;
  }
  const int64_t answers = input.completions + input.lost;
  if (answers > heard) heard_at = std::max(heard_at, now);
  heard = answers;
  round_refused += input.refused;
  if (input.completions > 0) {
    answered = true;
    round_mean = input.latency_sum / static_cast<double>(input.completions);
  }
  if (input.latency_sum > 0) {
    round_stay = input.latency_sq_sum / input.latency_sum;
  }
  peak = std::max(peak, static_cast<double>(input.inflight));
  // Nothing is calm in an overload: it is the short ones that empty the queue.
  if (input.calm == 0 || base_latency <= 0 || demand.overloaded) return;
  const double n = static_cast<double>(input.calm);
  const double weight = std::max(kMinCalmWeight, calm_samples);
  // A batch of n steps of an average with gain 1 / weight.
  base_latency +=
      (input.calm_sum / n - base_latency) * std::min(1., n / (weight + n / 2));
  calm_samples = std::min(calm_samples + n, kMaxCalmWeight * SampleFactor());
  variation += (input.calm_deviation_sum / n - variation) *
               std::min(1., n / (kVariationWeight + n / 2));
  if (!distrust && calm_samples >= kSamples) {
    // As good as a drain, so none is due when a flood begins.
    proved = true;
    until_drain = kDrainInterval * Unit();
  }
}

LawEvents LimitLaw::Step(const LawInput& input, Instant now) {
  LawEvents events;
  Learn(input, now);
  const bool held_back = HeldBack(input, now);
  if (held_back) bound_at = std::max(bound_at, now);
  demand.Follow(input.arrivals, input.queued,
                {.capacity = capacity,
                 .slack = Slack(),
                 .target = queue_target(),
                 .proved = IsFresh(now) && capacity > 0,
                 .held_back = held_back},
                now);
  mode = std::visit(
      [&](const auto& current) { return Next(current, input, now, events); },
      mode);
  CheckInvariants();
  return events;
}

void LimitLaw::CheckInvariants() const {
  assert(limit >= 1 && limit >= config.floor);
  assert(limit <= std::max(1, config.ceiling));
  assert(std::isfinite(capacity) && capacity >= 0);
  assert(std::isfinite(base_latency) && base_latency >= 0);
  assert(std::isfinite(variation) && variation >= 0);
  assert(std::isfinite(demand.excess) && demand.excess >= 0);
  assert(std::isfinite(until_drain) && std::isfinite(until_up));
}

}  // namespace weir
