#include "weir/client/client_guard.h"

#include <algorithm>
#include <utility>

#include "../relaxed.h"

namespace weir {
namespace {

// Each stage has a draw of its own from the one that is given.
constexpr uint64_t kLevelSalt = 1;
constexpr uint64_t kThrottleSalt = 2;

uint64_t DrawFor(uint64_t draw, uint64_t salt) {
  return SplitMix64(draw + salt).Next();
}

void CountIn(std::atomic<uint64_t>& counter) { counter.fetch_add(1, kRelaxed); }

// Refused, unreached or too slow: what a layer above would only make worse by
// trying again.
bool IsOverload(AnswerKind kind) {
  return kind == AnswerKind::kRefused || kind == AnswerKind::kUnavailable ||
         kind == AnswerKind::kTimedOut;
}

}  // namespace

std::optional<Error> RetryRules::Check() const {
  if (max_retries < 0 || max_retries > 10) {
    return Error{"`retries.max` must lie between 0 and 10"};
  }
  return backoff.Check();
}

std::optional<Error> ClientPolicy::Check() const {
  if (auto error = throttle.Check()) return error;
  if (auto error = breaker.Check()) return error;
  if (auto error = level.Check()) return error;
  if (auto error = retries.Check()) return error;
  if (auto error = tokens.Check()) return error;
  if (auto error = deadline.Check()) return error;
  if (hedge_after < Duration{}) {
    return Error{"`hedge.after` must not be below 0s"};
  }
  return std::nullopt;
}

Result<std::unique_ptr<ClientGuard>> ClientGuard::Make(
    const ClientPolicy& policy, std::shared_ptr<RetryAllowance> allowance) {
  if (auto error = policy.Check()) return *std::move(error);
  if (allowance == nullptr) {
    allowance = std::make_shared<RetryAllowance>(RetryAllowance::Config());
  }
  return std::unique_ptr<ClientGuard>(
      new ClientGuard(policy, std::move(allowance)));
}

ClientGuard::ClientGuard(const ClientPolicy& policy,
                         std::shared_ptr<RetryAllowance> allowance)
    : policy_(policy),
      throttle_(policy.throttle),
      breaker_(policy.breaker),
      level_(policy.level),
      tokens_(policy.tokens),
      allowance_(std::move(allowance)) {}

Attempt ClientGuard::Begin(ClientCall& call, Instant now, uint64_t draw) {
  Attempt attempt;
  attempt.previous_attempts = call.attempts;
  const std::optional<Duration> budget =
      policy_.deadline.Budget(call.deadline, now);
  attempt.dropped = call.cancelled.stop_requested() ? DropReason::kCancelled
                    : !budget                       ? DropReason::kDeadline
                              : Judge(call, attempt.pass, now, draw);
  if (attempt.dropped != DropReason::kNone) {
    CountIn(dropped_[static_cast<size_t>(attempt.dropped)]);
    return attempt;
  }
  attempt.send = attempt.open = true;
  attempt.budget = *budget;
  attempt.sent_at = now;
  ++call.attempts;
  ++call.open;
  CountIn(sent_);
  return attempt;
}

DropReason ClientGuard::Judge(const ClientCall& call,
                              CircuitBreaker::Pass& pass, Instant now,
                              uint64_t draw) {
  pass = breaker_.Admit(now);
  if (pass.probe()) return DropReason::kNone;
  if (!pass.allowed && Drops(policy_.breaker.mode, DropReason::kBreaker)) {
    return DropReason::kBreaker;
  }
  if (!level_.Admit(call.criticality, now, DrawFor(draw, kLevelSalt)) &&
      Drops(policy_.level.mode, DropReason::kLevel)) {
    return DropReason::kLevel;
  }
  if (throttle_.Admit(call.criticality, now, DrawFor(draw, kThrottleSalt)) ==
          AdaptiveThrottle::Verdict::kRefuse &&
      Drops(policy_.throttle.mode, DropReason::kThrottle)) {
    return DropReason::kThrottle;
  }
  return DropReason::kNone;
}

bool ClientGuard::Drops(StageMode mode, DropReason reason) {
  if (mode == StageMode::kEnforce) return true;
  CountIn(would_drop_[static_cast<size_t>(reason)]);
  return false;
}

Next ClientGuard::End(ClientCall& call, Attempt& attempt, const Answer& answer,
                      Instant now, uint64_t draw) {
  if (!std::exchange(attempt.open, false)) return {.step = Next::Step::kWait};
  --call.open;
  Learn(call, attempt, answer, now);
  if (answer.kind == AnswerKind::kOk) {
    call.answered = true;
    return {.step = Next::Step::kDone};
  }
  // What comes after an answer changes nothing.
  if (call.answered) return {.step = Next::Step::kWait};
  return Fail(call, answer, now, draw);
}

void ClientGuard::Learn(const ClientCall& call, const Attempt& attempt,
                        const Answer& answer, Instant now) {
  if (answer.level) {
    level_.Learn(*answer.level, now);
  } else if (answer.kind == AnswerKind::kOk ||
             answer.kind == AnswerKind::kError) {
    level_.OnTaken(call.criticality, attempt.sent_at);
  }
  using Result = CircuitBreaker::Result;
  Result result = Result::kNothing;
  switch (answer.kind) {
    case AnswerKind::kOk:
      result = Result::kGood;
      tokens_.OnSuccess();
      throttle_.Learn(call.criticality, true, now);
      break;
    case AnswerKind::kError:
      result = Result::kBad;
      throttle_.Learn(call.criticality, true, now);
      break;
    case AnswerKind::kUnavailable:
    case AnswerKind::kTimedOut:
      if (answer.unreached) {
        // Nobody refused it: the breaker's business alone.
        result = Result::kUnreached;
        break;
      }
      if (!answer.by_weir) result = Result::kBad;
      throttle_.Learn(call.criticality, false, now);
      break;
    case AnswerKind::kRefused:
      throttle_.Learn(call.criticality, false, now);
      break;
    case AnswerKind::kCancelled:
      break;
  }
  breaker_.Finish(attempt.pass, result, now - attempt.sent_at, now);
}

bool ClientGuard::IsRetriable(const ClientCall& call,
                              const Answer& answer) const {
  const RetryRules& rules = policy_.retries;
  switch (answer.kind) {
    case AnswerKind::kUnavailable:
      return rules.on_unavailable;
    case AnswerKind::kRefused:
      // weir says nothing of when rather than a moment that is too soon.
      return rules.on_refused &&
             (rules.untold || answer.retry_after || answer.by_weir);
    case AnswerKind::kTimedOut:
      return rules.on_timed_out && call.repeatable;
    case AnswerKind::kError:
      return rules.on_error && call.repeatable;
    case AnswerKind::kOk:
    case AnswerKind::kCancelled:
      return false;
  }
  return false;
}

Next ClientGuard::Fail(ClientCall& call, const Answer& answer, Instant now,
                       uint64_t draw) {
  const bool retriable = IsRetriable(call, answer);
  // A refusal takes a token even when it is final: it says the same.
  const bool failed =
      !answer.unreached && (retriable || answer.kind == AnswerKind::kRefused);
  const bool may = failed ? tokens_.OnFailure(now) : tokens_.allows(now);
  if (call.open > 0) return {.step = Next::Step::kWait};
  Next next{.step = Next::Step::kGiveUp,
            .never_retry_above = IsOverload(answer.kind)};
  next.why =
      answer.kind == AnswerKind::kCancelled || call.cancelled.stop_requested()
          ? Next::Why::kCancelled
      : answer.never_retry ? Next::Why::kTold
      : !retriable         ? Next::Why::kNotRetriable
                           : Retry(call, answer, may, now, draw, next.at);
  if (next.why == Next::Why::kNone) {
    next.step = Next::Step::kRetry;
    next.never_retry_above = false;
    CountIn(retries_);
  } else {
    CountIn(gave_up_[static_cast<size_t>(next.why)]);
  }
  return next;
}

// Decides a retry; cheap and certain reasons first, so that none spends what
// another then refuses.
Next::Why ClientGuard::Retry(ClientCall& call, const Answer& answer, bool may,
                             Instant now, uint64_t draw, Instant& at) {
  const RetryRules& rules = policy_.retries;
  if (call.retries >= rules.max_retries) return Next::Why::kAttempts;
  const Duration wait = answer.retry_after
                            ? rules.backoff.WaitFor(*answer.retry_after, draw)
                            : rules.backoff.Wait(call.backoff_step, draw);
  at = now + wait;
  if (!policy_.deadline.Budget(call.deadline, at)) return Next::Why::kDeadline;
  // What was never sent has spent nothing, and costs nothing to try again.
  if (!answer.unreached && (!may || !allowance_->Spend(now))) {
    return Next::Why::kBudget;
  }
  ++call.retries;
  call.backoff_step = answer.retry_after ? 0 : call.backoff_step + 1;
  return Next::Why::kNone;
}

bool ClientGuard::MayHedge(const ClientCall& call, Instant now) {
  if (policy_.hedge_after == Duration{} || !call.repeatable || call.answered ||
      call.open != 1 || call.attempts != 1 || call.cancelled.stop_requested()) {
    return false;
  }
  if (level_.active(now) || throttle_.RefusalRatio(call.criticality, now) > 0 ||
      breaker_.state(now) != CircuitBreaker::State::kClosed) {
    return false;
  }
  if (!tokens_.allows(now) || !allowance_->Spend(now)) return false;
  tokens_.SpendForHedge(now);
  CountIn(hedges_);
  return true;
}

ClientCounts ClientGuard::counts() const {
  ClientCounts counts;
  counts.sent = sent_.load(kRelaxed);
  counts.retries = retries_.load(kRelaxed);
  counts.hedges = hedges_.load(kRelaxed);
  const auto copy = [](const auto& from, auto& to) {
    std::transform(from.begin(), from.end(), to.begin(),
                   [](const auto& counter) { return counter.load(kRelaxed); });
  };
  copy(dropped_, counts.dropped);
  copy(would_drop_, counts.would_drop);
  copy(gave_up_, counts.gave_up);
  return counts;
}

std::string_view Name(DropReason reason) {
  constexpr std::array<std::string_view, kDropReasons> kNames = {
      "none", "cancelled", "deadline", "breaker", "level", "throttle"};
  return kNames[static_cast<size_t>(reason)];
}

std::string_view Name(Next::Why why) {
  constexpr std::array<std::string_view, kGiveUps> kNames = {
      "none",   "not_retriable", "told",     "attempts",
      "budget", "deadline",      "cancelled"};
  return kNames[static_cast<size_t>(why)];
}

}  // namespace weir
