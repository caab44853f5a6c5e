// Client calls one HTTP service with a ClientGuard around libcurl.
//
//   auto client = http::Client::Make({.url = "http://127.0.0.1:8080"});
//   http::Reply reply = (*client)->Call({.path = "/cart"}, scope);
//   if (!reply.ok()) Log(reply.Describe());
//
// Before each attempt the guard says whether to send it, after each whether to
// try again (weir/client/client_guard.h): throttle, breaker, learned level,
// retries under both budgets, hedges, deadlines.  What the server says is
// understood: Retry-After, grpc-retry-pushback-ms, weir-level, weir-reason.
// An attempt carries its criticality, its client, how many came before it, and
// the time that is left.
//
// What may be done twice is what the method says: POST and PATCH are tried
// again only when the service refused them or could not be connected to, and
// are never hedged, unless the request says `repeatable`.
//
// Redirects are answers like others; proxies of the environment are not used,
// since the guard would learn about the proxy.
//
// Threads: any; Call() blocks its own for as long as the call's deadline allows
// and ends at once when the scope is cancelled.  Connections are kept.

#ifndef WEIR_HTTP_CLIENT_H_
#define WEIR_HTTP_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/client/client_guard.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir::http {

// Names are kept as they came; look them up with Find().
using Headers = std::vector<std::pair<std::string, std::string>>;

// The value of the first header of that name, in any case; null when there is
// none.
const std::string* Find(const Headers& headers, std::string_view name);

struct ClientConfig {
  // http:// or https://, with a host, without a query; a path is put before
  // that of each request.
  std::string url;
  ClientPolicy policy{};
  // What all clients of the process share; null: this one has its own.
  std::shared_ptr<RetryAllowance> allowance{};
  // Longest wait for a connection; never beyond the deadline.  [1 ms, 5 min].
  Duration connect_timeout = std::chrono::seconds(1);
  // Longest answer; one that is longer is an error.  Chosen: plenty for an API.
  size_t max_body_bytes = size_t{16} << 20;
  // Most connections kept while nobody uses them.
  size_t idle_connections = 16;
  // Of the draws for backoff and probes; zero: the system's randomness.
  uint64_t seed = 0;
};

struct ClientRequest {
  std::string method = "GET";  // A token, as in RFC 9110.
  std::string path = "/";      // From its slash on; a query may follow.
  Headers headers{};
  std::string body{};
  // Whether it may be done twice, whatever its method.
  std::optional<bool> repeatable{};
};

struct Response {
  int status = 0;
  Headers headers{};
  std::string body{};

  // Why weir refused it (weir-reason); empty when it did not.
  std::string_view reason() const;
};

// What became of a call.
struct Reply {
  // Of the last attempt that was answered, a refusal included.
  std::optional<Response> response{};
  int32_t attempts = 0;  // That were sent.
  // When it failed: why it was not sent, or why it was not tried again.
  DropReason dropped = DropReason::kNone;
  Next::Why gave_up = Next::Why::kNone;
  // The failure is overload below: tell your own caller not to try again.
  bool never_retry_above = false;
  // What libcurl says about the last attempt that was not answered.
  std::string error{};

  // Answered: the service did it, or said what is wrong with the request.
  bool ok() const {
    return response && dropped == DropReason::kNone &&
           gave_up == Next::Why::kNone;
  }
  // For a log: "503, level, not tried again: budget".
  std::string Describe() const;
};

class Client {
 public:
  // Fails when the configuration breaks a rule; connects to nothing yet.
  static Result<std::unique_ptr<Client>> Make(const ClientConfig& config);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Calls, with retries.  A malformed request is never sent: its reply has an
  // `error` and no attempts.
  Reply Call(const ClientRequest& request, const CallScope& scope = {});

  ClientCounts counts() const;
  const ClientGuard& guard() const;

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::http

#endif  // WEIR_HTTP_CLIENT_H_
