// Guard: what it measures, and how that reaches the law.

#include <algorithm>
#include <cmath>

#include "relaxed.h"
#include "weir/capacity_look.h"
#include "weir/guard.h"

namespace weir {
namespace {

// Demand is brought up to date after so many arrivals or so much time.
// Source: docs/algorithms/law.md, "Queue".
constexpr int64_t kDemandArrivals = 32;
constexpr Duration kDemandInterval = std::chrono::milliseconds(5);
// Nothing is worth a step more often, however many requests come.  Chosen: a
// quarter of the finest timer that waits for its result (ticks, 1 ms and up).
// Measured: with two cores at one region a step costs some us, since it moves
// a dozen lines between them; at 50 us that was a fifth of all the work.
constexpr Duration kLeastStep = std::chrono::microseconds(250);
// Calm samples are handed over in batches.  Chosen: as many as make the cost
// of a step small against theirs.
constexpr int64_t kCalmBatch = 32;
// How long the other workers' inflight is believed.  Chosen: at most a tenth
// of the shortest service time that is worth a limit.
constexpr Duration kElsewhereAge = std::chrono::microseconds(10);
// And at least so long for each worker that is asked.  Chosen: what reading a
// shard costs that another core has just written is a tenth of it, so however
// many workers there are a tenth of one's time at most goes into looking.
constexpr Duration kShardRead = std::chrono::microseconds(1);
// Smoothing of inflight at admission.  Source: law.md.
constexpr double kInflightGain = .01;
constexpr double kMostDeviation = 100;
// Above it, a bound means "none": see LimitLaw::waiting_bound().
constexpr int64_t kUnbounded = 1'000'000'000'000'000;

// Push-back of what comes back neither by time nor by room.  Chosen.
constexpr double kLongestRetry = 30;  // s

int64_t Take(Shared<int64_t>& number) {
  // Reading first spares the line of workers that have added nothing.
  return number.load(kRelaxed) == 0 ? 0 : number.exchange(0, kRelaxed);
}

void Give(Shared<int64_t>& to, int64_t& from) {
  if (from != 0) to.fetch_add(from, kRelaxed);
  from = 0;
}

}  // namespace

void Guard::Count(ClassCounter counter, Criticality criticality) {
  Increment(shard_.by_class[static_cast<size_t>(counter)][Index(criticality)]);
}

void Guard::Count(Counter counter) {
  Increment(shard_.counters[static_cast<size_t>(counter)]);
}

void Guard::PublishQueue() {
  for (size_t c = 0; c < kCriticalities; ++c) {
    const auto size =
        static_cast<int32_t>(queue_.size(static_cast<Criticality>(c)));
    const int32_t before = shard_.waiting[c].load(kRelaxed);
    if (before == size) continue;
    region_.queued[c].Add(static_cast<size_t>(shard_index_), size - before);
    shard_.waiting[c].store(size, kRelaxed);
  }
  if (has_kinds_) {
    for (size_t c = 0; c < kCriticalities; ++c) {
      if (shard_.waiting_rows[c].load(kRelaxed) != queue_.rows(c)) {
        shard_.waiting_rows[c].store(queue_.rows(c), kRelaxed);
      }
    }
  }
  if (const Waiter* const first = queue_.NextToRun(/*overloaded=*/false)) {
    const int64_t came = first->request_.arrived.time_since_epoch().count();
    if (shard_.oldest_ns.load(kRelaxed) != came) {
      shard_.oldest_ns.store(came, kRelaxed);
    }
  }
  const Waiter* const last = queue_.NextToLeave();
  const uint8_t rank = last != nullptr ? last->rank_ : 0;
  if (shard_.worst_rank.load(kRelaxed) != rank) {
    shard_.worst_rank.store(rank, kRelaxed);
  }
}

Guard::Totals Guard::SumShards() const {
  Totals totals;
  totals.held = region_.places.sum();
  for (size_t c = 0; c < kCriticalities; ++c) {
    totals.waiting[c] = region_.queued[c].sum();
  }
  if (yielded_in_vain_ && StandingOf(*yielding_shard_) == yielding_to_) {
    for (size_t c = 0; c < kCriticalities; ++c) {
      totals.waiting[c] -= std::min<int64_t>(
          totals.waiting[c], yielding_shard_->waiting[c].load(kRelaxed));
    }
  }
  for (const int64_t waiting : totals.waiting) {
    totals.queued += waiting;
  }
  return totals;
}

int64_t Guard::InflightOfAll(Instant now) {
  if (IsAlone()) return inflight_;
  if (now >= elsewhere_until_) {
    elsewhere_until_ = now + std::max(kElsewhereAge, Members() * kShardRead);
    elsewhere_ = -inflight_;
    region_.ForEachClaimed([&](size_t, const Region::Shard& shard) {
      elsewhere_ += shard.inflight.load(kRelaxed);
    });
  }
  return inflight_ + elsewhere_;
}

int64_t Guard::WaitingBound() const {
  return region_.published.waiting_bound.load(kRelaxed);
}

bool Guard::IsOverloaded() const {
  return region_.flags.overloaded.load(kRelaxed) != 0;
}

Duration Guard::RetryAfter(Reason reason, int64_t queued) const {
  if (reason != Reason::kDeadline && reason != Reason::kLevel &&
      reason != Reason::kLimit) {
    return Duration(0);
  }
  const Region::Published& law = region_.published;
  return RetryAfterFor(queued, law.capacity.load(kRelaxed),
                       law.demand.load(kRelaxed));
}

Duration Guard::PauseLeft(const Request& request, Instant now) const {
  const Region::Resource& row = region_.resources[rows_[request.resource]];
  const Switch set = Switch::Unpack(row.by_hand.load(kRelaxed));
  const bool ends = row.paused.load(kRelaxed) == 0 && set.until != kNever;
  return ends ? set.until - now : FromSeconds(kLongestRetry);
}

void Guard::CountArrival(const Request& request, Instant now) {
  ++arrivals_;
  if (request.attempt > 0) ++retries_;
  if (request.deadline != kNever) {
    ++budgets_;
    budget_us_ += (request.deadline - request.arrived).count() / 1000;
  }
  const Duration since = now - last_step_;
  if ((arrivals_ >= kDemandArrivals && since >= LeastStep()) ||
      since >= kDemandInterval) {
    StepLaw(now);
  }
}

Duration Guard::LeastStep() const {
  return std::max(kLeastStep, Members() * 4 * kShardRead);
}

void Guard::CountEarlyArrival(const Request& request, Instant now) {
  ++early_arrivals_;
  if (request.attempt > 0) ++retries_;
  if (now - last_step_ >= kDemandInterval) StepLaw(now);
}

void Guard::MarkUnbound() {
  const uint64_t round = region_.published.round.load(kRelaxed);
  auto& unbound = region_.flags.unbound_round;
  if (unbound.load(kRelaxed) != round) unbound.store(round, kRelaxed);
}

void Guard::OpenShardRound(uint64_t round) {
  if (shard_.round.load(kRelaxed) == round) return;
  shard_.completions.store(0, kRelaxed);
  shard_.late.store(0, kRelaxed);
  shard_.lost.store(0, kRelaxed);
  shard_.latency_sum.store(0, kRelaxed);
  shard_.latency_sq_sum.store(0, kRelaxed);
  shard_.round.store(round, std::memory_order_release);
}

void Guard::Sample(const Permit::Data& permit, Instant now) {
  // No sample is zero or less, whatever the clock did.
  const Duration took = std::max(now - permit.admitted_at, Duration(1));
  const double latency = ToSeconds(took);
  usual_latency_[permit.row].Add(latency);
  stay_.Add(latency);
  answered_at_ = now;

  const Region::Published& law = region_.published;
  const uint64_t round = law.round.load(std::memory_order_acquire);
  const auto mode = static_cast<LawMode>(law.mode.load(kRelaxed));
  OpenShardRound(round);
  int64_t completions = shard_.completions.load(kRelaxed);
  if (now >= Instant{Duration(law.round_from_ns.load(kRelaxed))}) {
    shard_.completions.store(++completions, kRelaxed);
    if (now > permit.deadline) {
      shard_.late.store(shard_.late.load(kRelaxed) + 1, kRelaxed);
    }
    shard_.latency_sum.store(shard_.latency_sum.load(kRelaxed) + latency,
                             kRelaxed);
    shard_.latency_sq_sum.store(
        shard_.latency_sq_sum.load(kRelaxed) + latency * latency, kRelaxed);
  }
  if (mode != LawMode::kDrain && mode != LawMode::kKnown &&
      region_.flags.unbound_round.load(kRelaxed) == round) {
    SampleCalm(permit, took, latency);
  }
  usual_inflight_ += (permit.inflight_before - usual_inflight_) * kInflightGain;
  StepAfterAnswer(completions + shard_.lost.load(kRelaxed), now);
}

// An answer that was cut off says that it would have taken at least so long,
// and nothing of the throughput: the service may still be working for it.
void Guard::SampleLost(const Permit::Data& permit, Instant now) {
  const double latency =
      ToSeconds(std::max(now - permit.admitted_at, Duration(1)));
  usual_latency_[permit.row].AddAtLeast(latency);
  stay_.AddAtLeast(latency);
  OpenShardRound(region_.published.round.load(std::memory_order_acquire));
  const int64_t lost = shard_.lost.load(kRelaxed) + 1;
  shard_.lost.store(lost, kRelaxed);
  StepAfterAnswer(lost + shard_.completions.load(kRelaxed), now);
}

void Guard::StepAfterAnswer(int64_t answers, Instant now) {
  const Region::Published& law = region_.published;
  const Instant end{Duration(law.round_end_ns.load(kRelaxed))};
  // Others may have finished as many.  Asking for all of them each time would
  // cost more than the answer is worth.
  const bool may_close = answers * Members() >= law.round_size.load(kRelaxed);
  if ((may_close && now >= end &&
       (IsAlone() || now - last_step_ >= LeastStep())) ||
      (calm_ >= kCalmBatch && now - last_step_ >= LeastStep()) ||
      static_cast<LawMode>(law.mode.load(kRelaxed)) == LawMode::kDrain) {
    StepLaw(now);
  }
}

void Guard::SampleCalm(const Permit::Data& permit, Duration took,
                       double latency) {
  const Region::Published& law = region_.published;
  const double base = law.base_latency.load(kRelaxed);
  const double natural = law.capacity.load(kRelaxed) * base;
  if (base <= 0 || permit.inflight_before >
                       std::max(1., std::min(usual_inflight_, natural))) {
    return;
  }
  const double off = latency / base - 1;
  ++calm_;
  calm_ns_ += took.count();
  calm_deviation_ppm_ +=
      static_cast<int64_t>(std::min(kMostDeviation, off * off) * 1e6);
}

void Guard::FlushPending() {
  Region::Pending& pending = region_.pending;
  Give(pending.arrivals, arrivals_);
  Give(pending.retries, retries_);
  Give(pending.refused, refused_);
  Give(pending.early_arrivals, early_arrivals_);
  Give(pending.budgets, budgets_);
  Give(pending.budget_us, budget_us_);
  Give(pending.calm, calm_);
  Give(pending.calm_ns, calm_ns_);
  Give(pending.calm_deviation_ppm, calm_deviation_ppm_);
}

LawInput Guard::GatherInput(const LimitLaw& law) const {
  LawInput input;
  for (const Ledger& queued : region_.queued) input.queued += queued.sum();
  input.inflight = region_.places.sum();
  region_.ForEachClaimed([&](size_t, const Region::Shard& shard) {
    if (shard.round.load(std::memory_order_acquire) != law.round) return;
    input.completions += shard.completions.load(kRelaxed);
    input.late += shard.late.load(kRelaxed);
    input.lost += shard.lost.load(kRelaxed);
    input.latency_sum += shard.latency_sum.load(kRelaxed);
    input.latency_sq_sum += shard.latency_sq_sum.load(kRelaxed);
  });
  input.bound = region_.flags.unbound_round.load(kRelaxed) != law.round;
  Region::Pending& pending = region_.pending;
  input.arrivals = Take(pending.arrivals);
  input.refused = Take(pending.refused);
  input.budgets = Take(pending.budgets);
  input.budget_sum = static_cast<double>(Take(pending.budget_us)) * 1e-6;
  input.calm = Take(pending.calm);
  input.calm_sum = static_cast<double>(Take(pending.calm_ns)) * 1e-9;
  input.calm_deviation_sum =
      static_cast<double>(Take(pending.calm_deviation_ppm)) * 1e-6;
  return input;
}

// For the holder of the turn.
void Guard::StepRetries(int64_t arrivals, Instant now) {
  RetryShare& retries = region_.law.retries;
  Region::Pending& pending = region_.pending;
  retries.Add(arrivals + Take(pending.early_arrivals), Take(pending.retries),
              now);
  region_.flags.retry_ratio.store(retries.share(), kRelaxed);
  const bool before = region_.flags.retries_abound.load(kRelaxed) != 0;
  if (before != retries.abound()) {
    region_.flags.retries_abound.store(retries.abound(), kRelaxed);
  }
}

// Who only knows Retry-After gets the longest.
void Guard::AdviseIfRetriesAbound(const Request& request, Decision& decision) {
  // Who is too late cannot try again in any case.
  if (region_.flags.retries_abound.load(kRelaxed) == 0 ||
      now_ >= request.deadline) {
    return;
  }
  decision.never_retry = true;
  decision.retry_after =
      std::max(decision.retry_after, FromSeconds(kLongestRetry));
  Count(ClassCounter::never_retry_total, request.criticality);
}

// Steps the law with what all workers have seen, unless another worker is at
// it.  The new state is written beside the old one and becomes the active copy
// in one store, so dying in here leaves a whole law behind.
void Guard::StepLaw(Instant now, bool queue_formed, bool queue_empty) {
  last_step_ = now;
  FlushPending();
  int32_t nobody = 0;
  if (!region_.law.turn.compare_exchange_strong(
          nobody, shard_index_ + 1, std::memory_order_acquire, kRelaxed)) {
    return;
  }
  const uint32_t active = region_.law.active.load(kRelaxed);
  LimitLaw law = region_.law.copies[active];
  if (configure_law_) {
    configure_law_ = false;
    const LimitConfig config{.workers = policy_->workers,
                             .floor = policy_->limit_floor,
                             .ceiling = policy_->limit_ceiling};
    if (law.config != config) law.Configure(config, now);
  }
  LawInput input = GatherInput(law);
  input.queue_formed = queue_formed;
  input.queue_empty = queue_empty;
  StepRetries(input.arrivals, now);
  const int64_t slots_before = law.slots();
  const LawEvents events = law.Step(input, now);
  region_.law.copies[1 - active] = law;
  region_.law.active.store(1 - active, std::memory_order_release);
  region_.Publish(law, now);
  const uint8_t overloaded = law.demand.overloaded ? 1 : 0;
  if (region_.flags.overloaded.load(kRelaxed) != overloaded) {
    region_.flags.overloaded.store(overloaded, kRelaxed);
  }
  if (has_ladders_) StepLadders(law, now);
  region_.law.turn.store(0, std::memory_order_release);

  if (law.slots() < slots_before) SetTight(true);
  if (events.round) Count(Counter::rounds_total);
  if (events.growth) Count(Counter::growths_total);
  if (events.drain) Count(Counter::drains_total);
  if (events.rebase) Count(Counter::rebases_total);
}

}  // namespace weir
