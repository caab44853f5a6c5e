// A call's way, by the API it belongs to:
//
//   sync      RunHandler() asks; waits in its thread, as a slow handler would;
//             refuses or runs the handler; the call ends when that returns.
//   callback  RunHandler() asks, and returns when the call must wait: it is
//             continued in a thread of gRPC's.  The call ends when gRPC asks
//             for the next one.
//
// All operations of an admitted call pass through Watch, which learns from
// them the status that is sent and when a stream begins.

#include "private_api.h"

#include <grpcpp/alarm.h>
#include <grpcpp/impl/call.h>
#include <grpcpp/impl/call_hook.h>
#include <grpcpp/impl/call_op_set.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/method_handler.h>
#include <grpcpp/version_info.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "server_call.h"
#include "weir/host/clock.h"

#ifndef WEIR_GRPC_PRIVATE_API
// The versions that the tests of this folder passed with.
#define WEIR_GRPC_PRIVATE_API \
  (GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR == 51)
#endif

namespace weir::grpc {

bool IsExempt(std::string_view full_name) {
  for (const std::string_view prefix :
       {"/grpc.health.v1.Health/", "/grpc.reflection."}) {
    if (full_name.substr(0, prefix.size()) == prefix) return true;
  }
  return false;
}

#if WEIR_GRPC_PRIVATE_API

namespace {

using ::grpc::ServerContextBase;
using ::grpc::StatusCode;
using ::grpc::internal::CallHook;
using ::grpc::internal::CallOpServerSendStatus;
using ::grpc::internal::CallOpSetInterface;
using ::grpc::internal::MethodHandler;
using ::grpc::internal::RpcMethod;
using ::grpc::internal::RpcServiceMethod;
using ApiCall = ::grpc::internal::Call;
using Parameter = MethodHandler::HandlerParameter;

// Access to private members: an explicit instantiation may name them, and
// defines a function that hands out the pointer.
// Source: [ISO-CPP20] temp.spec, access is not checked there.
template <typename Tag, typename Tag::type kMember>
struct Expose {
  friend typename Tag::type Member(Tag) { return kMember; }
};
struct Methods {
  using type =
      std::vector<std::unique_ptr<RpcServiceMethod>>(::grpc::Service::*);
  friend type Member(Methods);
};
template struct Expose<Methods, &::grpc::Service::methods_>;
struct Handler {
  using type = std::unique_ptr<MethodHandler>(RpcServiceMethod::*);
  friend type Member(Handler);
};
template struct Expose<Handler, &RpcServiceMethod::handler_>;
struct StatusToSend {
  using type = grpc_status_code(CallOpServerSendStatus::*);
  friend type Member(StatusToSend);
};
template struct Expose<StatusToSend,
                       &CallOpServerSendStatus::send_status_code_>;
struct Interceptors {
  using type = std::vector<
      std::unique_ptr<::grpc::experimental::ServerInterceptorFactoryInterface>>(
      ::grpc::ServerBuilder::*);
  friend type Member(Interceptors);
};
template struct Expose<Interceptors,
                       &::grpc::ServerBuilder::interceptor_creators_>;

Instant Now() { return host::MonotonicClock::Now(); }

// How often a call that waits in its thread looks whether its caller left.
// Chosen: with all threads that may wait it makes 5000 looks a second.
constexpr std::chrono::milliseconds kLookInterval{50};

// Threads of one method that may wait at a time; more are refused at once.
// Chosen: far more than a queue that is worth its wait, and no threat to a
// machine: until the law knows what the service can do it lets everything wait.
constexpr int kMostWaitingThreads = 256;

// Sees all operations of an admitted call, and ends it.
class Watch final : public CallHook {
 public:
  Watch(ServiceGuard& guard, ServiceGuard::Call& call, const ApiCall& api_call,
        bool streams, int operations_before)
      : guard_(guard),
        call_(call),
        below_(api_call),
        above_(api_call.call(), this, api_call.cq(),
               api_call.max_receive_message_size(), api_call.server_rpc_info()),
        begins_(streams || call.stream()),
        operations_before_(operations_before) {}

  // For the handler.
  ApiCall* call() { return &above_; }

  void PerformOpsOnCall(CallOpSetInterface* ops, ApiCall*) override {
    if (const auto* status = dynamic_cast<CallOpServerSendStatus*>(ops)) {
      code_.store(status->*Member(StatusToSend()), std::memory_order_relaxed);
    }
    if (begins_) Begin();
    below_.PerformOps(ops);  // The call may be over, and this gone, after it.
  }

  // Once, when the call is over.
  void End() {
    if (!call_.admitted()) return;
    const Instant now = Now();
    const int code = code_.load(std::memory_order_relaxed);
    const Duration taken = now - call_.admitted_at();
    guard_.Finish(call_,
                  begins_      ? Outcome::kIgnored
                  : code == -1 ? Outcome::kCancelled
                               : Judge(static_cast<StatusCode>(code), taken,
                                       guard_.base_latency()),
                  now);
  }

 private:
  // A stream has started once its handler sends, or waits for its caller.
  void Begin() {
    if (operations_.fetch_add(1, std::memory_order_relaxed) ==
        operations_before_) {
      guard_.Finish(call_, Outcome::kIgnored, Now());
    }
  }

  ServiceGuard& guard_;
  ServiceGuard::Call& call_;
  ApiCall below_;
  ApiCall above_;
  const bool begins_;
  const int operations_before_;  // Of gRPC itself.
  std::atomic<int> operations_{0};
  std::atomic<int> code_{-1};  // None was sent.
};

class WaitingThread final : public ServiceGuard::Call {
 public:
  // False when the caller left first.
  bool Wait(ServiceGuard& guard, ServerContextBase& context) {
    std::unique_lock lock(mutex_);
    while (!decided_) {
      woken_.wait_for(lock, kLookInterval);
      if (decided_ || !context.IsCancelled()) continue;
      lock.unlock();
      if (guard.Cancel(*this, Now())) return false;
      lock.lock();
    }
    return true;
  }

 private:
  void Decided() override {
    // Under the mutex to the end: this is gone as soon as Wait() returns.
    const std::lock_guard lock(mutex_);
    decided_ = true;
    woken_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable woken_;
  bool decided_ = false;
};

struct Kind {
  explicit Kind(const RpcServiceMethod& method)
      : is_callback(method.api_type() == RpcServiceMethod::ApiType::CALL_BACK ||
                    method.api_type() ==
                        RpcServiceMethod::ApiType::RAW_CALL_BACK),
        streams(method.method_type() != RpcMethod::NORMAL_RPC),
        has_payload(method.method_type() == RpcMethod::NORMAL_RPC ||
                    method.method_type() == RpcMethod::SERVER_STREAMING) {}

  bool is_callback;
  bool streams;
  bool has_payload;  // One request, which comes with the call.
};

// What RunHandler() got.
struct Saved {
  explicit Saved(const Parameter& p)
      : call(p.call),
        context(p.server_context),
        payload(static_cast<grpc_byte_buffer*>(p.request)),
        requester(p.call_requester) {}

  ApiCall* call;
  ServerContextBase* context;
  grpc_byte_buffer* payload;  // Null: none came.
  std::function<void()> requester;
};

// Parses the payload, if the method has one, and runs the handler.  A caller
// that leaves early may have sent none: the parser says what becomes of that.
void Run(MethodHandler& handler, bool has_payload, const Saved& saved,
         ApiCall* call, std::function<void()> requester) {
  ::grpc::Status status;
  void* data = nullptr;
  void* request = has_payload ? handler.Deserialize(call->call(), saved.payload,
                                                    &status, &data)
                              : nullptr;
  handler.RunHandler(Parameter(call, saved.context, request, status, data,
                               std::move(requester)));
}

// Both send a status and what is in the context's trailing metadata, whatever
// kind of RPC it is: none of them has been read from or written to.
void RefuseSync(const Saved& saved, const ::grpc::Status& status) {
  if (saved.payload != nullptr) grpc_byte_buffer_destroy(saved.payload);
  ::grpc::internal::RpcMethodHandler<::grpc::Service, ::grpc::ByteBuffer,
                                     ::grpc::ByteBuffer>
      handler(nullptr, nullptr);
  handler.RunHandler(
      Parameter(saved.call, saved.context, nullptr, status, nullptr, nullptr));
}

void RefuseCallback(Saved saved, const ::grpc::Status& status) {
  ::grpc::internal::CallbackUnaryHandler<::grpc::ByteBuffer, ::grpc::ByteBuffer>
      handler([&status](::grpc::CallbackServerContext* context,
                        const ::grpc::ByteBuffer*, ::grpc::ByteBuffer*) {
        auto* reactor = context->DefaultReactor();
        reactor->Finish(status);
        return reactor;
      });
  ::grpc::Status parsed;
  void* data = nullptr;
  void* request =
      handler.Deserialize(saved.call->call(), saved.payload, &parsed, &data);
  handler.RunHandler(Parameter(saved.call, saved.context, request, parsed, data,
                               std::move(saved.requester)));
}

// A call of the callback API; deletes itself.
class CallbackCall final : public ServiceGuard::Call {
 public:
  CallbackCall(ServiceGuard& guard, MethodHandler& inner, Kind kind,
               const Parameter& parameter)
      : guard_(guard), inner_(inner), kind_(kind), saved_(parameter) {}

  static void Begin(ServiceGuard& guard, ServiceGuard::Method method,
                    MethodHandler& inner, Kind kind,
                    const Parameter& parameter) {
    auto* call = new CallbackCall(guard, inner, kind, parameter);
    const Instant now = Now();
    ServerCallView view(*parameter.server_context, now);
    if (guard.Ask(*call, method, view, now) != Verdict::kQueue) {
      call->Continue();
    }
  }

 private:
  // Not in this thread: it has other calls to tell, and handlers take long.
  void Decided() override {
    alarm_.emplace();
    alarm_->Set(gpr_inf_past(GPR_CLOCK_MONOTONIC),
                [this](bool) { Continue(); });
  }

  void Continue() {
    if (!admitted()) {
      const ::grpc::Status status =
          Refuse(guard_, *this, *saved_.context, Now());
      const Saved saved = std::move(saved_);
      delete this;
      RefuseCallback(saved, status);
      return;
    }
    NoteDecision(*this, *saved_.context);
    // gRPC itself begins with an operation that tells when the caller leaves.
    watch_.emplace(guard_, *this, *saved_.call, kind_.streams, 1);
    Run(inner_, kind_.has_payload, saved_, watch_->call(), [this] { Done(); });
  }

  void Done() {
    watch_->End();
    const std::function<void()> requester = std::move(saved_.requester);
    delete this;
    requester();
  }

  ServiceGuard& guard_;
  MethodHandler& inner_;
  const Kind kind_;
  Saved saved_;
  std::optional<::grpc::Alarm> alarm_;
  std::optional<Watch> watch_;
};

class GuardedHandler final : public MethodHandler {
 public:
  GuardedHandler(std::shared_ptr<ServiceGuard> guard,
                 ServiceGuard::Method method, Kind kind,
                 std::unique_ptr<MethodHandler> inner)
      : guard_(std::move(guard)),
        method_(method),
        kind_(kind),
        inner_(std::move(inner)) {}

  // Leaves the payload as it is.
  void* Deserialize(grpc_call*, grpc_byte_buffer* payload, ::grpc::Status*,
                    void**) override {
    return payload;
  }

  void RunHandler(const Parameter& parameter) override {
    if (kind_.is_callback) {
      CallbackCall::Begin(*guard_, method_, *inner_, kind_, parameter);
    } else {
      RunSync(parameter);
    }
  }

 private:
  void RunSync(const Parameter& parameter) {
    const Saved saved(parameter);
    const Instant now = Now();
    ServerCallView view(*saved.context, now);
    WaitingThread call;
    const bool may_wait = waiting_.load() < kMostWaitingThreads;
    if (guard_->Ask(call, method_, view, now, may_wait) == Verdict::kQueue) {
      ++waiting_;
      const bool stayed = call.Wait(*guard_, *saved.context);
      --waiting_;
      if (!stayed) return RefuseSync(saved, ::grpc::Status::CANCELLED);
    }
    if (!call.admitted()) {
      return RefuseSync(saved, Refuse(*guard_, call, *saved.context, Now()));
    }
    NoteDecision(call, *saved.context);
    Watch watch(*guard_, call, *saved.call, kind_.streams, 0);
    Run(*inner_, kind_.has_payload, saved, watch.call(), nullptr);
    watch.End();
  }

  const std::shared_ptr<ServiceGuard> guard_;
  const ServiceGuard::Method method_;
  const Kind kind_;
  const std::unique_ptr<MethodHandler> inner_;
  std::atomic<int> waiting_{0};  // Threads.
};

bool IsGuarded(const RpcServiceMethod& method) {
  return dynamic_cast<GuardedHandler*>(method.handler()) != nullptr;
}

}  // namespace

bool KnowsPrivateApi() { return true; }

bool HasInterceptors(::grpc::ServerBuilder& builder) {
  return !(builder.*Member(Interceptors())).empty();
}

bool ReadsStreams(const ::grpc::Service& service) {
  const auto& methods = service.*Member(Methods());
  return std::any_of(methods.begin(), methods.end(), [](const auto& method) {
    return method != nullptr && IsGuarded(*method) &&
           (method->method_type() == RpcMethod::CLIENT_STREAMING ||
            method->method_type() == RpcMethod::BIDI_STREAMING);
  });
}

std::optional<Error> GuardHandlers(std::shared_ptr<ServiceGuard> guard,
                                   ::grpc::Service& service) {
  std::vector<std::pair<RpcServiceMethod*, ServiceGuard::Method>> found;
  for (const auto& method : service.*Member(Methods())) {
    if (method == nullptr || method->handler() == nullptr ||
        IsGuarded(*method) || IsExempt(method->name())) {
      continue;
    }
    auto handle = guard->Register(method->name());
    if (!handle) return handle.error();
    found.emplace_back(method.get(), *handle);
  }
  for (const auto& [method, handle] : found) {
    std::unique_ptr<MethodHandler>& handler = method->*Member(Handler());
    handler = std::make_unique<GuardedHandler>(guard, handle, Kind(*method),
                                               std::move(handler));
  }
  return std::nullopt;
}

#else

bool KnowsPrivateApi() { return false; }
bool HasInterceptors(::grpc::ServerBuilder&) { return false; }
bool ReadsStreams(const ::grpc::Service&) { return false; }
std::optional<Error> GuardHandlers(std::shared_ptr<ServiceGuard>,
                                   ::grpc::Service&) {
  return Error{"this version of gRPC is not known"};
}

#endif

}  // namespace weir::grpc
