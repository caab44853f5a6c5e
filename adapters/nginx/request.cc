#include "request.h"

#include <algorithm>
#include <new>
#include <utility>

#include "outcome.h"
#include "weir/host/clock.h"
#include "weir/http/request_inputs.h"

namespace weir::nginx {
namespace {

using State = Context::State;

Instant Now() { return host::MonotonicClock::Now(); }

// nginx's view of a request, for http::ReadRequest().
class RequestProperties final : public http::Properties {
 public:
  explicit RequestProperties(ngx_http_request_t* r) : r_(r) {}

  std::optional<std::string_view> Header(std::string_view name,
                                         int nth) override {
    for (const ngx_list_part_t* part = &r_->headers_in.headers.part;
         part != nullptr; part = part->next) {
      const auto* headers = static_cast<const ngx_table_elt_t*>(part->elts);
      for (ngx_uint_t i = 0; i < part->nelts; ++i) {
        const std::string_view key(
            reinterpret_cast<const char*>(headers[i].lowcase_key),
            headers[i].key.len);
        if (key == name && nth-- == 0) return View(headers[i].value);
      }
    }
    return std::nullopt;
  }

  std::optional<std::string_view> Variable(std::string_view name) override {
    ngx_str_t text = Text(name);
    const ngx_uint_t hash = ngx_hash_key(text.data, text.len);
    const ngx_http_variable_value_t* value =
        ngx_http_get_variable(r_, &text, hash);
    if (value == nullptr || value->not_found || !value->valid) {
      return std::nullopt;
    }
    return std::string_view(reinterpret_cast<const char*>(value->data),
                            value->len);
  }

 private:
  ngx_http_request_t* r_;
};

// Whether the peer's headers are believed.  Who can connect to a unix socket
// is on this machine, so counts as 127.0.0.1.
bool IsTrustedPeer(const Policy& policy, const sockaddr* peer) {
  if (policy.trusted.empty()) return false;
  http::Address address{};
  switch (peer->sa_family) {
    case AF_INET: {
      const auto* in = reinterpret_cast<const sockaddr_in*>(peer);
      std::array<uint8_t, 4> bytes;
      ngx_memcpy(bytes.data(), &in->sin_addr, bytes.size());
      address = http::MapIPv4(bytes);
      break;
    }
    case AF_INET6: {
      const auto* in6 = reinterpret_cast<const sockaddr_in6*>(peer);
      ngx_memcpy(address.data(), &in6->sin6_addr, address.size());
      break;
    }
    case AF_UNIX:
      address = http::MapIPv4({127, 0, 0, 1});
      break;
    default:
      return false;
  }
  return http::IsTrusted(policy.trusted, address);
}

Contact ContactOf(const ngx_http_request_t* r) {
  const ngx_http_upstream_t* u = r->upstream;
  if (u == nullptr) return Contact::kNone;
  if (u->state == nullptr) return Contact::kCache;
  constexpr auto kUnset = static_cast<ngx_msec_t>(-1);
  if (u->state->header_time != kUnset) return Contact::kAnswered;
  return u->state->connect_time == kUnset ? Contact::kNotReached
                                          : Contact::kNoAnswer;
}

void Finish(Context& context, Outcome outcome, Instant now) {
  context.state = State::kFinished;
  context.service->guard()->Finish(std::move(context.permit), outcome, now);
  context.service->Decided();
}

void Finish(Context& context) {
  const ngx_http_request_t* r = context.request;
  Guard& guard = *context.service->guard();
  const Instant now = Now();
  Ending ending;
  ending.status = static_cast<int>(r->headers_out.status);
  ending.whole = context.whole;
  ending.client_gone = ending.status == NGX_HTTP_CLIENT_CLOSED_REQUEST ||
                       r->connection->error || r->connection->timedout;
  ending.held_back = context.held_back;
  ending.contact = ContactOf(r);
  ending.taken = now - context.permit.admitted_at();
  ending.base_latency = FromSeconds(
      guard.region().published.base_latency.load(std::memory_order_relaxed));
  Finish(context, Judge(ending), now);
}

void CleanUp(void* data) {
  auto* context = static_cast<Context*>(data);
  Guard* guard = context->service->guard();
  switch (context->state) {
    case State::kAdmitted:
      Finish(*context);
      break;
    case State::kWaiting:
      context->service->NoteWaiting(-1);
      guard->Cancel(*context, Now());
      context->service->Decided();
      break;
    default:
      break;
  }
  context->~Context();
}

Context* MakeContext(ngx_http_request_t* r, const Location& location) {
  ngx_pool_cleanup_t* cleanup = ngx_pool_cleanup_add(r->pool, sizeof(Context));
  if (cleanup == nullptr) return nullptr;
  auto* context = new (cleanup->data) Context;
  cleanup->handler = CleanUp;
  context->service = location.service;
  context->request = r;
  context->reference = location.reference;
  context->began = Now();
  ngx_http_set_ctx(r, context, ngx_http_weir_module);
  return context;
}

void Admitted(Context& context, Decision decision, Permit permit) {
  context.decision = decision;
  context.queue_delay = permit.admitted_at() - context.asked;
  context.permit = std::move(permit);
  context.state = State::kAdmitted;
  // Without memory the service answers in full.
  static_cast<void>(PassDegradeLevel(context.request, decision.degrade));
}

void Shed(Context& context, Decision decision, Instant deadline, Instant now) {
  context.decision = decision;
  context.queue_delay = now - context.asked;
  context.state = State::kShed;
  context.answer = http::AnswerTo(decision, context.service->guard()->policy(),
                                  now >= deadline,
                                  // ngx_random() has 31 bits.
                                  static_cast<uint32_t>(ngx_random()) << 1);
}

ngx_int_t Wait(Context& context) {
  ngx_http_request_t* r = context.request;
  ngx_event_t* read = r->connection->read;
  context.state = State::kWaiting;
  context.service->NoteWaiting(1);
  context.service->Decided();
  // Notices a client that leaves; also one that has left already.
  r->read_event_handler = ngx_http_test_reading;
  r->write_event_handler = ngx_http_request_empty_handler;
  if (read->ready && r->stream == nullptr) {
    ngx_post_event(read, &ngx_posted_events);
  } else if (ngx_handle_read_event(read, 0) != NGX_OK) {
    return NGX_HTTP_INTERNAL_SERVER_ERROR;
  }
  return NGX_AGAIN;
}

Request Ask(Context& context, Instant now) {
  const Policy& policy = context.service->guard()->policy();
  ngx_http_request_t* r = context.request;
  RequestProperties properties(r);
  Request request =
      http::ReadRequest(policy, context.service->resource(context.reference),
                        IsTrustedPeer(policy, r->connection->sockaddr),
                        properties, context.began);
  request.arrived = now;  // A body's upload is no queue; it eats the budget.
  return request;
}

ngx_int_t Decide(Context& context, const Request& request) {
  const Policy& policy = context.service->guard()->policy();
  const Instant now = request.arrived;
  context.asked = now;
  context.stream = policy.resources[request.resource].stream;
  Admission admission = context.service->guard()->Admit(request, context, now);
  switch (admission.decision.verdict) {
    case Verdict::kQueue:
      return Wait(context);
    case Verdict::kAdmit:
      Admitted(context, admission.decision, std::move(admission.permit));
      break;
    case Verdict::kShed:
      Shed(context, admission.decision, request.deadline, now);
      break;
  }
  context.service->Decided();
  return context.state == State::kShed ? Refuse(context) : NGX_DECLINED;
}

// Whether all of a class are being shed, so that a body need not be read.
bool ClassIsShed(const Guard& guard, Criticality criticality) {
  const Region::Flags& flags = guard.region().flags;
  if (flags.overloaded.load(std::memory_order_relaxed) == 0) return false;
  const int64_t highest = 128 * (3 - static_cast<int64_t>(criticality)) + 127;
  return highest < flags.level.load(std::memory_order_relaxed);
}

bool HasBodyToCome(const ngx_http_request_t* r) {
#if (NGX_HTTP_V2)
  if (r->stream != nullptr) return !r->stream->in_closed;
#endif
  if (r->headers_in.chunked) return true;
  const off_t here = r->header_in->last - r->header_in->pos;
  return r->headers_in.content_length_n > here;
}

bool WantsBodyFirst(const Context& context, const Location& location,
                    const Request& request) {
  const ngx_http_request_t* r = context.request;
  const Guard& guard = *context.service->guard();
  const Resource& resource = guard.policy().resources[request.resource];
  return location.request_buffering && HasBodyToCome(r) && !context.grpc &&
         !resource.stream && !resource.exempt &&
         r->headers_in.upgrade == nullptr &&
         !ClassIsShed(guard, request.criticality);
}

void BodyIsHere(ngx_http_request_t* r) {
  r->write_event_handler = ngx_http_core_run_phases;
  ngx_http_core_run_phases(r);  // Comes back to HandlePreaccess().
}

ngx_int_t ReadBody(Context& context) {
  context.state = State::kReading;
  ngx_http_request_t* r = context.request;
  const ngx_int_t rc = ngx_http_read_client_request_body(r, BodyIsHere);
  if (rc >= NGX_HTTP_SPECIAL_RESPONSE) return rc;
  ngx_http_finalize_request(r, NGX_DONE);
  return NGX_DONE;
}

ngx_int_t Begin(ngx_http_request_t* r, const Location& location) {
  Context* context = MakeContext(r, location);
  if (context == nullptr) return NGX_HTTP_INTERNAL_SERVER_ERROR;
  context->grpc = IsGrpcRequest(r);
  const Request request = Ask(*context, context->began);
  if (WantsBodyFirst(*context, location, request)) return ReadBody(*context);
  return Decide(*context, request);
}

}  // namespace

Context* FindContext(ngx_http_request_t* r) {
  r = r->main;
  auto* context =
      static_cast<Context*>(ngx_http_get_module_ctx(r, ngx_http_weir_module));
  // An internal redirect forgets the contexts of all modules.
  if (context != nullptr || (!r->internal && !r->filter_finalize)) {
    return context;
  }
  for (ngx_pool_cleanup_t* c = r->pool->cleanup; c != nullptr; c = c->next) {
    if (c->handler == CleanUp) {
      context = static_cast<Context*>(c->data);
      ngx_http_set_ctx(r, context, ngx_http_weir_module);
      return context;
    }
  }
  return nullptr;
}

ngx_int_t HandlePreaccess(ngx_http_request_t* r) {
  const auto* location = static_cast<const Location*>(
      ngx_http_get_module_loc_conf(r, ngx_http_weir_module));
  if (!location->guarded || r != r->main) return NGX_DECLINED;
  Context* context = FindContext(r);
  if (context == nullptr) {
    if (location->service->guard() == nullptr) return NGX_DECLINED;
    return Begin(r, *location);
  }
  switch (context->state) {
    case State::kReading:
      return Decide(*context, Ask(*context, Now()));
    case State::kWaiting:
      return NGX_AGAIN;
    case State::kShed:
      return context->answered ? NGX_DECLINED : Refuse(*context);
    default:
      return NGX_DECLINED;
  }
}

void Resume(Waiter& waiter) {
  auto& context = static_cast<Context&>(waiter);
  ngx_http_request_t* r = context.request;
  ngx_connection_t* c = r->connection;
  context.service->NoteWaiting(-1);
  if (waiter.decision().verdict == Verdict::kAdmit) {
    Admitted(context, waiter.decision(), waiter.TakePermit());
  } else {
    Shed(context, waiter.decision(), waiter.request().deadline, Now());
  }
  ngx_http_set_log_request(c->log, r);
  r->read_event_handler = ngx_http_block_reading;
  r->write_event_handler = ngx_http_core_run_phases;
  ngx_http_core_run_phases(r);  // Comes back to HandlePreaccess().
  ngx_http_run_posted_requests(c);
}

void BeforeHeader(ngx_http_request_t* r) {
  Context* context = FindContext(r);
  if (r != r->main || context == nullptr) return;
  if (context->state == State::kShed) return AddRefusalHeaders(*context);
  if (context->state != State::kAdmitted) return;
  constexpr std::string_view kEvents = "text/event-stream";
  const std::string_view type = View(r->headers_out.content_type);
  if (context->stream || type.substr(0, kEvents.size()) == kEvents ||
      r->headers_out.status == NGX_HTTP_SWITCHING_PROTOCOLS) {
    Finish(*context, Outcome::kIgnored, Now());
  }
}

void AfterHeader(ngx_http_request_t* r) {
  if (r != r->main || !r->header_only) return;
  Context* context = FindContext(r);
  if (context == nullptr || context->state != State::kAdmitted) return;
  context->whole = true;
  Finish(*context);
}

void BeforeBody(ngx_http_request_t* r, const ngx_chain_t* in) {
  if (r != r->main) return;
  Context* context = FindContext(r);
  if (context == nullptr || context->state != State::kAdmitted) return;
  for (; in != nullptr; in = in->next) {
    if (!in->buf->last_buf) continue;
    context->whole = true;
    Finish(*context);
    return;
  }
}

void AfterBody(ngx_http_request_t* r, ngx_int_t rc) {
  if (r != r->main || rc != NGX_AGAIN || r->upstream == nullptr) return;
  // Else nginx takes all from the service, into a file if need be.
  if (r->upstream->buffering && r->upstream->conf->max_temp_file_size > 0) {
    return;
  }
  Context* context = FindContext(r);
  if (context != nullptr) context->held_back = true;
}

}  // namespace weir::nginx
