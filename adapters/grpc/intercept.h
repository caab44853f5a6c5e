// The guard by gRPC's public API alone: a server interceptor.
//
// It cannot keep a handler from running.  A call that is refused is cancelled
// with the refusal's status, which the caller sees at once, and its handler
// runs all the same and finds the call cancelled.  Nor can it tell which
// threads may be kept waiting, so nothing waits: what finds no room is shed.
// So this is for versions of gRPC that private_api.h does not know, and for
// servers with other interceptors.

#ifndef WEIR_ADAPTERS_GRPC_INTERCEPT_H_
#define WEIR_ADAPTERS_GRPC_INTERCEPT_H_

#include <grpcpp/support/server_interceptor.h>

#include <memory>

#include "weir/grpc/service_guard.h"

namespace weir::grpc {

// Makes interceptors for the methods that have a resource and are not exempt;
// for those of completion queues too, which must do without a CallPermit then.
std::unique_ptr<::grpc::experimental::ServerInterceptorFactoryInterface>
MakeInterceptors(std::shared_ptr<ServiceGuard> guard);

}  // namespace weir::grpc

#endif  // WEIR_ADAPTERS_GRPC_INTERCEPT_H_
