#include "weir/http/answer.h"

#include <algorithm>

#include "weir/text.h"

namespace weir::http {
namespace {

// A number from 0 to `most`.
int64_t Jitter(int64_t most, uint32_t random) {
  return static_cast<int64_t>((static_cast<uint64_t>(most) + 1) * random >> 32);
}

int64_t CeilTo(Duration d, Duration unit) {
  return std::max<int64_t>(d / unit + (d % unit > Duration::zero() ? 1 : 0), 1);
}

// Chosen: an hour.  No estimate reaches further, and it keeps sums in range.
constexpr Duration kLongestRetryAfter = std::chrono::hours(1);

// Chosen: the first backoff that callers of gRPC are usually configured with
// is this or longer, so a shorter push-back only makes them come earlier.
constexpr Duration kLeastPushback = std::chrono::milliseconds(100);

// Whether a caller of gRPC is told that another replica may help.  One that
// was told not to try again must not read it: many retry UNAVAILABLE whatever
// the push-back says.
bool IsUnavailable(const Decision& decision, const Policy& policy) {
  switch (decision.reason) {
    case Reason::kPaused:
    case Reason::kShutdown:
      return true;
    case Reason::kDeadline:
    case Reason::kLevel:
    case Reason::kLimit:
    case Reason::kSystem:
      return policy.try_elsewhere && !decision.never_retry;
    default:
      return false;
  }
}

// Whether a caller had better go elsewhere at once than wait and come back.
bool MayHelpElsewhere(const Decision& decision, const Policy& policy) {
  return IsUnavailable(decision, policy) &&
         (policy.try_elsewhere || decision.reason == Reason::kShutdown);
}

}  // namespace

Answer AnswerTo(const Decision& decision, const Policy& policy, bool expired,
                uint32_t random) {
  Answer answer;
  if (decision.reason == Reason::kDeadline && expired) {
    answer.status = 504;
    answer.grpc_status = kDeadlineExceeded;
    answer.pushback_ms = -1;
    return answer;
  }
  if (IsUnavailable(decision, policy)) answer.grpc_status = kUnavailable;
  if (decision.reason != Reason::kPaused &&
      decision.reason != Reason::kShutdown) {
    // A spent quota is the caller's matter, whatever the server is short of.
    answer.status =
        decision.reason == Reason::kQuota ? 429 : policy.shed_status;
  }
  const Duration wait = std::min(decision.retry_after, kLongestRetryAfter);
  const int64_t seconds = CeilTo(wait, std::chrono::seconds(1));
  answer.retry_after_s =
      seconds + Jitter(std::max<int64_t>(seconds / 2, 1), random);
  if (decision.never_retry) {
    answer.pushback_ms = -1;
  } else if (wait >= kLeastPushback && !MayHelpElsewhere(decision, policy)) {
    const int64_t ms = CeilTo(wait, std::chrono::milliseconds(1));
    answer.pushback_ms = ms + Jitter(ms / 2, random);
  }
  return answer;
}

bool IsGrpc(std::string_view content_type) {
  constexpr std::string_view kGrpc = "application/grpc";
  if (content_type.size() < kGrpc.size()) return false;
  if (!text::EqualsIgnoringCase(content_type.substr(0, kGrpc.size()), kGrpc)) {
    return false;
  }
  content_type.remove_prefix(kGrpc.size());
  return content_type.empty() || content_type[0] == '+' ||
         content_type[0] == ';' || content_type[0] == ' ';
}

}  // namespace weir::http
