// What the module keeps for a client's request, and what it does at each step.
//
// Where the decision falls.  In the preaccess phase: the location is final
// then (rewrites are done, `return` has answered without asking the service,
// realip has put the client's address in place), and nothing costly has
// happened yet: no authentication, no upstream, no response.  The price: a
// `return` is neither guarded nor counted.
//
// Once for each client's request.  The first location with `weir RESOURCE`
// that the main request comes to decides.  Whatever follows (internal
// redirects, try_files, named locations, error pages, X-Accel-Redirect) goes
// on under that decision; subrequests belong to it.  So the page that
// error_page gives for a refusal is not refused in turn.
//
// The body first.  A client may send its body slowly, and a place under the
// limit must not wait for that.  So the body is read before the decision, as
// proxy_request_buffering would do after it; not when it is here already, nor
// for streams and gRPC, nor where `weir_request_buffering off` says so, nor
// while all requests of its class are being shed: then it is refused unread.
//
// The end.  The place is given back when the answer has been made: when its
// last buffer passes the body filter.  With buffering that is when the service
// has sent its last byte, however slowly the client reads.  Upgrades, event
// streams and resources with `stream = true` give it back with the header.  In
// every other ending (the client left, the upstream broke off, the worker shut
// down) the request's pool does it.
//
//   kNew -> kReading -> kWaiting -> kAdmitted -> kFinished
//      \________\_________\________-> kShed

#ifndef WEIR_ADAPTERS_NGINX_REQUEST_H_
#define WEIR_ADAPTERS_NGINX_REQUEST_H_

#include "nginx_api.h"
#include "service.h"
#include "weir/decision.h"
#include "weir/http/answer.h"
#include "weir/permit.h"
#include "weir/time.h"
#include "weir/waiter.h"

namespace weir::nginx {

// The module's configuration of a location, after merging.
struct Location {
  Service* service = nullptr;  // Of `weir_policy`.
  ngx_str_t resource{};        // Of `weir`; "off" too.
  ngx_str_t file{};            // Where `weir` stands.
  ngx_uint_t line = 0;
  ngx_flag_t request_buffering = 0;
  bool guarded = false;
  size_t reference = 0;  // Handle for Service::resource(); when guarded.
};

struct Context : Waiter {
  enum class State : uint8_t {
    kNew,
    kReading,
    kWaiting,
    kAdmitted,
    kFinished,
    kShed
  };

  Service* service = nullptr;
  ngx_http_request_t* request = nullptr;
  State state = State::kNew;
  bool stream = false;     // Of a resource with `stream = true`.
  bool grpc = false;       // Wants a gRPC status.
  bool answered = false;   // A shed request got its answer.
  bool whole = false;      // The last buffer of the answer was made.
  bool held_back = false;  // See Ending.
  size_t reference = 0;
  Instant began{};  // When it came here.
  Instant asked{};  // When the guard was asked.
  Duration queue_delay{};
  Decision decision;
  Permit permit;
  http::Answer answer;
};

// Of the main request; null when no decision was asked for.
Context* FindContext(ngx_http_request_t* r);

ngx_int_t HandlePreaccess(ngx_http_request_t* r);

// A request that waited has been decided: goes on with it.
void Resume(Waiter& waiter);

// See the header and the body of an answer on its way out.
void BeforeHeader(ngx_http_request_t* r);
void AfterHeader(ngx_http_request_t* r);
void BeforeBody(ngx_http_request_t* r, const ngx_chain_t* in);
void AfterBody(ngx_http_request_t* r, ngx_int_t rc);

// degrade.cc: sets the header `weir-degrade` of the request that goes to the
// service; at level 0 only one that the client brought.
ngx_int_t PassDegradeLevel(ngx_http_request_t* r, uint8_t level);

// refusal.cc
ngx_int_t Refuse(Context& context);
void AddRefusalHeaders(const Context& context);
bool IsGrpcRequest(const ngx_http_request_t* r);

}  // namespace weir::nginx

#endif  // WEIR_ADAPTERS_NGINX_REQUEST_H_
