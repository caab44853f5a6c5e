#include "weir/limit/limit_law.h"

#include <algorithm>
#include <cmath>

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
// A round below this share of capacity needs an explanation.  One is a pause;
// a second in a row, being 4 standard errors off itself, is a fall.
constexpr double kCollapse = .5;
// Of the budget less what a request takes anyway, the share that queueing in
// the service may take at most, by Little's law.
constexpr double kServiceShare = 1. / 3;
// Share of the places that are taken, on average over a round, from which on
// the limit held the service back and not demand, whatever the queue says.
constexpr double kTaken = .8;
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

double LimitLaw::ProvedBase() const {
  return proved ? std::min(base_latency, budget) : 0;
}

double LimitLaw::Slack() const { return budget - ProvedBase(); }

double LimitLaw::MostService() const {
  return ProvedBase() + Slack() * kServiceShare;
}

bool LimitLaw::IsLate() const {
  return round_mean > ProvedBase() + Slack() * kWaitShare;
}

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
  const double wanted = gain * capacity * base;
  const double most = std::max(1., capacity * MostService());
  if (mode == LawMode::kStart) {
    // What follows is measured anyway; a search that is cut short is not.
    limit = std::max(limit, proved ? wanted : std::min(wanted, most));
  } else {
    limit = std::clamp(wanted, 1., most);
  }
  ClampLimit();
  OpenRound(now);
}

void LimitLaw::Learn(const LawInput& input) {
  if (input.budgets > 0) {
    const double n = static_cast<double>(input.budgets);
    const double gain = std::min(1., n / kBudgetWeight);
    budget += (input.budget_sum / n - budget) * gain;
  }
  // Nothing is calm in an overload: it is the short ones that empty the queue.
  if (input.calm > 0 && base_latency > 0 && !overloaded && !IsLate()) {
    const double n = static_cast<double>(input.calm);
    const double weight = std::max(kMinCalmWeight, calm_samples);
    // A batch of n steps of an average with gain 1 / weight.
    base_latency += (input.calm_sum / n - base_latency) *
                    std::min(1., n / (weight + n / 2));
    calm_samples = std::min(calm_samples + n, kMaxCalmWeight * SampleFactor());
    variation += (input.calm_deviation_sum / n - variation) *
                 std::min(1., n / (kVariationWeight + n / 2));
    if (!distrust && calm_samples >= kSamples) {
      // As good as a drain, so none is due when a flood begins.
      proved = true;
      until_drain = kDrainInterval * Unit();
    }
  }
}

LawEvents LimitLaw::Step(const LawInput& input, Instant now) {
  LawEvents events;
  Learn(input);
  if (input.arrivals > 0) FollowDemand(input, now);
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
      if (input.queue_formed && !input.bound && !IsLate()) {
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
                       std::max({limit, kGrowthGain * kInitialLimit,
                                 capacity * MostService()}));
      ClampLimit();
      OpenRound(now);
      return;
    }
  }
  if (mode == LawMode::kStart) EndStart(input, grew);

  searching = mode == LawMode::kStart || more;
  // Where answers come too late, all that waits is hopeless and dropped: the
  // queue looks empty although the places are taken (Little).
  taken = IsLate() && throughput * round_mean > kTaken * limit;
  if (!input.bound && !taken) {  // Limited by demand: no verdict.
    // The largest of many noisy rounds would be far too large.
    served =
        served > 0 ? served + (throughput - served) * kSmoothing : throughput;
    capacity = std::max(capacity, served);
    if (IsLate()) {
      limit = std::min(limit, std::max(1., capacity * MostService()));
      ClampLimit();
    }
    const bool follows = throttled > 0 && throughput > kGrowth * throttled;
    if (follows && following) Trust(throughput);
    following = follows;
    falling = false;
    OpenRound(now);
    return;
  }

  following = false;
  const bool verdict = throttled > 0;
  const bool low =
      !verdict && mode != LawMode::kStart && throughput < kCollapse * capacity;
  const bool fell = low && falling;
  falling = low;
  if (low && !fell) {
    OpenRound(now);
    return;
  }
  if (verdict && EndRebase(throughput, now)) return;

  const double before = capacity;
  capacity = grew || verdict || (fell && distrust)
                 ? throughput
                 : capacity + (throughput - capacity) * kSmoothing;
  capacity_trend =
      capacity_trend > 0
          ? capacity_trend + (throughput - capacity_trend) * kSmoothing
          : throughput;
  capacity_before = std::max(capacity_before, capacity_trend);
  if (grew) {
    // It followed a higher limit, so what was measured below that is base.
    if (mode != LawMode::kCruise && before > 0) proved = true;
    events.growth = true;
    if (mode == LawMode::kUp) mode = LawMode::kCruise;
    until_drain = std::max(until_drain, kFirstDrain * Unit());
    SetLimit(kGrowthGain, now);
  } else if ((fell || capacity_trend < kFall * capacity_before) && !distrust) {
    events.rebase = true;
    capacity = capacity_before;
    Rebase(throughput, now);
  } else if (mode == LawMode::kUp) {
    mode = LawMode::kCruise;
    SetLimit(kHeadroom, now);
  } else if (until_drain <= 0 && (distrust || overloaded)) {
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

// The raise of the limit was the test.  Throughput that followed it shows that
// the limit had held the service back, so the new base latency is true; a
// service that lost capacity does no more with more.
bool LimitLaw::EndRebase(double throughput, Instant now) {
  if (throughput <= kGrowth * throttled) {
    throttled = 0;
    return false;
  }
  Trust(throughput);
  capacity += (throughput - capacity) * kSmoothing;
  SetLimit(kHeadroom, now);
  return true;
}

void LimitLaw::Trust(double throughput) {
  throttled = 0;
  distrust = false;
  proved = true;
  capacity_trend = capacity_before = throughput;
  until_drain = kFirstDrain * Unit();
}

void LimitLaw::Rebase(double throughput, Instant now) {
  base_latency = limit / throughput;  // Little.
  distrust = true;
  proved = false;
  throttled = throughput;
  capacity_trend = throughput;
  until_drain = Unit();
  mode = LawMode::kCruise;
  SetLimit(1, now);
  // No verdict before the new limit had time to act.
  round_from = now + FromSeconds(2 * base_latency);
}

void LimitLaw::StepDrain(const LawInput& input, Instant now,
                         LawEvents& events) {
  // A queue that is empty is no lack of demand yet: what waited may have become
  // hopeless in the meantime.
  if (input.queue_empty && input.inflight == 0) {
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
      drain_from = now;
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
  // Those that finished are the shorter ones, so their mean is too low; those
  // that were left over from before are the longer ones, so what Little says of
  // all that hold places is too high.  With heavy tails by a factor, each.
  const double finished = input.latency_sum / n;
  const double holding =
      static_cast<double>(slots()) * ToSeconds(now - drain_from) / n;
  // Workers do not all have the same now, so the time may be none or less.
  const double mean =
      input.bound && holding > 0 ? std::sqrt(finished * holding) : finished;
  throttled = 0;
  variation +=
      (Variation(n, input.latency_sum, input.latency_sq_sum) - variation) *
      kDrainVariationGain;
  const double ratio = mean / base_latency;
  distrust = ratio < kConfirmLow || ratio > kConfirmHigh;
  proved = !distrust;
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
