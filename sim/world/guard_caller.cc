#include "guard_caller.h"

#include <algorithm>
#include <utility>

namespace weir::sim {
namespace {

AnswerKind KindOf(const Visit& visit, Instant now) {
  switch (visit.reply) {
    case Reply::kOk:
      return now <= visit.request.deadline ? AnswerKind::kOk
                                           : AnswerKind::kTimedOut;
    case Reply::kShed:
      return AnswerKind::kRefused;
    case Reply::kError:
      return AnswerKind::kUnavailable;
    case Reply::kCancelled:
      return AnswerKind::kTimedOut;
  }
  return AnswerKind::kOk;
}

}  // namespace

GuardCaller::GuardCaller(const scenario::CallerRules& rules,
                         std::shared_ptr<RetryAllowance> allowance,
                         uint64_t seed)
    : guard_(std::move(
          ClientGuard::Make(rules.policy, std::move(allowance)).value())),
      draws_(seed) {}

bool GuardCaller::Begin(ClientCall& call, Visit& visit, Duration budget,
                        Instant now) {
  visit.ticket = guard_->Begin(call, now, draws_.Next());
  visit.request.deadline =
      std::min(now + std::min(budget, visit.ticket.budget), call.deadline);
  return visit.ticket.send;
}

Next GuardCaller::End(ClientCall& call, Visit& visit, Instant now) {
  Answer answer{.kind = KindOf(visit, now),
                .never_retry = visit.never_retry,
                .level = visit.level};
  if (visit.retry_after > Duration{}) answer.retry_after = visit.retry_after;
  return guard_->End(call, visit.ticket, answer, now, draws_.Next());
}

Next GuardCaller::TimeOut(ClientCall& call, Visit& visit, Instant now) {
  return guard_->End(call, visit.ticket, {.kind = AnswerKind::kTimedOut}, now,
                     draws_.Next());
}

bool GuardCaller::MayHedge(const ClientCall& call, Instant now) {
  return guard_->MayHedge(call, now);
}

}  // namespace weir::sim
