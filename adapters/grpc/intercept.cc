#include "intercept.h"

#include <grpc/grpc.h>

#include <utility>

#include "messages.h"
#include "server_call.h"
#include "weir/host/clock.h"

namespace weir::grpc {
namespace {

using ::grpc::experimental::InterceptionHookPoints;
using ::grpc::experimental::InterceptorBatchMethods;
using ::grpc::experimental::ServerRpcInfo;

Instant Now() { return host::MonotonicClock::Now(); }

// Of one call; gRPC deletes it when the call is over, however it ended.
class Interceptor final : public ::grpc::experimental::Interceptor,
                          private ServiceGuard::Call {
 public:
  Interceptor(ServiceGuard& guard, ServiceGuard::Method method,
              ServerRpcInfo& info)
      : guard_(guard), method_(method), info_(info) {}

  ~Interceptor() override {
    if (admitted()) guard_.Finish(*this, Outcome::kCancelled, Now());
  }

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      Ask();
    }
    if (admitted()) Watch(*methods);
    methods->Proceed();
  }

 private:
  void Decided() override {}  // It is never queued.

  void Ask() {
    ::grpc::ServerContextBase& context = *info_.server_context();
    const Instant now = Now();
    ServerCallView view(context, now);
    if (guard_.Ask(*this, method_, view, now, false) == Verdict::kAdmit) {
      return NoteDecision(*this, context);
    }
    const ::grpc::Status status = Refuse(guard_, *this, context, now);
    grpc_call_cancel_with_status(
        context.c_call(), static_cast<grpc_status_code>(status.error_code()),
        status.error_message().c_str(), nullptr);
  }

  void Watch(InterceptorBatchMethods& methods) {
    const bool streams = stream() || info_.type() != ServerRpcInfo::Type::UNARY;
    const Instant now = Now();
    if (methods.QueryInterceptionHookPoint(
            InterceptionHookPoints::PRE_SEND_STATUS)) {
      guard_.Finish(*this,
                    streams ? Outcome::kIgnored
                            : Judge(methods.GetSendStatus().error_code(),
                                    now - admitted_at(), guard_.base_latency()),
                    now);
    } else if (streams &&
               (methods.QueryInterceptionHookPoint(
                    InterceptionHookPoints::PRE_SEND_INITIAL_METADATA) ||
                methods.QueryInterceptionHookPoint(
                    InterceptionHookPoints::PRE_SEND_MESSAGE) ||
                methods.QueryInterceptionHookPoint(
                    InterceptionHookPoints::POST_RECV_MESSAGE))) {
      guard_.Finish(*this, Outcome::kIgnored, now);
    }
  }

  ServiceGuard& guard_;
  const ServiceGuard::Method method_;
  ServerRpcInfo& info_;
};

}  // namespace

std::unique_ptr<::grpc::experimental::ServerInterceptorFactoryInterface>
MakeInterceptors(std::shared_ptr<ServiceGuard> guard) {
  return MakeFactory(
      std::move(guard),
      [](ServiceGuard& of, ServiceGuard::Method method,
         ServerRpcInfo& info) -> ::grpc::experimental::Interceptor* {
        return new Interceptor(of, method, info);
      });
}

}  // namespace weir::grpc
