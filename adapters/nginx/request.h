// What the module keeps for a client's request, and what it does at each step.
//
// Where the decision falls.  Last: after limit_req, limit_conn, access,
// auth_request, mirror and try_files, immediately before the content is made.
// Nothing that waits for somebody else may hold a place under the limit, and
// nothing but the service's own time may be learned as its latency.  The
// price: a `return` is neither guarded nor counted.
//
// The body.  A client may send its body slowly, and a place must not wait for
// that either.  So where nginx reads the whole body before it uses it, the
// decision falls when the last of it is here: a filter of request bodies holds
// the end back until there is a place.  The body is read by whom it is for, so
// nothing is read that nginx would not have read.  Where it goes to the service
// as it comes (gRPC, streams, upgrades, `proxy_request_buffering off`,
// `weir_request_buffering off`) the decision falls before it.  What would be
// refused with any room (paused, too late, all of a class) is refused unread.
//
// Deadlines.  What a caller states counts from when its request came; a default
// from when the service could have begun: when it was asked for.
//
// Once for each service.  The first location with `weir RESOURCE` that a
// request comes to decides.  Whatever follows at that service (internal
// redirects, try_files, named locations, error pages, X-Accel-Redirect) goes
// on under that decision, and its subrequests belong to it.  So the page that
// error_page gives for a refusal is not refused in turn.  A location of another
// service gives the place back and asks there; so does a subrequest to one.
//
// The end.  The place is given back when the answer has been made: when its
// last buffer, and those of its subrequests, have passed the body filter.  With
// buffering that is when the service has sent its last byte, however slowly the
// client reads.  Upgrades, event streams and resources with `stream = true`
// give it back with the header.  In every other ending (the client left, the
// upstream broke off, the worker shut down) the request's pool does it.
//
//   kNew -> kBody -> kWaiting -> kAdmitted -> kFinished
//      \_______\________\________-> kShed

#ifndef WEIR_ADAPTERS_NGINX_REQUEST_H_
#define WEIR_ADAPTERS_NGINX_REQUEST_H_

#include <optional>

#include "nginx_api.h"
#include "service.h"
#include "weir/decision.h"
#include "weir/http/answer.h"
#include "weir/permit.h"
#include "weir/time.h"
#include "weir/waiter.h"

namespace weir::nginx {

// What a location's maker of content does with a request's body.
enum class BodyUse : uint8_t {
  kUnknown,     // A module that we do not know, or none: files.
  kBuffered,    // Reads it whole, then asks the service.
  kUnbuffered,  // Hands it on as it comes.
};

// The module's configuration of a location, after merging.
struct Location {
  Service* service = nullptr;  // Of `weir_policy`.
  ngx_str_t resource{};        // Of `weir`; "off" too.
  ngx_str_t file{};            // Where `weir` stands.
  ngx_uint_t line = 0;
  ngx_flag_t request_buffering = 0;
  bool guarded = false;
  BodyUse body_use = BodyUse::kUnknown;
  size_t reference = 0;  // Handle for Service::resource(); when guarded.
};

// A decision for a request, or for a subrequest to another service.
struct Context : Waiter {
  enum class State : uint8_t {
    kNew,
    kBody,
    kWaiting,
    kAdmitted,
    kFinished,
    kShed
  };

  Service* service = nullptr;
  ngx_http_request_t* request = nullptr;
  Context* previous = nullptr;  // Of the same client's request.
  State state = State::kNew;
  bool trusted = false;     // What the headers say is believed.
  bool stream = false;      // Of a resource with `stream = true`.
  bool grpc = false;        // Wants a gRPC status.
  bool answered = false;    // A shed request got its answer.
  bool whole = false;       // The last buffer of the answer was made.
  bool held_back = false;   // See Ending.
  bool holds_body = false;  // The end of the body is held back.
  size_t reference = 0;
  Instant began{};  // When the request came.
  Instant asked{};  // When the guard was asked.
  Instant deadline{};
  Duration queue_delay{};
  Decision decision;
  Permit permit;
  http::Answer answer;
  // How the service failed before an error page took over.
  std::optional<Outcome> failed;
  // What nginx would do with what the client sends, while the body's end is
  // held back.
  ngx_http_event_handler_pt read_handler = nullptr;
};

// The newest of the request, or of the one that a subrequest belongs to; null
// when no decision was asked for.
Context* FindContext(ngx_http_request_t* r);

ngx_int_t HandlePrecontent(ngx_http_request_t* r);

// A piece of a request's body on its way to whom it is for, `next`.
ngx_int_t PassBody(ngx_http_request_t* r, ngx_chain_t* in,
                   ngx_http_request_body_filter_pt next);

// A request that waited has been decided: goes on with it.
void Resume(Waiter& waiter);

// See the header and the body of an answer on its way out.  The last buffer, if
// it is among `in`, is to be handed from BeforeAnswer() to AfterAnswer().
void BeforeHeader(ngx_http_request_t* r);
void AfterHeader(ngx_http_request_t* r);
ngx_buf_t* BeforeAnswer(ngx_http_request_t* r, ngx_chain_t* in);
void AfterAnswer(ngx_http_request_t* r, const ngx_buf_t* last, ngx_int_t rc);

// forward.cc: what the service is told with an admitted request.
//
// Sets the header `weir-degrade` of the request that goes to the service; at
// level 0 only one that the client brought.
ngx_int_t PassDegradeLevel(ngx_http_request_t* r, uint8_t level);
// Takes `spent` off the budgets in the headers of the policy's `deadline.from`.
ngx_int_t PassDeadline(ngx_http_request_t* r, const Policy& policy,
                       Duration spent);

// refusal.cc
ngx_int_t Refuse(Context& context);
void AddRefusalHeaders(ngx_http_request_t* r, const Context& context);
bool IsGrpcRequest(const ngx_http_request_t* r);

}  // namespace weir::nginx

#endif  // WEIR_ADAPTERS_NGINX_REQUEST_H_
