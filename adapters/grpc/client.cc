#include "weir/grpc/client.h"

#include <grpc/support/time.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/support/client_interceptor.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "server_call.h"
#include "weir/client/wire.h"
#include "weir/host/clock.h"
#include "weir/splitmix64.h"

namespace weir::grpc {

namespace {

Instant Now() { return host::MonotonicClock::Now(); }

}  // namespace

struct GuardedChannel::State {
  std::string target;
  std::unique_ptr<ClientGuard> guard;
  SharedSplitMix64 draws{
      static_cast<uint64_t>(Now().time_since_epoch().count())};
};

namespace {

using ::grpc::ClientContext;
using ::grpc::Status;
using ::grpc::StatusCode;
using ::grpc::experimental::InterceptionHookPoints;
using ::grpc::experimental::InterceptorBatchMethods;
using State = GuardedChannel::State;
using Metadata = std::multimap<::grpc::string_ref, ::grpc::string_ref>;

// Marks an attempt of Call(), which asked the guard itself.  Never sent.
constexpr char kAsked[] = "weir-asked";

std::string_view View(::grpc::string_ref text) {
  return {text.data(), text.size()};
}

std::chrono::system_clock::time_point After(Duration budget) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(
             budget);
}

Status DropStatus(DropReason reason) {
  const StatusCode code =
      reason == DropReason::kDeadline    ? StatusCode::DEADLINE_EXCEEDED
      : reason == DropReason::kCancelled ? StatusCode::CANCELLED
                                         : StatusCode::RESOURCE_EXHAUSTED;
  return {code, "dropped by weir: " + std::string(Name(reason))};
}

// Whether a call that is over had found no connection.  gRPC names as peer
// whom it was sent to, and the channel's target when it was sent to nobody.
// Where the target is written as a peer is, what the error says must do; one
// that came from a peer says so.
bool WasNeverSent(ClientContext& context, const Status& status,
                  const std::string& target) {
  if (status.error_code() != StatusCode::UNAVAILABLE ||
      context.peer() != target) {
    return false;
  }
  const bool as_peer = target.rfind("ipv4:", 0) == 0 ||
                       target.rfind("ipv6:", 0) == 0 ||
                       target.rfind("unix", 0) == 0;
  return !as_peer ||
         (status.error_message().rfind("failed to connect", 0) == 0 &&
          context.debug_error_string().find("from peer") == std::string::npos);
}

// What an answer says; a malformed text reads as if it were not there.
Answer AnswerOf(ClientContext& context, const Status& status,
                const Metadata& trailers, const ClientCall& call,
                const std::string& target) {
  Answer answer;
  answer.kind = wire::KindOfGrpcCode(status.error_code());
  answer.unreached = WasNeverSent(context, status, target);
  for (const auto& [name, value] : trailers) {
    wire::ReadAnswerHeader(View(name), View(value), answer);
  }
  // UNAVAILABLE also says that the connection broke while it was at work.
  if (answer.kind == AnswerKind::kUnavailable && !answer.unreached &&
      !answer.by_weir && !call.repeatable) {
    answer.kind = AnswerKind::kError;
  }
  return answer;
}

// Unless the caller chose them.  Chosen: a backend that comes back is found
// within a second, and one that is gone is asked for a connection, which costs
// it nothing, once a second.
void ReconnectSoon(::grpc::ChannelArguments& arguments) {
  constexpr std::pair<const char*, int> kWaits[] = {
      {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100},
      {GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000}};
  const grpc_channel_args given = arguments.c_channel_args();
  const auto is_given = [&given](std::string_view key) {
    return std::any_of(
        given.args, given.args + given.num_args,
        [key](const grpc_arg& argument) { return argument.key == key; });
  };
  if (is_given(kWaits[0].first) || is_given(kWaits[1].first)) return;
  for (const auto& [key, ms] : kWaits) arguments.SetInt(key, ms);
}

// Guards an RPC that Call() did not.
class Interceptor final : public ::grpc::experimental::Interceptor {
 public:
  Interceptor(std::shared_ptr<State> state,
              ::grpc::experimental::ClientRpcInfo& info)
      : state_(std::move(state)), info_(info) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    const auto at = [methods](InterceptionHookPoints point) {
      return methods->QueryInterceptionHookPoint(point);
    };
    if (at(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA) &&
        !Begin(*methods->GetSendInitialMetadata())) {
      // Comes back here with the operations that are ours to answer now.
      return methods->Hijack();
    }
    if (dropped_) {
      Answer(*methods);
    } else if (attempt_.open && at(InterceptionHookPoints::POST_RECV_STATUS)) {
      state_->guard->End(
          call_, attempt_,
          AnswerOf(*info_.client_context(), *methods->GetRecvStatus(),
                   *methods->GetRecvTrailingMetadata(), call_, state_->target),
          Now(), state_->draws.Next());
    }
    methods->Proceed();
  }

 private:
  // False when the RPC is dropped.
  bool Begin(std::multimap<std::string, std::string>& metadata) {
    if (metadata.erase(kAsked) > 0) return true;
    const auto found = metadata.find(std::string(wire::kCriticality));
    if (found != metadata.end()) {
      call_.criticality =
          ParseCriticality(found->second).value_or(call_.criticality);
    }
    call_.deadline = InstantOf(info_.client_context()->raw_deadline());
    attempt_ = state_->guard->Begin(call_, Now(), state_->draws.Next());
    if (!attempt_.send) dropped_ = DropStatus(attempt_.dropped);
    return attempt_.send;
  }

  void Answer(InterceptorBatchMethods& methods) const {
    if (methods.QueryInterceptionHookPoint(
            InterceptionHookPoints::PRE_SEND_MESSAGE)) {
      methods.FailHijackedSendMessage();
    }
    if (methods.QueryInterceptionHookPoint(
            InterceptionHookPoints::PRE_RECV_MESSAGE)) {
      methods.FailHijackedRecvMessage();
    }
    if (methods.QueryInterceptionHookPoint(
            InterceptionHookPoints::PRE_RECV_STATUS)) {
      *methods.GetRecvStatus() = *dropped_;
    }
  }

  const std::shared_ptr<State> state_;
  ::grpc::experimental::ClientRpcInfo& info_;
  ClientCall call_;
  Attempt attempt_;
  std::optional<Status> dropped_;
};

class Factory final
    : public ::grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit Factory(std::shared_ptr<State> state) : state_(std::move(state)) {}

  ::grpc::experimental::Interceptor* CreateClientInterceptor(
      ::grpc::experimental::ClientRpcInfo* info) override {
    return new Interceptor(state_, *info);
  }

 private:
  const std::shared_ptr<State> state_;
};

std::unique_ptr<ClientContext> ContextFor(const ServerScope& scope) {
  return scope.parent == nullptr
             ? std::make_unique<ClientContext>()
             : ClientContext::FromServerContext(*scope.parent);
}

// Until `at`, or until nobody wants the answer any more.
void WaitUntil(Instant at, const std::stop_token& cancelled) {
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock(mutex);
  woken.wait_until(lock, cancelled,
                   std::chrono::steady_clock::time_point(at.time_since_epoch()),
                   [] { return false; });
}

}  // namespace

ServerScope ScopeOf(const ::grpc::ServerContextBase& context) {
  ServerScope scope{.scope = {.deadline = DeadlineOf(context)},
                    .parent = &context,
                    .degrade = DegradeOf(context)};
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(
      ::grpc::string_ref(wire::kCriticality.data(), wire::kCriticality.size()));
  if (found != metadata.end()) {
    scope.scope.criticality =
        ParseCriticality(View(found->second)).value_or(scope.scope.criticality);
  }
  return scope;
}

Status Relay(const CallResult& result, ::grpc::ServerContextBase& context) {
  if (!result.never_retry_above) return result.status;
  context.AddTrailingMetadata(
      std::string(wire::kPushback),
      std::string(wire::FormatPushback(std::nullopt).view()));
  const Status& status = result.status;
  if (status.error_code() != StatusCode::UNAVAILABLE) return status;
  return {StatusCode::RESOURCE_EXHAUSTED, status.error_message(),
          status.error_details()};
}

GuardedChannel::GuardedChannel(std::shared_ptr<State> state,
                               std::shared_ptr<::grpc::Channel> channel)
    : state_(std::move(state)), channel_(std::move(channel)) {}

GuardedChannel::~GuardedChannel() = default;

Result<std::shared_ptr<GuardedChannel>> GuardedChannel::Make(
    const std::string& target,
    const std::shared_ptr<::grpc::ChannelCredentials>& credentials) {
  return Make(target, credentials, Options());
}

Result<std::shared_ptr<GuardedChannel>> GuardedChannel::Make(
    const std::string& target,
    const std::shared_ptr<::grpc::ChannelCredentials>& credentials,
    const Options& options) {
  auto guard =
      ClientGuard::Make(options.policy, options.allowance != nullptr
                                            ? options.allowance
                                            : RetryAllowance::OfProcess());
  if (!guard) return guard.error();
  auto state = std::make_shared<State>();
  state->target = target;
  state->guard = std::move(guard).value();
  ::grpc::ChannelArguments arguments = options.arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  ReconnectSoon(arguments);
  std::vector<
      std::unique_ptr<::grpc::experimental::ClientInterceptorFactoryInterface>>
      creators;
  creators.push_back(std::make_unique<Factory>(state));
  auto channel = ::grpc::experimental::CreateCustomChannelWithInterceptors(
      target, credentials, arguments, std::move(creators));
  return std::shared_ptr<GuardedChannel>(
      new GuardedChannel(std::move(state), std::move(channel)));
}

const ClientGuard& GuardedChannel::guard() const { return *state_->guard; }

CallResult GuardedChannel::Call(
    const ServerScope& scope,
    const std::function<Status(ClientContext&)>& rpc) {
  ClientGuard& guard = *state_->guard;
  ClientCall call = scope.scope.MakeCall();
  for (;;) {
    Attempt attempt = guard.Begin(call, Now(), state_->draws.Next());
    if (!attempt.send) {
      return {.status = DropStatus(attempt.dropped),
              .never_retry_above = NeverRetryAbove(attempt.dropped),
              .dropped = attempt.dropped};
    }
    const auto context = ContextFor(scope);
    context->set_deadline(After(attempt.budget));
    context->AddMetadata(kAsked, "");
    wire::PutRequestHeaders(
        wire::Protocol::kGrpc, call, attempt,
        [&context](std::string_view name, std::string_view value) {
          context->AddMetadata(std::string(name), std::string(value));
        });
    const Status status = rpc(*context);
    const Answer answer =
        AnswerOf(*context, status, context->GetServerTrailingMetadata(), call,
                 state_->target);
    const Next next =
        guard.End(call, attempt, answer, Now(), state_->draws.Next());
    if (next.step != Next::Step::kRetry) {
      return {.status = status,
              .never_retry_above = next.never_retry_above,
              .unreached = answer.unreached};
    }
    WaitUntil(next.at, scope.scope.cancelled);
  }
}

std::unique_ptr<ClientContext> GuardedChannel::NewContext(
    const ServerScope& scope) {
  auto context = ContextFor(scope);
  const auto budget =
      guard().policy().deadline.Budget(scope.scope.deadline, Now());
  context->set_deadline(After(budget.value_or(Duration::zero())));
  context->AddMetadata(std::string(wire::kCriticality),
                       std::string(Name(scope.scope.criticality)));
  return context;
}

}  // namespace weir::grpc
