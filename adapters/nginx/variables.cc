#include "variables.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "request.h"

namespace weir::nginx {
namespace {

using State = Context::State;
using Value = ngx_http_variable_value_t;

// Where a request stands, in words.  Who asks while it waits asks at its end:
// nothing else runs then, and so its client has gone.
struct Standing {
  std::string_view decision = "off";
  std::string_view reason;  // Empty: none.
};

Standing StandingOf(const Context* context) {
  if (context == nullptr) return {};
  switch (context->state) {
    case State::kNew:
    case State::kBody:
      return {};
    case State::kWaiting:
      return {"shed", Name(Reason::kCancelled)};
    case State::kAdmitted:
    case State::kFinished:
      return {"admit", Name(context->decision.reason)};
    case State::kShed:
      return {"shed", Name(context->decision.reason)};
  }
  return {};
}

ngx_int_t Set(Value* value, std::string_view text) {
  const ngx_str_t str = Text(text);
  value->len = static_cast<unsigned>(str.len) & 0x0fffffff;
  value->data = str.data;
  value->valid = 1;
  value->no_cacheable = 0;
  value->not_found = text.empty();
  return NGX_OK;
}

ngx_int_t SetCopy(ngx_http_request_t* r, Value* value, std::string_view text) {
  auto* copy = static_cast<u_char*>(ngx_pnalloc(r->pool, text.size()));
  if (copy == nullptr) return NGX_ERROR;
  ngx_memcpy(copy, text.data(), text.size());
  return Set(value, {reinterpret_cast<const char*>(copy), text.size()});
}

ngx_int_t GetDecision(ngx_http_request_t* r, Value* value, uintptr_t) {
  return Set(value, StandingOf(FindContext(r)).decision);
}

ngx_int_t GetReason(ngx_http_request_t* r, Value* value, uintptr_t) {
  return Set(value, StandingOf(FindContext(r)).reason);
}

ngx_int_t GetDegrade(ngx_http_request_t* r, Value* value, uintptr_t) {
  const Context* context = FindContext(r);
  if (StandingOf(context).decision != "admit") return Set(value, {});
  constexpr std::string_view kDigits = "0123456789";
  return Set(value, kDigits.substr(context->decision.degrade, 1));
}

ngx_int_t GetQueueMs(ngx_http_request_t* r, Value* value, uintptr_t) {
  const Context* context = FindContext(r);
  if (StandingOf(context).reason.empty()) return Set(value, {});
  Duration delay = context->queue_delay;
  if (context->state == State::kWaiting) {
    delay = host::MonotonicClock::Now() - context->asked;
  }
  const int64_t us =
      std::chrono::duration_cast<std::chrono::microseconds>(delay).count();
  char text[32];
  const int size = std::snprintf(text, sizeof text, "%" PRId64 ".%03d",
                                 us / 1000, static_cast<int>(us % 1000));
  return SetCopy(r, value, {text, static_cast<size_t>(size)});
}

ngx_int_t GetDeadlineMs(ngx_http_request_t* r, Value* value, uintptr_t) {
  const Context* context = FindContext(r);
  if (StandingOf(context).reason.empty()) return Set(value, {});
  const Duration left =
      std::max(context->deadline - host::MonotonicClock::Now(), Duration());
  char text[32];
  const int size = std::snprintf(text, sizeof text, "%" PRId64,
                                 int64_t{left / std::chrono::milliseconds(1)});
  return SetCopy(r, value, {text, static_cast<size_t>(size)});
}

ngx_int_t GetLimit(ngx_http_request_t* r, Value* value, uintptr_t) {
  const Context* context = FindContext(r);
  Guard* const guard = context ? context->service->guard() : nullptr;
  if (guard == nullptr) return Set(value, {});
  char text[32];
  const int size = std::snprintf(text, sizeof text, "%" PRId64, guard->limit());
  return SetCopy(r, value, {text, static_cast<size_t>(size)});
}

}  // namespace

ngx_int_t AddVariables(ngx_conf_t* cf) {
  const struct {
    std::string_view name;
    ngx_http_get_variable_pt get;
  } variables[] = {
      {"weir_decision", GetDecision},      {"weir_reason", GetReason},
      {"weir_degrade", GetDegrade},        {"weir_queue_ms", GetQueueMs},
      {"weir_deadline_ms", GetDeadlineMs}, {"weir_limit", GetLimit}};
  for (const auto& v : variables) {
    ngx_str_t name = Text(v.name);
    ngx_http_variable_t* variable =
        ngx_http_add_variable(cf, &name, NGX_HTTP_VAR_NOCACHEABLE);
    if (variable == nullptr) return NGX_ERROR;
    variable->get_handler = v.get;
  }
  return NGX_OK;
}

}  // namespace weir::nginx
