#include "outcome.h"

namespace weir::nginx {
namespace {

// Statuses by which a service says that it did not do the work.
bool IsRefusal(int status) { return status == 429 || status == 503; }

// The HTTP status that says the same as one of gRPC.
// Source: [GRPC-HTTP2]; the codes are those of grpc/status.h.
int HttpStatusOf(int grpc_status) {
  switch (grpc_status) {
    case 1:  // CANCELLED, by whom it was for.
      return 499;
    case 4:  // DEADLINE_EXCEEDED
      return 504;
    case 8:   // RESOURCE_EXHAUSTED
    case 14:  // UNAVAILABLE
      return 503;
    case 2:   // UNKNOWN
    case 13:  // INTERNAL
    case 15:  // DATA_LOSS
      return 500;
    default:  // The rest is an answer, if not the one that was wished for.
      return 200;
  }
}

// Answers that nginx makes before any work: redirects, denials, not found.
bool IsEarlyAnswer(const Ending& ending) {
  return ending.contact == Contact::kNone && ending.status >= 300;
}

// Chosen: half.  Work takes about the base latency or longer; what fails in
// less than half of it failed before the work.
bool WasTooQuick(const Ending& ending) {
  return ending.taken < ending.base_latency / 2;
}

}  // namespace

Outcome Judge(const Ending& given) {
  Ending ending = given;
  if (ending.grpc_status >= 0) ending.status = HttpStatusOf(ending.grpc_status);
  if (ending.client_gone && !ending.whole) return Outcome::kCancelled;
  if (ending.stream || ending.contact == Contact::kCache) {
    return Outcome::kIgnored;
  }
  if (ending.grpc_status >= 0 && ending.status == 499) {
    return Outcome::kCancelled;
  }
  // 504 before a connection: the service's backlog is full.
  if (ending.status == 504) return Outcome::kTimedOut;
  if (ending.contact == Contact::kNotReached || IsEarlyAnswer(ending) ||
      IsRefusal(ending.status)) {
    return Outcome::kIgnored;
  }
  if (ending.status >= 500 || !ending.whole) {
    return WasTooQuick(ending) ? Outcome::kIgnored : Outcome::kError;
  }
  return ending.held_back ? Outcome::kIgnored : Outcome::kOk;
}

}  // namespace weir::nginx
