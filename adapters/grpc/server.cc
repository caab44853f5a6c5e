#include "weir/grpc/server.h"

#include <grpc/support/log.h>

#include "intercept.h"
#include "messages.h"
#include "private_api.h"
#include "server_call.h"
#include "weir/host/clock.h"

namespace weir::grpc {
namespace {

Instant Now() { return host::MonotonicClock::Now(); }

}  // namespace

GuardedServerBuilder::GuardedServerBuilder(std::shared_ptr<ServiceGuard> guard)
    : guard_(std::move(guard)) {}

GuardedServerBuilder::~GuardedServerBuilder() = default;

GuardedServerBuilder& GuardedServerBuilder::UseInterceptors() {
  use_interceptors_ = true;
  return *this;
}

GuardedServerBuilder& GuardedServerBuilder::SetInterceptorCreators(
    std::vector<std::unique_ptr<
        ::grpc::experimental::ServerInterceptorFactoryInterface>>
        creators) {
  creators_ = std::move(creators);
  return UseInterceptors();
}

std::optional<Error> GuardedServerBuilder::Guard() {
  if (!use_interceptors_ && HasInterceptors(*this)) {
    return Error{
        "interceptors were set by experimental(), and would be shown requests "
        "that are not parsed yet; set them by "
        "GuardedServerBuilder::SetInterceptorCreators()"};
  }
  if (use_interceptors_ || !KnowsPrivateApi()) {
    // What arrives passes the last one first, and the first message ends what
    // a stream's start held.
    creators_.push_back(MakeMessageInterceptors(guard_));
    creators_.push_back(MakeInterceptors(guard_));
    experimental().SetInterceptorCreators(std::move(creators_));
    return std::nullopt;
  }
  bool reads_streams = false;
  for (const NamedService* named : services()) {
    if (auto error = GuardHandlers(guard_, *named->service)) return error;
    reads_streams = reads_streams || ReadsStreams(*named->service);
  }
  // Interceptors cost every call something, so only where there is need.
  if (reads_streams) {
    creators_.push_back(MakeMessageInterceptors(guard_));
    experimental().SetInterceptorCreators(std::move(creators_));
  }
  return std::nullopt;
}

std::unique_ptr<::grpc::Server> GuardedServerBuilder::BuildAndStart() {
  if (const auto error = Guard()) {
    error_ = error->message;
    gpr_log(GPR_ERROR, "weir: %s", error_.c_str());
    return nullptr;
  }
  return ::grpc::ServerBuilder::BuildAndStart();
}

CallPermit::~CallPermit() {
  if (guard_ != nullptr) guard_->Finish(*this, Outcome::kOk, Now());
}

std::optional<::grpc::Status> CallPermit::Enter(
    ServiceGuard& guard, ServiceGuard::Method method,
    ::grpc::ServerContextBase& context) {
  guard_ = &guard;
  const Instant now = Now();
  ServerCallView view(context, now);
  static_cast<void>(guard.Ask(*this, method, view, now, false));
  return Entered(context);
}

bool CallPermit::Enter(ServiceGuard& guard, ServiceGuard::Method method,
                       ::grpc::ServerContextBase& context,
                       ::grpc::CompletionQueue& queue, void* tag) {
  guard_ = &guard;
  queue_ = &queue;
  tag_ = tag;
  const Instant now = Now();
  ServerCallView view(context, now);
  return guard.Ask(*this, method, view, now) != Verdict::kQueue;
}

std::optional<::grpc::Status> CallPermit::Entered(
    ::grpc::ServerContextBase& context) {
  if (admitted()) {
    NoteDecision(*this, context);
    return std::nullopt;
  }
  return Refuse(*guard_, *this, context, Now());
}

void CallPermit::Decided() {
  alarm_.Set(queue_, gpr_inf_past(GPR_CLOCK_MONOTONIC), tag_);
}

void CallPermit::Begin() {
  if (guard_ != nullptr) guard_->Finish(*this, Outcome::kIgnored, Now());
}

void CallPermit::End(const ::grpc::Status& status) {
  if (!admitted()) return;
  const Instant now = Now();
  guard_->Finish(*this,
                 stream() ? Outcome::kIgnored
                          : Judge(status.error_code(), now - admitted_at(),
                                  guard_->base_latency()),
                 now);
}

}  // namespace weir::grpc
