// The `grpc-status-details-bin` of a refusal.
//
// A google.rpc.Status with two details, of which clients in every language have
// the types: RetryInfo says when to come back, ErrorInfo why it was refused.
// Without the latter RESOURCE_EXHAUSTED could as well mean that a message was
// too big.  Written by hand: Debian has no C++ library with these messages, and
// they are six fields.
//
// Source: google/rpc/status.proto, error_details.proto; the wire format is
// [PROTOBUF-WIRE].

#ifndef WEIR_ADAPTERS_GRPC_DETAILS_H_
#define WEIR_ADAPTERS_GRPC_DETAILS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::grpc {

struct Refusal {
  int code = 8;
  std::string message{};
  std::string_view reason{};  // As Name(Reason) has it; there "LIMIT".
  std::string_view service{};
  std::string resource{};
  int64_t retry_after_ms = 0;  // Below 0: no RetryInfo.
};

// The ErrorInfo has the domain "weir" and the metadata "service", "resource",
// and "executed" = "false": no handler saw the call, so it is safe to retry.
std::string EncodeStatus(const Refusal& refusal);

}  // namespace weir::grpc

#endif  // WEIR_ADAPTERS_GRPC_DETAILS_H_
