#include "weir/client/circuit_breaker.h"

#include <algorithm>

#include "../relaxed.h"

namespace weir {
namespace {

constexpr int64_t kProbeDone = INT64_MAX;

int64_t NanosecondsAt(Instant now) { return now.time_since_epoch().count(); }

}  // namespace

std::optional<Error> CircuitBreaker::Config::Check() const {
  using std::chrono::hours, std::chrono::milliseconds;
  if (!(failure_ratio > 0 && failure_ratio <= 1)) {
    return Error{"`breaker.failure_ratio` must be above 0 and at most 1"};
  }
  if (window < milliseconds(100) || window > hours(1)) {
    return Error{"`breaker.window` must lie between 100ms and 1h"};
  }
  if (least_calls < 1) return Error{"`breaker.least_calls` must be above 0"};
  if (unreached < 1) return Error{"`breaker.unreached` must be above 0"};
  if (slow_call < Duration{}) {
    return Error{"`breaker.slow_call` must not be below 0s"};
  }
  if (open_for <= Duration{} || open_for_ceiling < open_for) {
    return Error{
        "0s < `breaker.open_for` <= `breaker.open_for_ceiling` must hold"};
  }
  if (probes < 1 || probes > kMaxProbes) {
    return Error{"`breaker.probes` must lie between 1 and 16"};
  }
  if (probe_lease <= Duration{}) {
    return Error{"`breaker.probe_lease` must be above 0s"};
  }
  return std::nullopt;
}

CircuitBreaker::CircuitBreaker(const Config& config)
    : config_(config), counts_(config.window) {}

// Rounded up to the millisecond.
CircuitBreaker::Word CircuitBreaker::MakeWord(uint32_t epoch, Instant until) {
  const int64_t ms = (NanosecondsAt(until) + 999'999) / 1'000'000;
  constexpr uint32_t kMask = (uint32_t{1} << Word::kEpochBits) - 1;
  return {static_cast<uint64_t>(ms) << Word::kEpochBits | (epoch & kMask)};
}

CircuitBreaker::Pass CircuitBreaker::Admit(Instant now) {
  if (config_.mode == StageMode::kOff) return {.allowed = true};
  const Word word = Load();
  Pass pass{.epoch = word.epoch()};
  pass.allowed = word.closed();
  if (pass.allowed || now < word.until()) return pass;
  const int64_t at = NanosecondsAt(now);
  const int64_t until = at + config_.probe_lease.count();
  for (int32_t i = 0; i < config_.probes; ++i) {
    auto& lease = leases_[static_cast<size_t>(i)];
    int64_t seen = lease.load(kRelaxed);
    if (seen <= at && lease.compare_exchange_strong(seen, until, kRelaxed)) {
      pass.allowed = true;
      pass.place = static_cast<int8_t>(i);
      pass.lease_until_ns = until;
      return pass;
    }
  }
  return pass;
}

void CircuitBreaker::Finish(const Pass& pass, Result result, Duration took,
                            Instant now) {
  if (config_.mode == StageMode::kOff || !pass.allowed) return;
  const Word word = Load();
  if (pass.epoch != word.epoch()) return;
  if (result == Result::kNothing) {
    if (pass.probe()) {
      int64_t held = pass.lease_until_ns;
      auto& lease = leases_[static_cast<size_t>(pass.place)];
      lease.compare_exchange_strong(held, 0, kRelaxed);
    }
    return;
  }
  const bool slow = config_.slow_call > Duration{} && took > config_.slow_call;
  const bool good = result == Result::kGood && !slow;
  if (pass.probe()) {
    FinishProbe(word, pass, good, now);
    return;
  }
  if (result != Result::kUnreached) {
    // Nothing is written while all goes well.
    if (unreached_.load(kRelaxed) != 0) unreached_.store(0, kRelaxed);
  } else if (unreached_.fetch_add(1, kRelaxed) + 1 >= config_.unreached) {
    Open(word, now);
    return;
  }
  if (good) {
    counts_.AddGood(now);
    return;
  }
  counts_.AddBad(now);
  const RollingCounts::Sums sums = counts_.Sum(now);
  if (sums.all() >= config_.least_calls &&
      static_cast<double>(sums.bad) >=
          config_.failure_ratio * static_cast<double>(sums.all())) {
    Open(word, now);
  }
}

void CircuitBreaker::FinishProbe(Word word, const Pass& pass, bool good,
                                 Instant now) {
  int64_t held = pass.lease_until_ns;
  auto& lease = leases_[static_cast<size_t>(pass.place)];
  // Too late: the place has been given to another.
  if (!lease.compare_exchange_strong(held, good ? kProbeDone : 0, kRelaxed)) {
    return;
  }
  if (!good) {
    Open(word, now);
  } else if (good_probes_.fetch_add(1, kRelaxed) + 1 == config_.probes) {
    Close(word, now);
  }
}

// From closed or half-open.
void CircuitBreaker::Open(Word word, Instant now) {
  const int64_t first = config_.open_for.count();
  const int64_t ceiling = config_.open_for_ceiling.count();
  const int64_t last = open_for_.load(kRelaxed);
  const bool again =
      !word.closed() ||
      NanosecondsAt(now) - closed_at_.load(kRelaxed) <= ceiling + first;
  const int64_t open_for =
      again && last > 0 ? std::min(2 * last, ceiling) : first;
  const Word opened = MakeWord(word.epoch() + (word.closed() ? 1 : 2),
                               now + Duration(open_for));
  if (!word_.compare_exchange_strong(word.bits, opened.bits,
                                     std::memory_order_acq_rel)) {
    return;
  }
  open_for_.store(open_for, kRelaxed);
  good_probes_.store(0, kRelaxed);
  unreached_.store(0, kRelaxed);
  for (auto& lease : leases_) lease.store(0, kRelaxed);
}

void CircuitBreaker::Close(Word word, Instant now) {
  counts_.Clear(now);
  closed_at_.store(NanosecondsAt(now), kRelaxed);
  const Word closed = MakeWord(word.epoch() + 1, Instant{});
  word_.compare_exchange_strong(word.bits, closed.bits,
                                std::memory_order_acq_rel);
}

CircuitBreaker::State CircuitBreaker::state(Instant now) const {
  const Word word = Load();
  return word.closed()        ? State::kClosed
         : now < word.until() ? State::kOpen
                              : State::kHalfOpen;
}

Instant CircuitBreaker::opens_until() const { return Load().until(); }

}  // namespace weir
