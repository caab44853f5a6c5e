// The guard of a gRPC server.
//
//   auto guard = weir::grpc::ServiceGuard::Load("/etc/shop/shop.toml", {});
//   if (!guard) Fail(guard.error().message);
//   weir::grpc::GuardedServerBuilder builder(*guard);  // grpc::ServerBuilder
//   builder.AddListeningPort(address, credentials);
//   builder.RegisterService(&service);
//   auto server = builder.BuildAndStart();
//
// Calls of the sync and callback APIs, all four kinds of RPC, are then decided
// before their payload is parsed and before their handler runs.  Handlers stay
// as they are.  docs/grpc.md says what is counted when.

#ifndef WEIR_GRPC_SERVER_H_
#define WEIR_GRPC_SERVER_H_

#include <grpcpp/alarm.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/grpc/service_guard.h"

namespace weir::grpc {

class GuardedServerBuilder : public ::grpc::ServerBuilder {
 public:
  explicit GuardedServerBuilder(std::shared_ptr<ServiceGuard> guard);
  ~GuardedServerBuilder() override;

  // By interceptors, gRPC's public API, although handlers could be guarded:
  // refused calls are cancelled with their status, but their handlers run, and
  // nothing waits.  It is so by itself where the version of gRPC is not one
  // that was tested, or interceptors were set with SetInterceptorCreators().
  GuardedServerBuilder& UseInterceptors();

  // Instead of experimental().SetInterceptorCreators(): ours come in addition.
  GuardedServerBuilder& SetInterceptorCreators(
      std::vector<std::unique_ptr<
          ::grpc::experimental::ServerInterceptorFactoryInterface>>
          creators);

  // As its base does; also null, with error(), when a method has no resource
  // in the policy.  Once for each builder.
  std::unique_ptr<::grpc::Server> BuildAndStart() override;

  const std::string& error() const { return error_; }

 private:
  std::optional<Error> Guard();

  std::shared_ptr<ServiceGuard> guard_;
  std::vector<
      std::unique_ptr<::grpc::experimental::ServerInterceptorFactoryInterface>>
      creators_;
  bool use_interceptors_ = false;
  std::string error_;
};

// For completion queues, where no library can come between: one line when a
// call arrives.
//
//   case kArrived:
//     new CallData(...);  // Asks for the next.
//     if (auto refusal = permit_.Enter(guard_, method_, context_)) {
//       return responder_.FinishWithError(*refusal, this);
//     }
//
// The permit ends with the CallData that it is a member of.  Tell it an error
// with End(), so that the limit does not learn from fast failures.
class CallPermit final : private ServiceGuard::Call {
 public:
  CallPermit() = default;
  ~CallPermit() override;

  // Nothing when the call is admitted; else the status to finish with, and
  // trailing metadata was added to the context.  What would have to wait is
  // refused.  `method` is from guard.Register().
  std::optional<::grpc::Status> Enter(ServiceGuard& guard,
                                      ServiceGuard::Method method,
                                      ::grpc::ServerContextBase& context);

  // The same, but it may wait: false says that it does, and that `tag` will
  // come out of `queue` when it is decided; call Entered() then.
  bool Enter(ServiceGuard& guard, ServiceGuard::Method method,
             ::grpc::ServerContextBase& context, ::grpc::CompletionQueue& queue,
             void* tag);
  std::optional<::grpc::Status> Entered(::grpc::ServerContextBase& context);

  // Its stream has begun: the place is free for others.
  void Begin();
  void End(const ::grpc::Status& status);

 private:
  void Decided() override;

  ServiceGuard* guard_ = nullptr;
  ::grpc::CompletionQueue* queue_ = nullptr;
  void* tag_ = nullptr;
  ::grpc::Alarm alarm_;
};

}  // namespace weir::grpc

#endif  // WEIR_GRPC_SERVER_H_
