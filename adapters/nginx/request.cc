#include "request.h"

#include <algorithm>
#include <array>
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

// The `grpc-status` among these headers or trailers; -1: none.
int FindGrpcStatus(const ngx_list_t& list) {
  constexpr std::string_view kName = "grpc-status";
  for (const ngx_list_part_t* part = &list.part; part != nullptr;
       part = part->next) {
    const auto* headers = static_cast<const ngx_table_elt_t*>(part->elts);
    for (ngx_uint_t i = 0; i < part->nelts; ++i) {
      const std::string_view key(
          reinterpret_cast<const char*>(headers[i].lowcase_key),
          headers[i].key.len);
      if (key != kName) continue;
      const auto status = ngx_atoi(headers[i].value.data, headers[i].value.len);
      return status == NGX_ERROR ? -1 : static_cast<int>(status);
    }
  }
  return -1;
}

int GrpcStatusOf(const ngx_http_request_t* r) {
  if (r->upstream == nullptr) return -1;
  const int status = FindGrpcStatus(r->upstream->headers_in.headers);
  return status >= 0 ? status
                     : FindGrpcStatus(r->upstream->headers_in.trailers);
}

Ending EndingOf(const Context& context, Instant now) {
  const ngx_http_request_t* r = context.request;
  Ending ending;
  ending.status = static_cast<int>(r->headers_out.status);
  ending.whole = context.whole;
  ending.client_gone = ending.status == NGX_HTTP_CLIENT_CLOSED_REQUEST ||
                       r->connection->error || r->connection->timedout;
  ending.held_back = context.held_back;
  ending.contact = ContactOf(r);
  // What the service said, whatever an error page made of it.
  if (ending.contact > Contact::kCache && r->upstream->state->status != 0) {
    ending.status = static_cast<int>(r->upstream->state->status);
  }
  if (context.grpc) ending.grpc_status = GrpcStatusOf(r);
  ending.taken = now - context.permit.admitted_at();
  ending.base_latency = FromSeconds(
      context.service->guard()->region().published.base_latency.load(
          std::memory_order_relaxed));
  return ending;
}

// How the service did so far, when another location takes over: an error page,
// or where X-Accel-Redirect leads.
Outcome JudgeSoFar(const Context& context, Instant now) {
  Ending ending = EndingOf(context, now);
  if (ending.contact == Contact::kNone) return Outcome::kIgnored;
  ending.whole = true;
  return Judge(ending);
}

void Finish(Context& context, Outcome outcome, Instant now) {
  context.state = State::kFinished;
  context.service->NoteRunning(-1);
  context.service->guard()->Finish(std::move(context.permit), outcome, now);
  context.service->Decided();
}

void Finish(Context& context) {
  const Instant now = Now();
  const Ending ending = EndingOf(context, now);
  const Outcome outcome = Judge(ending);
  const bool gone = outcome == Outcome::kCancelled;
  Finish(context, gone ? outcome : context.failed.value_or(outcome), now);
}

// The contexts of a client's request and its subrequests; in a cleanup of their
// pool.
struct Contexts {
  Context* newest = nullptr;
  // When the budgets in its headers were as they are now.
  Instant stated{};
};

void CleanUp(void* data) {
  for (Context* c = static_cast<Contexts*>(data)->newest; c != nullptr;) {
    Context* const previous = c->previous;
    switch (c->state) {
      case State::kAdmitted:
        Finish(*c);
        break;
      case State::kWaiting:
        c->service->NoteWaiting(-1);
        c->service->guard()->Cancel(*c, Now());
        c->service->Decided();
        break;
      default:
        break;
    }
    c->~Context();
    c = previous;
  }
}

Contexts* FindContexts(const ngx_http_request_t* r) {
  for (ngx_pool_cleanup_t* c = r->pool->cleanup; c != nullptr; c = c->next) {
    if (c->handler == CleanUp) return static_cast<Contexts*>(c->data);
  }
  return nullptr;
}

// In place of a context: a subrequest without one, whose answer is whole.
Context whole_answer;

// Of this request alone; null when there is none.
Context* OwnContext(ngx_http_request_t* r) {
  auto* context =
      static_cast<Context*>(ngx_http_get_module_ctx(r, ngx_http_weir_module));
  if (context == &whole_answer) return nullptr;
  // An internal redirect forgets the contexts of all modules.
  if (context != nullptr || (!r->internal && !r->filter_finalize)) {
    return context;
  }
  const Contexts* const all = FindContexts(r);
  if (all == nullptr) return nullptr;
  for (context = all->newest; context != nullptr; context = context->previous) {
    if (context->request != r) continue;
    ngx_http_set_ctx(r, context, ngx_http_weir_module);
    return context;
  }
  return nullptr;
}

// When the request came, by nginx's clock of milliseconds.
Instant CameAt(const ngx_http_request_t* r, Instant now) {
  const ngx_time_t* const time = ngx_timeofday();
  const int64_t ms =
      (time->sec - r->start_sec) * 1000 +
      (static_cast<int64_t>(time->msec) - static_cast<int64_t>(r->start_msec));
  return now - std::chrono::milliseconds(std::max<int64_t>(ms, 0));
}

Contexts* MakeContexts(ngx_http_request_t* r) {
  ngx_pool_cleanup_t* cleanup = ngx_pool_cleanup_add(r->pool, sizeof(Contexts));
  if (cleanup == nullptr) return nullptr;
  auto* all = new (cleanup->data) Contexts;
  cleanup->handler = CleanUp;
  all->stated = CameAt(r->main, Now());
  return all;
}

Context* MakeContext(ngx_http_request_t* r, const Location& location) {
  Contexts* all = FindContexts(r);
  if (all == nullptr) all = MakeContexts(r);
  if (all == nullptr) return nullptr;
  void* memory = ngx_palloc(r->pool, sizeof(Context));
  if (memory == nullptr) return nullptr;
  auto* context = new (memory) Context;
  context->service = location.service;
  context->request = r;
  context->began = all->stated;
  context->grpc = IsGrpcRequest(r);
  context->previous = all->newest;
  all->newest = context;
  ngx_http_set_ctx(r, context, ngx_http_weir_module);
  return context;
}

// Tells the service what it should know.  Without memory it answers in full,
// and hears of the budget that its caller stated.
void Forward(Context& context, Instant now) {
  ngx_http_request_t* r = context.request;
  // A subrequest has the headers of its request.
  if (r != r->main) return;
  static_cast<void>(PassDegradeLevel(r, context.decision.degrade));
  const Duration spent = now - context.began;
  if (!context.trusted || spent < std::chrono::milliseconds(1)) return;
  const Policy& policy = context.service->policy();
  if (PassDeadline(r, policy, spent) == NGX_OK) FindContexts(r)->stated = now;
}

void Admitted(Context& context, Decision decision, Permit permit) {
  context.decision = decision;
  const Instant now = permit.admitted_at();
  context.queue_delay = now - context.asked;
  context.permit = std::move(permit);
  context.state = State::kAdmitted;
  context.service->NoteRunning(1);
  Forward(context, now);
}

void Shed(Context& context, Decision decision, Instant now) {
  context.decision = decision;
  context.queue_delay = now - context.asked;
  context.state = State::kShed;
  context.answer = http::AnswerTo(decision, context.service->policy(),
                                  now >= context.deadline,
                                  // ngx_random() has 31 bits.
                                  static_cast<uint32_t>(ngx_random()) << 1);
}

Request Ask(Context& context, Instant now) {
  const Policy& policy = context.service->policy();
  ngx_http_request_t* r = context.request;
  RequestProperties properties(r);
  context.trusted = IsTrustedPeer(policy, r->connection->sockaddr);
  const Request request =
      http::ReadRequest(policy, context.service->resource(context.reference),
                        context.trusted, properties, context.began, now);
  context.asked = now;
  context.deadline = request.deadline;
  context.stream = policy.resources[request.resource].stream;
  return request;
}

void Take(Context& context, Admission admission) {
  switch (admission.decision.verdict) {
    case Verdict::kQueue:
      context.state = State::kWaiting;
      context.service->NoteWaiting(1);
      break;
    case Verdict::kAdmit:
      Admitted(context, admission.decision, std::move(admission.permit));
      break;
    case Verdict::kShed:
      Shed(context, admission.decision, context.asked);
      break;
  }
  context.service->Decided();
}

void Decide(Context& context, const Request& request) {
  Take(context,
       context.service->guard()->Admit(request, context, context.asked));
}

// Notices a client that leaves; also one that has left already.
ngx_int_t WatchClient(ngx_http_request_t* r) {
  ngx_event_t* read = r->connection->read;
  if (read->ready && r->stream == nullptr) {
    ngx_post_event(read, &ngx_posted_events);
  } else if (ngx_handle_read_event(read, 0) != NGX_OK) {
    return NGX_HTTP_INTERNAL_SERVER_ERROR;
  }
  return NGX_OK;
}

ngx_int_t WaitInPhase(ngx_http_request_t* r) {
  r->write_event_handler = ngx_http_request_empty_handler;
  if (r != r->main) return NGX_AGAIN;
  r->read_event_handler = ngx_http_test_reading;
  const ngx_int_t rc = WatchClient(r);
  return rc == NGX_OK ? NGX_AGAIN : rc;
}

bool HasBodyToCome(const ngx_http_request_t* r) {
  if (r != r->main || r->request_body != nullptr) return false;
#if (NGX_HTTP_V2)
  if (r->stream != nullptr) return !r->stream->in_closed;
#endif
  if (r->headers_in.chunked) return true;
  const off_t here = r->header_in->last - r->header_in->pos;
  return r->headers_in.content_length_n > here;
}

// Whether whoever makes the content reads the whole body before he uses it.
bool ReadsWholeBody(const ngx_http_request_t* r, BodyUse use) {
  if (use != BodyUse::kUnknown) return use == BodyUse::kBuffered;
  // Files, and modules that we do not know, throw away what comes with these.
  return (r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)) == 0;
}

bool DecidesAfterBody(const Context& context, const Location& location,
                      const Request& request) {
  const ngx_http_request_t* r = context.request;
  const Policy& policy = context.service->policy();
  const Resource& resource = policy.resources[request.resource];
  return location.request_buffering && HasBodyToCome(r) && !context.grpc &&
         !resource.stream && !resource.exempt &&
         r->headers_in.upgrade == nullptr &&
         ReadsWholeBody(r, location.body_use);
}

// What the phase is to do with a request in this state.
ngx_int_t GoOn(Context& context) {
  switch (context.state) {
    case State::kWaiting:
      return WaitInPhase(context.request);
    case State::kShed:
      return context.answered ? NGX_DECLINED : Refuse(context);
    default:
      return NGX_DECLINED;
  }
}

ngx_int_t Consider(Context& context, const Location& location) {
  context.reference = location.reference;
  const Request request = Ask(context, Now());
  const Guard& guard = *context.service->guard();
  if (DecidesAfterBody(context, location, request) &&
      !guard.IsRefusedAnyhow(request, context.asked)) {
    context.state = State::kBody;
    return NGX_DECLINED;
  }
  Decide(context, request);
  return GoOn(context);
}

const Location& LocationOf(ngx_http_request_t* r) {
  return *static_cast<const Location*>(
      ngx_http_get_module_loc_conf(r, ngx_http_weir_module));
}

// Whether one of those that a subrequest is for has been decided for that
// service.  What comes before the decision (auth_request, mirror) has not.
bool BelongsToItsRequest(ngx_http_request_t* r, const Service* service) {
  for (ngx_http_request_t* of = r->parent; of != nullptr; of = of->parent) {
    const Context* const context = OwnContext(of);
    if (context != nullptr && context->service == service) return true;
  }
  return false;
}

// An internal redirect leads away from the service that `context` is for.
void Leave(Context& context) {
  if (context.state != State::kAdmitted) return;
  const Instant now = Now();
  Finish(context, JudgeSoFar(context, now), now);
}

// An internal redirect within the service.
void NoteFailure(Context& context) {
  if (context.failed || !context.request->internal) return;
  const Outcome outcome = JudgeSoFar(context, Now());
  if (context.request->err_status != 0 && outcome != Outcome::kOk) {
    context.failed = outcome;
  }
}

bool IsWhole(ngx_http_request_t* sub) {
  if (sub->done) return true;
  const void* const slot = ngx_http_get_module_ctx(sub, ngx_http_weir_module);
  if (slot == &whole_answer) return true;
  const Context* const context = OwnContext(sub);
  return context != nullptr && context->whole;
}

bool SubrequestsAreWhole(ngx_http_request_t* r) {
  // What is left of a page with server side includes may ask for more.
  if (r->buffered & NGX_HTTP_SSI_BUFFERED) return false;
  for (const ngx_http_postponed_request_t* p = r->postponed; p != nullptr;
       p = p->next) {
    if (p->request == nullptr) continue;
    if (!IsWhole(p->request) || !SubrequestsAreWhole(p->request)) return false;
  }
  return true;
}

void NoteWhole(ngx_http_request_t* r) {
  Context* const context = OwnContext(r);
  if (context != nullptr) {
    context->whole = true;
  } else if (r != r->main) {
    ngx_http_set_ctx(r, &whole_answer, ngx_http_weir_module);
  }
}

// Gives the places back of whom the end of `r` was the last thing to wait for.
void FinishWhatIsWhole(ngx_http_request_t* r) {
  for (; r != nullptr; r = r->parent) {
    Context* const context = OwnContext(r);
    if (context == nullptr || context->state != State::kAdmitted) continue;
    if (context->whole && SubrequestsAreWhole(r)) Finish(*context);
  }
}

bool EndsAnswer(const ngx_http_request_t* r, const ngx_buf_t& buffer) {
  return buffer.last_buf || (r != r->main && buffer.last_in_chain);
}

// auth_request makes 500 of a subrequest that was shed.
void SayWhoRefused(ngx_http_request_t* r) {
  if (r->headers_out.status != NGX_HTTP_INTERNAL_SERVER_ERROR) return;
  const Contexts* const all = FindContexts(r);
  if (all == nullptr || all->newest == nullptr) return;
  const Context& newest = *all->newest;
  if (newest.request->parent != r || newest.state != State::kShed) return;
  r->headers_out.status = static_cast<ngx_uint_t>(newest.answer.status);
  ngx_str_null(&r->headers_out.status_line);
  AddRefusalHeaders(r, newest);
}

// What nginx would do while a body comes, without the end of the body: it
// waits for a place, not for the client.
void ReadWhileWaiting(ngx_http_request_t* r) {
  r->connection->read->timedout = 0;
  ngx_http_test_reading(r);
}

void HoldReading(Context& context) {
  ngx_http_request_t* r = context.request;
  if (r->read_event_handler == ReadWhileWaiting) return;
  context.read_handler = r->read_event_handler;
  r->read_event_handler = ReadWhileWaiting;
}

ngx_int_t PassEndOfBody(ngx_http_request_t* r,
                        ngx_http_request_body_filter_pt next) {
  ngx_chain_t* end = ngx_alloc_chain_link(r->pool);
  if (end == nullptr) return NGX_HTTP_INTERNAL_SERVER_ERROR;
  end->buf = static_cast<ngx_buf_t*>(ngx_calloc_buf(r->pool));
  if (end->buf == nullptr) return NGX_HTTP_INTERNAL_SERVER_ERROR;
  end->buf->last_buf = 1;
  end->next = nullptr;
  return next(r, end);
}

ngx_buf_t* FindEndOfBody(ngx_chain_t* in) {
  for (; in != nullptr; in = in->next) {
    if (in->buf->last_buf) return in->buf;
  }
  return nullptr;
}

// The body goes to the service as it comes, which the configuration did not
// tell: there is no waiting any more.
void DecideWithoutWaiting(Context& context) {
  const Request request = Ask(context, Now());
  Take(context, context.service->guard()->Admit(request, context.asked));
}

// Lets nginx go on reading: it comes to PassBody(), which passes the end on.
void ResumeBody(Context& context) {
  ngx_http_request_t* r = context.request;
  ngx_event_t* read = r->connection->read;
  r->read_event_handler = context.read_handler;
  if (read->timer_set) {
    ngx_del_timer(read);
  }
  read->timedout = 0;
  if (context.state == State::kShed) {
    ngx_http_finalize_request(r, Refuse(context));
  } else {
    r->read_event_handler(r);
  }
}

}  // namespace

Context* FindContext(ngx_http_request_t* r) {
  Context* const own = OwnContext(r);
  return own != nullptr || r == r->main ? own : OwnContext(r->main);
}

ngx_int_t HandlePrecontent(ngx_http_request_t* r) {
  const Location& location = LocationOf(r);
  Context* context = OwnContext(r);
  if (context != nullptr &&
      (!location.guarded || location.service != context->service)) {
    Leave(*context);
    context = nullptr;
  }
  if (!location.guarded) return NGX_DECLINED;
  if (context == nullptr) {
    if (BelongsToItsRequest(r, location.service)) return NGX_DECLINED;
    context = MakeContext(r, location);
    if (context == nullptr) return NGX_HTTP_INTERNAL_SERVER_ERROR;
  }
  switch (context->state) {
    case State::kNew:
    case State::kBody:
      if (location.service->Enter() == nullptr) return NGX_DECLINED;
      return Consider(*context, location);
    case State::kAdmitted:
      NoteFailure(*context);
      return NGX_DECLINED;
    default:
      return GoOn(*context);
  }
}

ngx_int_t PassBody(ngx_http_request_t* r, ngx_chain_t* in,
                   ngx_http_request_body_filter_pt next) {
  Context* const context = OwnContext(r);
  if (context == nullptr) return next(r, in);
  if (context->holds_body) {
    if (context->state == State::kWaiting) {
      HoldReading(*context);
      return next(r, in);
    }
    context->holds_body = false;
    return PassEndOfBody(r, next);
  }
  if (context->state != State::kBody) return next(r, in);
  // A worker that leaves may have given its shard back since.
  if (context->service->Enter() == nullptr) return next(r, in);
  ngx_buf_t* const end = FindEndOfBody(in);
  if (r->request_body_no_buffering) {
    DecideWithoutWaiting(*context);
  } else if (end != nullptr) {
    Decide(*context, Ask(*context, Now()));
  } else {
    return next(r, in);
  }
  if (context->state == State::kShed) return Refuse(*context);
  if (context->state == State::kWaiting) {
    end->last_buf = 0;
    context->holds_body = true;
    HoldReading(*context);
  }
  return next(r, in);
}

void Resume(Waiter& waiter) {
  auto& context = static_cast<Context&>(waiter);
  ngx_http_request_t* r = context.request;
  ngx_connection_t* c = r->connection;
  context.service->NoteWaiting(-1);
  if (waiter.decision().verdict == Verdict::kAdmit) {
    Admitted(context, waiter.decision(), waiter.TakePermit());
  } else {
    Shed(context, waiter.decision(), Now());
  }
  ngx_http_set_log_request(c->log, r);
  if (context.holds_body) {
    ResumeBody(context);
  } else {
    if (r == r->main) r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_core_run_phases;
    ngx_http_core_run_phases(r);  // Comes back to HandlePrecontent().
  }
  ngx_http_run_posted_requests(c);
}

void BeforeHeader(ngx_http_request_t* r) {
  Context* context = OwnContext(r);
  if (context == nullptr) return SayWhoRefused(r);
  if (context->state == State::kShed) {
    return AddRefusalHeaders(r, *context);
  }
  if (context->state != State::kAdmitted) return;
  constexpr std::string_view kEvents = "text/event-stream";
  const std::string_view type = View(r->headers_out.content_type);
  if (context->stream || type.substr(0, kEvents.size()) == kEvents ||
      r->headers_out.status == NGX_HTTP_SWITCHING_PROTOCOLS) {
    Finish(*context, Outcome::kIgnored, Now());
  }
}

void AfterHeader(ngx_http_request_t* r) {
  if (!r->header_only || FindContext(r) == nullptr) return;
  NoteWhole(r);
  FinishWhatIsWhole(r);
}

ngx_buf_t* BeforeAnswer(ngx_http_request_t* r, ngx_chain_t* in) {
  if (FindContext(r) == nullptr) return nullptr;
  for (; in != nullptr; in = in->next) {
    if (EndsAnswer(r, *in->buf)) return in->buf;
  }
  return nullptr;
}

void AfterAnswer(ngx_http_request_t* r, const ngx_buf_t* last, ngx_int_t rc) {
  Context* const context = FindContext(r);
  if (context == nullptr) return;
  // Who has more to add (slices, a page that is appended) takes the mark off.
  if (last != nullptr && EndsAnswer(r, *last)) NoteWhole(r);
  if (rc == NGX_AGAIN && r->upstream != nullptr && !context->whole &&
      // Else nginx takes all from the service, into a file if need be.
      !(r->upstream->buffering && r->upstream->conf->max_temp_file_size > 0)) {
    context->held_back = true;
  }
  FinishWhatIsWhole(r);
}

}  // namespace weir::nginx
