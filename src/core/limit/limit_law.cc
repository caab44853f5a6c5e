#include "weir/limit/limit_law.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weir {
namespace {

// All constants: Source: docs/algorithms/law.md, "Constants", which tells what
// halving and doubling each of them does.

// Completions for one estimate; its relative error is sqrt(variation / 64).
constexpr double kSamples = 64;
// While searching, an estimate need not be that good.
constexpr double kStartSamples = 32;
// Bounds the time that one estimate takes with heavy tails.
constexpr double kMaxSampleFactor = 8;
// Headroom over capacity * base_latency, 3 to 4 standard errors of it.
constexpr double kHeadroom = 1.5;
// Gain while throughput follows the limit.
constexpr double kGrowthGain = 2;
// Throughput that counts as growth: 2 standard errors.
constexpr double kGrowth = 1.25;
// The up-probe, relative to the cruising limit.
constexpr double kUpGain = 1.5 * kHeadroom;
// The limit while draining, relative to capacity * base_latency: far enough
// from 1 to tell a queue (latency ratio .5) from a base latency (ratio 1).
constexpr double kDrainDepth = .5;
// Latency ratios that confirm the base latency; else it is distrusted.
constexpr double kConfirmLow = .6;
constexpr double kConfirmHigh = 1 / .6;
// Work between drains, in units of what one costs: .4 % of the time.
constexpr double kDrainInterval = 256;
constexpr double kFirstDrain = 4;
// Smoothing of throughput over rounds.
constexpr double kSmoothing = .25;
// Fall of throughput since the last check that calls for a rebase: 5 to 7
// standard errors of the smoothed value.
constexpr double kFall = .65;
// Share of the budget that service may take at most, by Little's law; the
// share that waiting may take while demand exceeds capacity; and otherwise.
constexpr double kServiceShare = 1. / 3;
constexpr double kQueueShare = 1. / 5;
constexpr double kWaitShare = 1. / 2;
// Queue target in standard deviations of the number in service.
constexpr double kQueueDeviations = 8;
constexpr double kMinQueueTarget = 4;
constexpr double kInitialLimit = 8;
// Weights of base_latency and variation in calm times.
constexpr double kMinCalmWeight = 16;
constexpr double kMaxCalmWeight = 512;
constexpr double kVariationWeight = 256;
constexpr double kDrainVariationGain = .3;
// Known workers: the limit over their number, and completions for an estimate.
constexpr double kKnownHeadroom = 1.1;
constexpr double kKnownSamples = 32;
// Smoothing of the mean budget, in arrivals.
constexpr double kBudgetWeight = 256;

double Variation(double count, double sum, double sq_sum) {
  if (count < 2 || sum <= 0) return 1;
  const double mean = sum / count;
  return std::max(0., sq_sum / count - mean * mean) / (mean * mean);
}

}  // namespace

void LimitLaw::Reset(const LimitConfig& new_config, Duration default_budget,
                     Instant now) {
  *this = LimitLaw{};
  config = new_config;
  budget = ToSeconds(default_budget);
  demand_at = now;
  mode = config.workers > 0 ? LawMode::kKnown : LawMode::kStart;
  searching = config.workers == 0;
  limit = config.workers > 0 ? std::ceil(kKnownHeadroom * config.workers)
                             : kInitialLimit;
  limit = std::clamp<double>(limit, config.floor, config.ceiling);
  OpenRound(now);
}

void LimitLaw::Configure(const LimitConfig& new_config, Instant now) {
  const bool was_known = mode == LawMode::kKnown;
  config = new_config;
  if (config.workers > 0) {
    mode = LawMode::kKnown;
    searching = false;
    limit = std::ceil(kKnownHeadroom * config.workers);
  } else if (was_known) {
    // What the workers gave is a good place to search from.
    mode = LawMode::kStart;
    searching = true;
    start_count = start_sum = start_sq_sum = 0;
  }
  limit = std::clamp<double>(limit, config.floor, config.ceiling);
  OpenRound(now);
}

double LimitLaw::SampleFactor() const {
  return std::clamp(variation, 1., kMaxSampleFactor);
}

double LimitLaw::Unit() const { return kSamples * SampleFactor() + limit; }

double LimitLaw::BaseOr(double fallback) const {
  return base_latency > 0 ? base_latency : fallback;
}

int64_t LimitLaw::slots() const {
  return std::max<int64_t>(1, std::llround(limit));
}

int64_t LimitLaw::round_size() const {
  switch (mode) {
    case LawMode::kStart:
      return std::llround(kStartSamples * SampleFactor());
    case LawMode::kKnown:
      return static_cast<int64_t>(kKnownSamples);
    case LawMode::kDrainWait:
      return 1;
    case LawMode::kDrainSkip:
      return slots();
    case LawMode::kDrainTake:
      return std::llround(kSamples * SampleFactor());
    case LawMode::kCruise:
    case LawMode::kUp:
      break;
  }
  return std::llround(std::max(kSamples * SampleFactor(), limit));
}

Instant LimitLaw::round_end() const {
  switch (mode) {
    case LawMode::kDrainWait:
    case LawMode::kDrainSkip:
    case LawMode::kDrainTake:
    case LawMode::kKnown:
      return round_from;
    case LawMode::kStart:
      return round_from + FromSeconds(round_mean);
    case LawMode::kCruise:
    case LawMode::kUp:
      break;
  }
  return round_from + FromSeconds(base_latency);
}

double LimitLaw::queue_target() const {
  // Arrivals at random fluctuate with 1, service with its own variation; with
  // heavy tails a longer queue was tried and only waited longer.
  const double noise = (1 + std::min(1., variation)) / 2;
  const double natural = capacity * base_latency * noise;
  return std::max(kMinQueueTarget,
                  std::min(kQueueDeviations * std::sqrt(natural),
                           capacity * budget * kQueueShare));
}

double LimitLaw::waiting_bound() const {
  // While the limit is being searched, capacity is only known to be at least
  // so much; what waits then is bounded by its deadlines.
  if (searching || capacity <= 0) {
    return std::numeric_limits<double>::infinity();
  }
  return std::max(kMinQueueTarget, capacity * budget * kWaitShare);
}

void LimitLaw::OpenRound(Instant from) {
  ++round;
  round_from = from;
  round_mean = 0;
}

void LimitLaw::ClampLimit() {
  limit = std::clamp<double>(limit, config.floor, config.ceiling);
}

void LimitLaw::SetLimit(double gain, Instant now) {
  const double base = BaseOr(round_mean);
  limit = std::clamp(gain * capacity * base, 1.,
                     std::max(1., capacity * budget * kServiceShare));
  ClampLimit();
  OpenRound(now);
}

void LimitLaw::Learn(const LawInput& input) {
  if (input.budgets > 0) {
    const double n = static_cast<double>(input.budgets);
    const double gain = std::min(1., n / kBudgetWeight);
    budget += (input.budget_sum / n - budget) * gain;
  }
  if (input.calm > 0 && base_latency > 0) {
    const double n = static_cast<double>(input.calm);
    const double weight = std::max(kMinCalmWeight, calm_samples);
    // A batch of n steps of an average with gain 1 / weight.
    base_latency += (input.calm_sum / n - base_latency) *
                    std::min(1., n / (weight + n / 2));
    calm_samples = std::min(calm_samples + n, kMaxCalmWeight * SampleFactor());
    variation += (input.calm_deviation_sum / n - variation) *
                 std::min(1., n / (kVariationWeight + n / 2));
  }
}

LawEvents LimitLaw::Step(const LawInput& input, Instant now) {
  LawEvents events;
  Learn(input);
  if (input.arrivals > 0) {
    const double dt = std::max(0., ToSeconds(now - demand_at));
    const double keep = kDemandMemory / (kDemandMemory + dt);
    demand_count = (demand_count + static_cast<double>(input.arrivals)) * keep;
    demand_time = (demand_time + dt) * keep;
    demand_at = now;
  }
  if (input.completions > 0) {
    round_mean = input.latency_sum / static_cast<double>(input.completions);
  }
  switch (mode) {
    case LawMode::kKnown:
      StepKnown(input, now, events);
      break;
    case LawMode::kDrainWait:
    case LawMode::kDrainSkip:
    case LawMode::kDrainTake:
      StepDrain(input, now, events);
      break;
    case LawMode::kStart:
    case LawMode::kCruise:
    case LawMode::kUp:
      if (input.queue_formed && !input.bound) {
        // The idle time before does not belong to what is measured now.
        OpenRound(now);
      } else if (input.completions >= round_size() && now >= round_end() &&
                 now > round_from) {
        EndRound(input, now, events);
      }
      break;
  }
  return events;
}

void LimitLaw::EndStart(const LawInput& input, bool grew) {
  if (grew || !input.bound) {
    // The round that fails to grow is left out: it has our queue in it.
    start_count += static_cast<double>(input.completions);
    start_sum += input.latency_sum;
    start_sq_sum += input.latency_sq_sum;
    base_latency = start_sum / start_count;
    variation = Variation(start_count, start_sum, start_sq_sum);
    calm_samples = start_count;
    // Without a flood the start would go on for ever, and an average over all
    // of it would not follow the service.
    if (input.bound || start_count < kMaxCalmWeight * SampleFactor()) return;
  }
  mode = LawMode::kCruise;
  capacity_trend = capacity_before = capacity;
  until_drain = kFirstDrain * Unit();
}

void LimitLaw::EndRound(const LawInput& input, Instant now, LawEvents& events) {
  events.round = true;
  const double n = static_cast<double>(input.completions);
  const double throughput = n / ToSeconds(now - round_from);
  const bool more = input.bound && throughput > kGrowth * capacity;
  // After the limit was raised, that settles it.  While cruising nothing calls
  // for growth, and of so many rounds some look like it: two in a row then.
  const bool grew = more && (growing || mode != LawMode::kCruise);
  if (input.bound) growing = more;
  until_drain -= n;
  if (mode == LawMode::kStart && input.bound) {
    // Ending the search by mistake sheds what the service could do, and one
    // round of so few samples is mistaken once in twenty times; against two
    // doublings hardly ever.
    const bool decided = grew || flat;
    flat = !grew;
    if (!decided) {
      limit = std::min(limit * kGrowthGain,
                       std::max(limit, capacity * budget * kServiceShare));
      ClampLimit();
      OpenRound(now);
      return;
    }
  }
  if (mode == LawMode::kStart) EndStart(input, grew);

  searching = mode == LawMode::kStart || more;
  if (!input.bound) {  // Limited by demand: no verdict on the service, ...
    // The largest of many noisy rounds would be far too large.
    served =
        served > 0 ? served + (throughput - served) * kSmoothing : throughput;
    capacity = std::max(capacity, served);
    // ... except that its answers come too late.
    if (round_mean > budget * kWaitShare) {
      limit = std::min(limit, std::max(1., capacity * budget * kServiceShare));
      ClampLimit();
    }
    OpenRound(now);
    return;
  }

  capacity = grew || distrust ? throughput
                              : capacity + (throughput - capacity) * kSmoothing;
  capacity_trend =
      capacity_trend > 0
          ? capacity_trend + (throughput - capacity_trend) * kSmoothing
          : throughput;
  capacity_before = std::max(capacity_before, capacity_trend);
  if (grew) {
    events.growth = true;
    if (mode == LawMode::kUp) mode = LawMode::kCruise;
    until_drain = std::max(until_drain, kFirstDrain * Unit());
    SetLimit(kGrowthGain, now);
  } else if (capacity_trend < kFall * capacity_before && !distrust) {
    events.rebase = true;
    capacity = capacity_before;
    Rebase(throughput, now);
  } else if (mode == LawMode::kUp) {
    mode = LawMode::kCruise;
    SetLimit(kHeadroom, now);
  } else if (until_drain <= 0 && (distrust || input.overloaded)) {
    // Otherwise the queue empties by itself: calm samples will say what a drain
    // would, and no request has to wait for it.
    events.drain = true;
    mode = LawMode::kDrainWait;
    limit = std::max(1., kDrainDepth * capacity * base_latency);
    ClampLimit();
    OpenRound(now);
  } else {
    SetLimit(kHeadroom, now);
  }
}

void LimitLaw::Rebase(double throughput, Instant now) {
  base_latency = limit / throughput;  // Little.
  distrust = true;
  capacity_trend = throughput;
  until_drain = Unit();
  mode = LawMode::kCruise;
  SetLimit(1, now);
  // No verdict before the new limit had time to act.
  round_from = now + FromSeconds(2 * base_latency);
}

void LimitLaw::StepDrain(const LawInput& input, Instant now,
                         LawEvents& events) {
  if (input.queue_empty) {
    mode = LawMode::kCruise;
    SetLimit(kHeadroom, now);
    return;
  }
  switch (mode) {
    case LawMode::kDrainWait:
      if (input.inflight > slots()) return;
      mode = LawMode::kDrainSkip;
      OpenRound(now);
      return;
    case LawMode::kDrainSkip: {
      // The first to come back are the short ones.
      if (input.completions < round_size()) return;
      mode = LawMode::kDrainTake;
      const Instant from = round_from;  // Still those admitted since then.
      OpenRound(from);
      return;
    }
    default:
      if (input.completions < round_size()) return;
      events.round = true;
      EndDrain(input, now);
  }
}

void LimitLaw::EndDrain(const LawInput& input, Instant now) {
  const double n = static_cast<double>(input.completions);
  const double mean = input.latency_sum / n;
  variation +=
      (Variation(n, input.latency_sum, input.latency_sq_sum) - variation) *
      kDrainVariationGain;
  const double ratio = mean / base_latency;
  distrust = ratio < kConfirmLow || ratio > kConfirmHigh;
  base_latency = distrust ? mean : (base_latency + mean) / 2;
  calm_samples = kSamples * SampleFactor();
  capacity_before = capacity_trend;
  mode = LawMode::kUp;
  SetLimit(kUpGain, now);
  until_drain = (distrust ? 1 : kDrainInterval) * Unit();
  round_from = now + FromSeconds(base_latency);
}

void LimitLaw::StepKnown(const LawInput& input, Instant now,
                         LawEvents& events) {
  if (input.completions < round_size() || now <= round_from) return;
  events.round = true;
  const double n = static_cast<double>(input.completions);
  const double throughput = n / ToSeconds(now - round_from);
  if (input.bound && capacity > 0) {
    capacity += (throughput - capacity) * kSmoothing;
  } else {
    capacity = std::max(capacity, throughput);
  }
  const double mean = input.latency_sum / n;
  // The average of .05 for each sample, over the round.
  base_latency = base_latency > 0
                     ? base_latency + (mean - base_latency) *
                                          std::min(1., n * .05 / (1 + n * .025))
                     : mean;
  OpenRound(now);
}

}  // namespace weir
