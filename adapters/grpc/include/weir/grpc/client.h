// The caller's half of weir for gRPC.
//
//   auto shop = weir::grpc::GuardedChannel::Make(target, credentials);
//   auto stub = Shop::NewStub((*shop)->channel());
//
//   // In a handler, which has a ServerContext:
//   auto result = (*shop)->Call(ScopeOf(*context), [&](auto& call) {
//     return stub->Buy(&call, request, &response);
//   });
//   return Relay(result, *context);
//
// The scope carries what the caller of the handler wants on to the calls that
// are made for it: criticality, time that is left, and that it has gone.  It
// is passed explicitly; nothing is kept in threads.
//
// Every RPC of the channel passes the throttle, the breaker and the level that
// the server told, of one weir::ClientGuard for all of them.  What is dropped
// there ends at once with RESOURCE_EXHAUSTED, "dropped by weir: ..."; when no
// time was left, with DEADLINE_EXCEEDED.  Only Call() tries again; gRPC's own
// retries are off, since no interceptor sees them.

#ifndef WEIR_GRPC_CLIENT_H_
#define WEIR_GRPC_CLIENT_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/channel_arguments.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "weir/client/client_guard.h"
#include "weir/client/retry_budget.h"
#include "weir/result.h"

namespace weir::grpc {

struct ServerScope {
  CallScope scope{};
  // The call that is being served: when it is cancelled, so are those made for
  // it.  Must outlive them.  Null: none.
  const ::grpc::ServerContextBase* parent = nullptr;
  // How much cheaper than in full the call that is being served is to be
  // answered, as the policy's levels are numbered; 0: in full.  Not handed on.
  uint8_t degrade = 0;
};

// Of a call to a server of GuardedServerBuilder, or one that a CallPermit
// admitted: its criticality is the one that was decided by, and its degrade
// level the decision's.
ServerScope ScopeOf(const ::grpc::ServerContextBase& context);

struct CallResult {
  ::grpc::Status status;
  // The failure is overload below, and only the layer directly above the one
  // that refused may try again.
  bool never_retry_above = false;
  // Of the last attempt: kept at home, and why; or it found no connection, and
  // so nothing was sent.  Either way nothing was done, and another replica may
  // be asked at once, at no cost to the backend.
  DropReason dropped = DropReason::kNone;
  bool unreached = false;
  bool sent() const { return dropped == DropReason::kNone && !unreached; }
};

// The status for a handler to return.  Tells its caller not to try again where
// that is due: by push-back, and by RESOURCE_EXHAUSTED instead of UNAVAILABLE.
::grpc::Status Relay(const CallResult& result,
                     ::grpc::ServerContextBase& context);

class GuardedChannel {
 public:
  struct Options {
    ClientPolicy policy{};
    // What retries of several channels may cost together; null: what all that
    // name none share, RetryAllowance::OfProcess().
    std::shared_ptr<RetryAllowance> allowance{};
    // A lost connection is tried again after 100 ms to a second, where gRPC
    // itself waits up to two minutes, unless these say otherwise.
    ::grpc::ChannelArguments arguments{};
  };

  // Fails when the policy breaks a rule.
  static Result<std::shared_ptr<GuardedChannel>> Make(
      const std::string& target,
      const std::shared_ptr<::grpc::ChannelCredentials>& credentials,
      const Options& options);
  static Result<std::shared_ptr<GuardedChannel>> Make(
      const std::string& target,
      const std::shared_ptr<::grpc::ChannelCredentials>& credentials);
  ~GuardedChannel();

  // For stubs of any API.
  const std::shared_ptr<::grpc::Channel>& channel() const { return channel_; }
  const ClientGuard& guard() const;

  // Makes a unary call, and again as the policy's retries say; waits in this
  // thread between attempts.  `rpc` makes one attempt with the context it is
  // given, by a stub of this channel.
  CallResult Call(
      const ServerScope& scope,
      const std::function<::grpc::Status(::grpc::ClientContext&)>& rpc);

  // For calls by other APIs, and streams: a context with the scope's deadline,
  // less the policy's margin, its criticality and its cancellation.
  std::unique_ptr<::grpc::ClientContext> NewContext(const ServerScope& scope);

  // Of the channel and its interceptors; client.cc.
  struct State;

 private:
  GuardedChannel(std::shared_ptr<State> state,
                 std::shared_ptr<::grpc::Channel> channel);

  const std::shared_ptr<State> state_;
  const std::shared_ptr<::grpc::Channel> channel_;
};

}  // namespace weir::grpc

#endif  // WEIR_GRPC_CLIENT_H_
