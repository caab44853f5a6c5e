// Which resource of a policy a method belongs to; ServiceGuard::Register() says
// by which rule.

#ifndef WEIR_GRPC_METHOD_RESOURCE_H_
#define WEIR_GRPC_METHOD_RESOURCE_H_

#include <cstdint>
#include <string_view>

#include "weir/policy.h"
#include "weir/result.h"

namespace weir::grpc {

// Its index in the policy.  `method` is "/pkg.Service/Method".
Result<uint16_t> FindResource(const Policy& policy, std::string_view method);

}  // namespace weir::grpc

#endif  // WEIR_GRPC_METHOD_RESOURCE_H_
