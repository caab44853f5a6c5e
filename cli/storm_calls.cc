#include "storm_calls.h"

#include <algorithm>
#include <cmath>

#include "weir/scenario/service_time.h"

namespace weir::cli {
namespace {

using scenario::Ending;
using scenario::Retries;

// Retries that a budget allows at once, when it has rested.
// Source: gRPC's retry throttling (gRFC A6), where maxTokens is typically 10.
constexpr double kBudgetBurst = 10;

// Which retry of its own layer attempt `number` (from 1) is, from 0: the
// innermost layer counts first, as the lowest digit.
int RetryOfLayer(uint32_t number, int32_t count) {
  const uint32_t base = static_cast<uint32_t>(count) + 1;
  while (number % base == 0) number /= base;
  return static_cast<int>(number % base) - 1;
}

}  // namespace

StormCalls::StormCalls(const scenario::Scenario& scenario, uint64_t seed)
    : scenario_(scenario),
      arrivals_(scenario, seed),
      random_(seed, scenario::kRetries),
      tally_(scenario, seed),
      arrival_(arrivals_.Next()),
      most_attempts_(1),
      budget_(kBudgetBurst) {
  for (int32_t i = 0; i < scenario.retries.layers; ++i) {
    most_attempts_ *= static_cast<uint64_t>(scenario.retries.count) + 1;
  }
}

std::optional<Duration> StormCalls::next() const {
  std::optional<Duration> at;
  if (arrival_) at = arrival_->at;
  if (!delayed_.empty() && (!at || delayed_.top().at < *at)) {
    at = delayed_.top().at;
  }
  return at;
}

std::optional<StormAttempt> StormCalls::Take(Duration now) {
  while (!delayed_.empty() && delayed_.top().at <= now &&
         (!arrival_ || delayed_.top().at <= arrival_->at)) {
    const Delayed due = delayed_.top();
    delayed_.pop();
    Call& call = calls_[due.call];
    --call.planned;
    if (call.finished) {  // A hedge that is not needed any more.
      FreeIfIdle(due.call);
      continue;
    }
    return StartAttempt(due.call, due.at);
  }
  if (!arrival_ || arrival_->at > now) return std::nullopt;

  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(calls_.size()));
    calls_.emplace_back();
  }
  const uint32_t call = free_.back();
  free_.pop_back();
  calls_[call] = {.arrival = *arrival_};
  arrival_ = arrivals_.Next();
  ++live_;
  ++counts_.offered;
  budget_ = std::min(budget_ + scenario_.retries.budget_ratio, kBudgetBurst);
  const Duration at = calls_[call].arrival.at;
  if (scenario_.hedging.after > Duration{}) {
    Plan(call, at + scenario_.hedging.after, true);
  }
  return StartAttempt(call, at);
}

void StormCalls::Plan(uint32_t call, Duration at, bool hedge) {
  ++calls_[call].planned;
  delayed_.push({.at = at, .order = order_++, .call = call, .hedge = hedge});
}

StormAttempt StormCalls::StartAttempt(uint32_t call, Duration intended) {
  Call& c = calls_[call];
  ++c.inflight;
  return {.arrival = c.arrival,
          .intended = intended,
          .number = scenario::AttemptNumber(c.arrival.number, c.attempts++),
          .call = call};
}

void StormCalls::End(const StormAttempt& attempt, Duration now,
                     StormOutcome outcome, Duration work,
                     Duration retry_after) {
  Call& call = calls_[attempt.call];
  --call.inflight;
  if (call.finished) return FreeIfIdle(attempt.call);

  const Duration deadline = scenario_.classes[attempt.arrival.cls].deadline;
  if (outcome == StormOutcome::kAnswered) {
    const bool good = now - attempt.intended <= deadline;
    return Finish(attempt.call, now, good ? Ending::kGood : Ending::kLate,
                  work);
  }
  if (call.inflight > 0) return;  // The other one may still make it.
  if (const auto delay = RetryDelay(call, outcome, now, retry_after)) {
    return Plan(attempt.call, now + *delay, false);
  }
  switch (outcome) {
    case StormOutcome::kShed:
      return Finish(attempt.call, now, Ending::kShed, work);
    case StormOutcome::kGivenUp:
      return Finish(attempt.call, now, Ending::kLate, work);
    default:
      return Finish(attempt.call, now, Ending::kFailed, work);
  }
}

// How long to wait before the next attempt; nothing: there is none.
std::optional<Duration> StormCalls::RetryDelay(const Call& call,
                                               StormOutcome outcome,
                                               Duration now,
                                               Duration retry_after) {
  const Retries& retries = scenario_.retries;
  const bool wanted = outcome == StormOutcome::kShed      ? retries.on_shed
                      : outcome == StormOutcome::kGivenUp ? retries.on_timeout
                                                          : retries.on_error;
  if (!wanted || call.attempts >= most_attempts_) return std::nullopt;

  const int retry = RetryOfLayer(call.attempts, retries.count);
  const double backoff =
      std::min(ToSeconds(retries.backoff) * std::pow(retries.factor, retry),
               ToSeconds(retries.ceiling));
  Duration delay =
      FromSeconds(backoff * (1 - retries.jitter * random_.Uniform()));
  // The same clients in every run, and in no order of their weight.
  const double rank =
      static_cast<double>(scenario::Mix(call.arrival.client)) * 0x1p-64;
  if (rank < scenario_.clients.cooperative_ratio) {
    delay = std::max(delay, retry_after);
  }
  if (scenario_.patience &&
      now + delay - call.arrival.at > *scenario_.patience) {
    return std::nullopt;
  }
  if (retries.budget_ratio > 0) {
    if (budget_ < 1) return std::nullopt;
    budget_ -= 1;
  }
  return delay;
}

void StormCalls::Finish(uint32_t index, Duration now, Ending ending,
                        Duration work) {
  Call& call = calls_[index];
  call.finished = true;
  --live_;
  switch (ending) {
    case Ending::kGood:
      ++counts_.good;
      break;
    case Ending::kLate:
      ++counts_.late;
      break;
    case Ending::kShed:
      ++counts_.shed;
      break;
    case Ending::kFailed:
      ++counts_.failed;
      break;
  }
  tally_.Add({.at = call.arrival.at,
              .end = now,
              .phase = call.arrival.phase,
              .cls = call.arrival.cls,
              .ending = ending,
              .attempts = call.attempts,
              .work = work});
  FreeIfIdle(index);
}

void StormCalls::FreeIfIdle(uint32_t index) {
  const Call& call = calls_[index];
  if (call.finished && call.inflight == 0 && call.planned == 0) {
    free_.push_back(index);
  }
}

}  // namespace weir::cli
