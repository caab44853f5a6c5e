// LimitLaw: what each mode does with what was measured, and which is next.

#include <algorithm>
#include <cmath>

#include "law_constants.h"
#include "weir/limit/limit_law.h"

namespace weir {

using namespace law;

namespace {

LimitLaw::Samples SamplesOf(const LawInput& input) {
  return {static_cast<double>(input.completions), input.latency_sum,
          input.latency_sq_sum};
}

// What held `places` for `elapsed`, by Little: unlike the mean of those that
// have been answered it knows of those that take long and are still at work.
LimitLaw::Samples HeldBy(const LawInput& input, double places, double elapsed) {
  LimitLaw::Samples held = SamplesOf(input);
  held.held = places * elapsed;
  return held;
}

double Variation(const LimitLaw::Samples& s) {
  if (s.count < 2 || s.sum <= 0) return 1;
  const double mean = s.sum / s.count;
  return std::max(0., s.sq_sum / s.count - mean * mean) / (mean * mean);
}

double GoodOf(const LawInput& input) {
  return static_cast<double>(input.completions - input.late);
}

// What of `throughput` came in time.
double InTime(const LawInput& input, double throughput) {
  return throughput * GoodOf(input) /
         static_cast<double>(std::max<int64_t>(1, input.completions));
}

}  // namespace

// --- Search

LimitLaw::Mode LimitLaw::Next(Search search, const LawInput& input, Instant now,
                              LawEvents& events) {
  const double throughput = Throughput(input, now);
  if (input.completions == 0 && input.lost > 0 && RoundIsOver(input, now)) {
    // It hangs, and callers leave.  What it will have to work off when it moves
    // again is bounded by the limit; nothing is lost by a low one.
    events.round = true;
    SetLimit(std::max(std::min(limit, kInitialLimit),
                      std::min(limit, static_cast<double>(input.inflight)) / 2),
             now);
    return Search{};
  }
  if (!HeldBack(input, now)) {
    if (input.queue_formed) {
      // The idle time before does not belong to what is measured now.
      OpenRound(now);
    } else if (RoundIsOver(input, now)) {
      events.round = true;
      // The level that demand alone made (Little): what throughput at the limit
      // is held against.
      search = Search{};
      const double level = throughput * round_mean;
      if (level > 0 && kLeastRaise * level < limit) {
        search.level = level;
        search.throughput = throughput;
      }
      SeeDemandLimited(input, throughput, now);
    }
    Relax(now);
    return search;
  }
  relaxed_at = now;
  if (!RoundIsOver(input, now)) return RaiseEarly(search, input, now);
  events.round = true;
  const bool first = search.level <= 0;
  const double good = InTime(input, throughput);
  if (IsInVain(input, now)) {
    // Too many are at work, or so few that those which are quick have to wait
    // for others.  Trying more first costs nothing: all is in vain anyway.
    if (!first && throughput <= kGrowth * search.throughput &&
        good <= kBetter * search.good) {
      return Retreat(input, now, events);
    }
    search.latest = {};
    search.level = limit;
    search.throughput = throughput;
    search.good = good;
    search.flat = 0;
    SetLimit(kLeastRaise * limit, now);
    return search;
  }
  if (first || throughput > kGrowth * search.throughput) {
    events.growth = !first;
    // It followed a higher limit, so what was measured below that is base.
    if (!first) {
      search.below.Add(search.latest);
      if (search.below.count > 0) {
        base_latency = search.below.held / search.below.count;
        variation = Variation(search.below);
        calm_samples = search.below.count;
        proved = true;
        distrust = false;
      }
    }
    search.latest = HeldBy(input, limit, ToSeconds(now - round_from));
    search.level = limit;
    search.throughput = throughput;
    search.good = good;
    search.flat = 0;
    capacity = throughput;
    SetLimit(kGrowthGain * limit, now);
    return search;
  }
  if (!IsBalanced(input, now)) return RaiseEarly(search, input, now);
  // What was cut off would have been an answer, or not: one more has to tell.
  if (kManyLost * static_cast<double>(input.lost) >
      static_cast<double>(input.completions)) {
    search.needed = 3;
  }
  if (++search.flat < search.needed) {
    // Ending the search by mistake sheds what the service could do, and one
    // round of so few samples is mistaken once in twenty times.
    // Where more would make answers late, the same once more tells as well.
    SetLimit(std::min(kGrowthGain * limit, std::max(limit, MostService())),
             now);
    return search;
  }
  return EndSearch(search, throughput, now);
}

// Without a verdict: while nothing was ever answered, so that nothing is known
// and others may be quick; and where twice as much makes no answer late, even
// if it brings nothing.
LimitLaw::Search LimitLaw::RaiseEarly(Search search, const LawInput& input,
                                      Instant now) {
  const double elapsed = ToSeconds(now - round_from);
  const double n = static_cast<double>(input.completions);
  if (!answered) {
    if (input.lost == 0 && input.queued + round_refused > 0 &&
        IsSilent(now, LeastSilence(budget)) && limit < kBlindLimit) {
      SetLimit(kGrowthGain * limit, now);
    }
  } else if (elapsed >= std::max(kSafeRound * budget, round_mean) && n >= 4 &&
             kGrowthGain * limit <=
                 (n + std::sqrt(n)) / elapsed * budget * kLateShare) {
    search.latest = HeldBy(input, limit, elapsed);
    search.level = limit;
    search.throughput = n / elapsed;
    search.good = 0;
    capacity = std::max(capacity, search.throughput);
    SetLimit(kGrowthGain * limit, now);
  }
  return search;
}

LimitLaw::Mode LimitLaw::EndSearch(const Search& search, double throughput,
                                   Instant now) {
  FollowBoundRound(throughput, /*jump=*/capacity <= 0);
  capacity_trend = capacity_before = capacity;
  asked_at = now;
  up_interval = kFirstUp;
  until_up = up_interval * Unit();
  until_drain = kFirstDrain * Unit();
  if (search.below.count <= 0) {
    // No level was below saturation: what one request takes is not known, but
    // that the lowest level was enough.
    base_latency = search.level / search.throughput;
    proved = false;
    distrust = true;
    until_drain = 0;
  }
  return Settled(now);
}

// Demand was less than the service can do: what it gave is a lower bound.
void LimitLaw::SeeDemandLimited(const LawInput& input, double throughput,
                                Instant now) {
  // The largest of many noisy rounds would be far too large.
  served =
      served > 0 ? served + (throughput - served) * kSmoothing : throughput;
  capacity = std::max(capacity, served);
  if (base_latency <= 0 && input.completions > 0) {
    base_latency = round_mean;
    variation = Variation(SamplesOf(input));
    calm_samples = static_cast<double>(input.completions);
  }
  OpenRound(now);
}

// A limit that nobody needs shrinks to what is harmless: were the service
// saturated at it, answers would still come in time.
void LimitLaw::Relax(Instant now) {
  if (now - relaxed_at < kAge) return;
  relaxed_at = now;
  const double enough =
      std::max({kInitialLimit, kUnused * peak, MostService()});
  peak = 0;
  if (limit > enough) SetLimit(std::max(enough, limit / 2), now);
}

// --- Cruise and up

void LimitLaw::FollowBoundRound(double throughput, bool jump) {
  capacity =
      jump ? throughput : capacity + (throughput - capacity) * kSmoothing;
  capacity_trend =
      capacity_trend > 0
          ? capacity_trend + (throughput - capacity_trend) * kSmoothing
          : throughput;
  capacity_before = std::max(capacity_before, capacity_trend);
}

LimitLaw::Mode LimitLaw::Next(Cruise cruise, const LawInput& input, Instant now,
                              LawEvents& events) {
  const bool held_back = HeldBack(input, now);
  if (!held_back && now - bound_at >= kAge) {
    // Nobody has needed it for long: what it stands on has aged.
    SetLimit(std::max(limit, std::min(kInitialLimit, MostService())), now);
    Search search;
    search.needed = proved ? 1 : 2;
    return search;
  }
  if (input.queue_formed && !input.bound && !held_back) {
    OpenRound(now);
    return cruise;
  }
  if (held_back && IsSilent(now, kLongSilence * budget)) {
    OpenRound(now);
    return Search{};
  }
  if (!RoundIsOver(input, now)) return cruise;
  events.round = true;
  const double throughput = Throughput(input, now);
  until_drain -= static_cast<double>(input.completions);
  until_up -= static_cast<double>(input.completions);
  if (held_back && IsInVain(input, now)) return Retreat(input, now, events);
  if (!held_back) {
    SeeDemandLimited(input, throughput, now);
    cruise.falling = false;
    return cruise;
  }
  const bool more = throughput > kGrowth * capacity;
  const bool low = throughput < kCollapse * capacity;
  const bool grew = more && cruise.growing;
  const bool fell = low && cruise.falling;
  cruise.growing = more;
  cruise.falling = low;
  if (low && !fell) {
    OpenRound(now);
    return cruise;
  }
  FollowBoundRound(throughput, grew);
  if (grew) {
    events.growth = true;
    SetLimit(kGrowthGain * capacity * base_latency, now);
    return cruise;
  }
  if (fell || capacity_trend < kFall * capacity_before) {
    events.rebase = true;
    return Doubt(throughput, now);
  }
  if (until_up <= 0 || now - asked_at >= kAge) {
    SetLimit(
        std::min(kUpGain * std::max(limit, kHeadroom * capacity * base_latency),
                 std::max(limit + 1, MostService())),
        now);
    return Up{};
  }
  if (until_drain <= 0 && (distrust || demand.overloaded)) {
    return StartDrain({.limit = limit, .throughput = throughput},
                      kDrainDepth * capacity * base_latency, now, events);
  }
  SetLimit(std::min(kHeadroom * capacity * base_latency,
                    std::max(1., MostService())),
           now);
  return cruise;
}

// Throughput fell: the service lost capacity, or each request takes longer and
// it is the limit that holds it down.  Raising the limit tells.
LimitLaw::Mode LimitLaw::Doubt(double throughput, Instant now) {
  Search search;
  search.level = limit;
  search.throughput = throughput;
  search.needed = 1;
  const double would_restore = limit * capacity_before / throughput;
  const double in_time = throughput * budget * kLateShare;
  SetLimit(std::max(kLeastRaise * limit, std::min(would_restore, in_time)),
           now);
  proved = false;
  capacity = capacity_trend = capacity_before = throughput;
  return search;
}

LimitLaw::Mode LimitLaw::Next(Up, const LawInput& input, Instant now,
                              LawEvents& events) {
  if (!RoundIsOver(input, now)) return Up{};
  events.round = true;
  const double throughput = Throughput(input, now);
  until_drain -= static_cast<double>(input.completions);
  if (!HeldBack(input, now)) {
    SeeDemandLimited(input, throughput, now);
    asked_at = now;
    return Settled(now);
  }
  const bool grew = throughput > kGrowth * capacity;
  if (!grew && !IsBalanced(input, now)) return Up{};
  FollowBoundRound(throughput, grew);
  if (grew) {
    // It followed a higher limit: the base latency was too low, or the service
    // can do more than before.
    events.growth = true;
    up_interval = kFirstUp;
    until_drain = std::max(until_drain, kFirstDrain * Unit());
    Search search;
    search.level = limit;
    search.throughput = throughput;
    search.needed = 1;
    SetLimit(kLeastRaise * limit, now);
    return search;
  }
  asked_at = now;
  up_interval = std::clamp(2 * up_interval, kFirstUp, kMostUp);
  until_up = up_interval * Unit();
  return Settled(now);
}

// --- Drain

LimitLaw::Mode LimitLaw::StartDrain(Drain drain, double to, Instant now,
                                    LawEvents& events) {
  events.drain = true;
  SetLimit(to, now);
  return drain;
}

bool LimitLaw::IsInVain(const LawInput& input, Instant now) const {
  return static_cast<double>(input.late + input.lost) >
             kMostInVain * GoodOf(input) &&
         limit > 1 && now >= retreat_from;
}

// Most answers come too late or not at all.  If that is since so many are at
// work, fewer do as much, and in time.
LimitLaw::Mode LimitLaw::Retreat(const LawInput& input, Instant now,
                                 LawEvents& events) {
  const double throughput = Throughput(input, now);
  const double good = InTime(input, throughput);
  const double in_time = throughput * budget * kServiceShare;
  const double half = limit / 2;
  return StartDrain(
      {.limit = limit, .throughput = throughput, .good = good, .in_vain = true},
      input.lost > 0 ? half : std::min(half, in_time), now, events);
}

LimitLaw::Mode LimitLaw::Next(Drain drain, const LawInput& input, Instant now,
                              LawEvents& events) {
  const double missing =
      drain.throughput > 0 ? kMissing * drain.limit / drain.throughput : 0;
  if (IsSilent(now, std::max(kLongRound * budget, missing))) {
    SetLimit(std::max(drain.limit, kInitialLimit), now);
    return Search{};
  }
  switch (drain.phase) {
    case Drain::Phase::kEmpty:
      if (input.inflight > slots()) return drain;
      drain.phase = Drain::Phase::kSettle;
      OpenRound(now);
      return drain;
    case Drain::Phase::kSettle:
      // The first to come back are the short ones.
      if (input.completions + input.lost < round_size() || now < round_end()) {
        return drain;
      }
      drain.phase = Drain::Phase::kTake;
      OpenRound(now);
      return drain;
    case Drain::Phase::kTake:
      // Few answers in long are an answer, too.
      if (!(RoundIsOver(input, now) && IsBalanced(input, now)) &&
          (!drain.in_vain || ToSeconds(now - round_from) <
                                 std::max(kLongRound * budget, round_stay))) {
        return drain;
      }
      events.round = true;
      return EndDrain(drain, input, now);
  }
  return drain;
}

LimitLaw::Mode LimitLaw::EndDrain(const Drain& drain, const LawInput& input,
                                  Instant now) {
  const double throughput = Throughput(input, now);
  const double n = static_cast<double>(input.completions);
  if (drain.in_vain) {
    const double good = GoodOf(input) / ToSeconds(now - round_from);
    const bool better = good > kBetter * drain.good;
    if (!better && throughput < kKept * drain.throughput) {
      // Each takes as long by itself, and fewer do less.
      retreat_wait = std::clamp(2 * retreat_wait, kLongRound * budget,
                                kMostRetreatWait * budget);
      retreat_from = now + FromSeconds(retreat_wait);
      SetLimit(drain.limit, now);
      return Search{};
    }
    retreat_wait = 0;
    capacity = std::max(drain.throughput, throughput);
    capacity_trend = capacity_before = capacity;
  }
  // What held the places, by Little; where places were free, what was seen.
  const double mean = HeldBack(input, now) && n > 0
                          ? static_cast<double>(slots()) / throughput
                          : round_mean;
  if (mean > 0) {
    variation +=
        (Variation(SamplesOf(input)) - variation) * kDrainVariationGain;
    const double ratio = base_latency > 0 ? mean / base_latency : 0;
    distrust = ratio < kConfirmLow || ratio > kConfirmHigh;
    // Where less did less, it was not saturated: that is what one takes.
    const bool less = throughput < kLess * drain.throughput;
    proved = !distrust || less;
    base_latency = distrust || less ? mean : (base_latency + mean) / 2;
    if (less) distrust = false;
    calm_samples = kSamples * SampleFactor();
  }
  capacity_before = capacity_trend;
  until_drain = (distrust ? 1 : kDrainInterval) * Unit();
  asked_at = std::max(asked_at, now);
  if (drain.in_vain && IsInVain(input, now)) {
    // Better, and not yet good.
    Drain more{.limit = limit, .throughput = throughput, .in_vain = true};
    SetLimit(limit / 2, now);
    return more;
  }
  const double most = std::max(1., MostService());
  SetLimit(std::min(kUpGain * kHeadroom * capacity * base_latency, most), now);
  round_from = now + FromSeconds(base_latency);
  return Up{};
}

// --- Known

// Where nothing is refused that could be answered the workers' number is as
// good as a proof; but what is said may be wrong, so it is asked again, too.
LimitLaw::Mode LimitLaw::Next(Known known, const LawInput& input, Instant now,
                              LawEvents& events) {
  if (!RoundIsOver(input, now)) return known;
  events.round = true;
  const double throughput = Throughput(input, now);
  const bool held_back = HeldBack(input, now);
  if (held_back && capacity > 0) {
    capacity += (throughput - capacity) * kSmoothing;
  } else {
    capacity = std::max(capacity, throughput);
  }
  if (input.completions > 0) {
    // The average of .05 for each sample, over the round.
    const double n = static_cast<double>(input.completions);
    base_latency =
        base_latency > 0
            ? base_latency + (round_mean - base_latency) *
                                 std::min(1., n * .05 / (1 + n * .025))
            : round_mean;
    proved = true;
  }
  until_up -= static_cast<double>(input.completions);
  if (held_back && (until_up <= 0 || now - asked_at >= kAge)) {
    SetLimit(kUpGain * limit, now);
    return Up{};
  }
  OpenRound(now);
  return known;
}

// Back to what was known before it was asked whether more would help.
LimitLaw::Mode LimitLaw::Settled(Instant now) {
  const double known = KnownLimit(config.workers);
  if (config.workers > 0 && capacity * base_latency < kGrowth * known) {
    SetLimit(known, now);
    return Known{};
  }
  SetLimit(std::min(kHeadroom * capacity * base_latency,
                    std::max(1., MostService())),
           now);
  return Cruise{};
}

}  // namespace weir
