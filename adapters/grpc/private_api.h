// The guard around the handlers of a service, by gRPC's private API.
//
// gRPC for C++ has no public way to answer a call before its payload is parsed
// and its handler runs.  But each method of a service has one object that does
// both, and it can be replaced by one that asks first.  private_api.cc does
// that; it is the only file which names what gRPC does not promise, it is
// compiled for the versions it was tested with only, and for others there is
// intercept.h.

#ifndef WEIR_ADAPTERS_GRPC_PRIVATE_API_H_
#define WEIR_ADAPTERS_GRPC_PRIVATE_API_H_

#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <optional>

#include "weir/grpc/service_guard.h"
#include "weir/result.h"

namespace weir::grpc {

// Whether this was compiled against a version that is known.
bool KnowsPrivateApi();

// Puts the guard around the handlers of all methods that have one (not around
// those of completion queues, nor of exempt services) and were not guarded
// before.  An error when a method has no resource; then nothing was changed.
std::optional<Error> GuardHandlers(std::shared_ptr<ServiceGuard> guard,
                                   ::grpc::Service& service);

// Whether a guarded method of it reads streams of messages.
bool ReadsStreams(const ::grpc::Service& service);

// Whether somebody else's interceptors were given to the builder.  They would
// be shown requests that are not parsed yet.
bool HasInterceptors(::grpc::ServerBuilder& builder);

// Health checks and reflection: never refused, or a full server is taken for a
// dead one and restarted.  `full_name` is "/pkg.Service/Method".
bool IsExempt(std::string_view full_name);

}  // namespace weir::grpc

#endif  // WEIR_ADAPTERS_GRPC_PRIVATE_API_H_
