#include "messages.h"

#include <grpc/grpc.h>
#include <grpc/support/time.h>
#include <grpcpp/alarm.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "private_api.h"
#include "server_call.h"
#include "weir/host/clock.h"

namespace weir::grpc {
namespace {

using ::grpc::experimental::InterceptionHookPoints;
using ::grpc::experimental::InterceptorBatchMethods;
using ::grpc::experimental::ServerRpcInfo;

Instant Now() { return host::MonotonicClock::Now(); }

// How long a refused message is left alone before it asks again.
// Chosen: at most so long that a stream goes on soon after an overload, at
// least so long that paused streams cost little.
constexpr Duration kShortestPause = std::chrono::milliseconds(10);
constexpr Duration kLongestPause = std::chrono::milliseconds(250);

// Of one stream.  One message at a time: gRPC reads the next one when the
// handler asks for it, and that ends this one.
class Messages final : public ::grpc::experimental::Interceptor,
                       private ServiceGuard::Call {
 public:
  Messages(ServiceGuard& guard, ServiceGuard::Method method,
           ServerRpcInfo& info)
      : guard_(guard), method_(method), info_(info) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    const auto at = [methods](InterceptionHookPoints point) {
      return methods->QueryInterceptionHookPoint(point);
    };
    if (at(InterceptionHookPoints::POST_RECV_MESSAGE)) {
      if (methods->GetRecvMessage() == nullptr) return methods->Proceed();
      paused_ = methods;
      give_up_ = kNever;
      return Ask();
    }
    // What the handler does next; the others are what gRPC says.
    if (!at(InterceptionHookPoints::POST_SEND_MESSAGE) &&
        !at(InterceptionHookPoints::POST_RECV_CLOSE) &&
        !at(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      guard_.Finish(*this, Outcome::kIgnored, Now());
    }
    methods->Proceed();
  }

 private:
  void Ask() {
    const Instant now = Now();
    ServerCallView view(*info_.server_context(), now);
    if (guard_.Ask(*this, method_, view, now) != Verdict::kQueue) Decided();
  }

  void Decided() override {
    const Instant now = Now();
    give_up_ = std::min(give_up_, request().deadline);
    if (admitted()) return GoOn();
    if (now < give_up_) return AskLater();
    const http::Answer answer = guard_.AnswerTo(*this, now);
    const std::string message =
        "shed by weir: " + std::string(Name(decision().reason));
    grpc_call_cancel_with_status(
        info_.server_context()->c_call(),
        static_cast<grpc_status_code>(answer.grpc_status), message.c_str(),
        nullptr);
    GoOn();
  }

  void AskLater() {
    const Duration pause =
        std::clamp(decision().retry_after, kShortestPause, kLongestPause);
    alarm_.emplace();
    alarm_->Set(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                             gpr_time_from_nanos(pause.count(), GPR_TIMESPAN)),
                [this](bool) { Ask(); });
  }

  // The stream may be over, and this gone, after it.
  void GoOn() { std::exchange(paused_, nullptr)->Proceed(); }

  ServiceGuard& guard_;
  const ServiceGuard::Method method_;
  ServerRpcInfo& info_;
  InterceptorBatchMethods* paused_ = nullptr;
  Instant give_up_ = kNever;
  std::optional<::grpc::Alarm> alarm_;
};

::grpc::experimental::Interceptor* MakeMessages(ServiceGuard& guard,
                                                ServiceGuard::Method method,
                                                ServerRpcInfo& info) {
  const bool reads = info.type() == ServerRpcInfo::Type::CLIENT_STREAMING ||
                     info.type() == ServerRpcInfo::Type::BIDI_STREAMING;
  return reads ? new Messages(guard, method, info) : nullptr;
}

class Factory final
    : public ::grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  Factory(std::shared_ptr<ServiceGuard> guard, MakeInterceptor make)
      : guard_(std::move(guard)), make_(make) {}

  ::grpc::experimental::Interceptor* CreateServerInterceptor(
      ServerRpcInfo* info) override {
    const auto method = Find(info->method());
    return method ? make_(*guard_, *method, *info) : nullptr;
  }

 private:
  // Nothing for those that are exempt or have no resource.
  std::optional<ServiceGuard::Method> Find(std::string_view name) {
    const std::lock_guard lock(mutex_);
    const auto it = methods_.find(name);
    if (it != methods_.end()) return it->second;
    std::optional<ServiceGuard::Method> method;
    if (!IsExempt(name)) {
      if (auto handle = guard_->Register(name)) method = *handle;
    }
    methods_.emplace(name, method);
    return method;
  }

  const std::shared_ptr<ServiceGuard> guard_;
  const MakeInterceptor make_;
  std::mutex mutex_;
  std::map<std::string, std::optional<ServiceGuard::Method>, std::less<>>
      methods_;
};

}  // namespace

std::unique_ptr<::grpc::experimental::ServerInterceptorFactoryInterface>
MakeFactory(std::shared_ptr<ServiceGuard> guard, MakeInterceptor make) {
  return std::make_unique<Factory>(std::move(guard), make);
}

std::unique_ptr<::grpc::experimental::ServerInterceptorFactoryInterface>
MakeMessageInterceptors(std::shared_ptr<ServiceGuard> guard) {
  return MakeFactory(std::move(guard), MakeMessages);
}

}  // namespace weir::grpc
