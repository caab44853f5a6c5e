// The messages that streams bring.
//
// A stream is admitted when it starts, and then may live for days; how long
// says nothing.  What it costs is its messages.  So each one that arrives asks
// for a place like a call does, and holds it until the handler turns to its
// next operation: reads on, writes, or ends.
//
// No message is lost.  One that has to wait, or is refused for now, stays where
// it is, so the stream is not read on, and flow control lets its client feel
// that.  When the budget of a message is over, the stream ends with the status
// of the refusal.
//
// An interceptor, gRPC's public API: only that sees messages arrive, and may
// keep one back.

#ifndef WEIR_ADAPTERS_GRPC_MESSAGES_H_
#define WEIR_ADAPTERS_GRPC_MESSAGES_H_

#include <grpcpp/support/server_interceptor.h>

#include <memory>

#include "weir/grpc/service_guard.h"

namespace weir::grpc {

// An interceptor for a call of `method`, or null when calls of its kind need
// none.  gRPC deletes it when the call is over.
using MakeInterceptor =
    ::grpc::experimental::Interceptor* (*)(ServiceGuard& guard,
                                           ServiceGuard::Method method,
                                           ::grpc::experimental::ServerRpcInfo&
                                               info);

// Has them made for the methods that have a resource and are not exempt, which
// are registered when they are first called.
std::unique_ptr<::grpc::experimental::ServerInterceptorFactoryInterface>
MakeFactory(std::shared_ptr<ServiceGuard> guard, MakeInterceptor make);

std::unique_ptr<::grpc::experimental::ServerInterceptorFactoryInterface>
MakeMessageInterceptors(std::shared_ptr<ServiceGuard> guard);

}  // namespace weir::grpc

#endif  // WEIR_ADAPTERS_GRPC_MESSAGES_H_
