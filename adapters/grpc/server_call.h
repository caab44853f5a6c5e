// A call as gRPC shows it to a server, in weir's terms.

#ifndef WEIR_ADAPTERS_GRPC_SERVER_CALL_H_
#define WEIR_ADAPTERS_GRPC_SERVER_CALL_H_

#include <grpcpp/server_context.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "weir/decision.h"
#include "weir/grpc/service_guard.h"
#include "weir/http/answer.h"
#include "weir/time.h"

namespace weir::grpc {

// The variables that a policy may name are "remote_addr", the peer's address
// without its port, and "peer_identity", its authenticated name; both are
// gRPC's word and not the caller's.
class ServerCallView final : public CallView {
 public:
  ServerCallView(const ::grpc::ServerContextBase& context, Instant now)
      : context_(context), now_(now) {}

  // The caller's deadline is no header here, since gRPC takes it out; it is
  // shown as the "grpc-timeout" that would lead to it.
  std::optional<std::string_view> Header(std::string_view name,
                                         int nth) override;
  std::optional<std::string_view> Variable(std::string_view name) override;
  std::optional<http::Address> Peer() override;
  Instant Deadline() override;

 private:
  const ::grpc::ServerContextBase& context_;
  Instant now_;
  std::array<char, 24> timeout_{};
  std::string variable_;
};

// Monotonic; kNever for none.  gRPC counts from the same start as the clock of
// weir/host does, give or take its rounding to the millisecond.
Instant DeadlineOf(const ::grpc::ServerContextBase& context);
Instant InstantOf(gpr_timespec time);

// Notes in the metadata of an admitted call, for ScopeOf(), what was decided:
// as `weir-criticality` what it was decided by, and as `weir-degrade` its level
// when it is to be answered cheaper.  What its caller wrote there is gone: it
// may not have been trusted.
void NoteDecision(const ServiceGuard::Call& call,
                  const ::grpc::ServerContextBase& context);
// 0 when nothing was noted: in full.
uint8_t DegradeOf(const ::grpc::ServerContextBase& context);

// "ipv4:1.2.3.4:80", "ipv6:[::1]:80" (as "%5B::1%5D" too), "unix:..." as
// 127.0.0.1; who can connect to a unix socket is on this machine.
std::optional<http::Address> ParsePeer(std::string_view peer);

// Adds what comes with a refusal to the trailing metadata
// (`grpc-retry-pushback-ms`, `weir-reason`, `weir-level`), and returns the
// status to finish with; its details hold a google.rpc.Status with RetryInfo
// and ErrorInfo.
::grpc::Status Refuse(ServiceGuard& guard, const ServiceGuard::Call& call,
                      ::grpc::ServerContextBase& context, Instant now);

// How an admitted call ended that took `taken` and sent a status of `code`.
// What failed in less than half of `base_latency` failed before the work, and
// refusals by the service are no work either: these teach nothing.
Outcome Judge(::grpc::StatusCode code, Duration taken, Duration base_latency);

}  // namespace weir::grpc

#endif  // WEIR_ADAPTERS_GRPC_SERVER_CALL_H_
