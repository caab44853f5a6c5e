// Answers to requests that were shed.

#include "request.h"
#include "weir/client/wire.h"

namespace weir::nginx {
namespace {

// Adds a header to the answer.  `name` and `value` must outlive the request.
// Without memory the answer goes without it.
void AddHeader(ngx_http_request_t* r, std::string_view name,
               std::string_view value) {
  auto* header =
      static_cast<ngx_table_elt_t*>(ngx_list_push(&r->headers_out.headers));
  if (header == nullptr) return;
  header->hash = 1;
  header->key = Text(name);
  header->value = Text(value);
#if nginx_version >= 1023000
  header->next = nullptr;
#endif
}

void AddHeader(ngx_http_request_t* r, std::string_view name, int64_t value) {
  auto* text = static_cast<u_char*>(ngx_pnalloc(r->pool, NGX_INT64_LEN));
  if (text == nullptr) return;
  const u_char* end = ngx_sprintf(text, "%L", value);
  AddHeader(r, name,
            std::string_view(reinterpret_cast<const char*>(text),
                             static_cast<size_t>(end - text)));
}

bool HasHeader(const ngx_http_request_t* r, std::string_view name) {
  for (const ngx_list_part_t* part = &r->headers_out.headers.part;
       part != nullptr; part = part->next) {
    const auto* headers = static_cast<const ngx_table_elt_t*>(part->elts);
    for (ngx_uint_t i = 0; i < part->nelts; ++i) {
      if (headers[i].hash != 0 && headers[i].key.len == name.size() &&
          ngx_strncasecmp(
              headers[i].key.data,
              reinterpret_cast<u_char*>(const_cast<char*>(name.data())),
              name.size()) == 0) {
        return true;
      }
    }
  }
  return false;
}

// Status 200 and no body: gRPC calls that "trailers only".  A client would
// make UNAVAILABLE of a plain 503 and try again at once.
ngx_int_t RefuseGrpc(Context& context) {
  ngx_http_request_t* r = context.request;
  const ngx_int_t rc = ngx_http_discard_request_body(r);
  if (rc != NGX_OK) return rc;
  r->headers_out.status = NGX_HTTP_OK;
  r->headers_out.content_type = Text("application/grpc");
  r->headers_out.content_type_len = r->headers_out.content_type.len;
  r->header_only = 1;
  AddHeader(r, "grpc-status", int64_t{context.answer.grpc_status});
  AddHeader(r, "grpc-message", "shed by weir");
  if (context.answer.pushback_ms) {
    AddHeader(r, wire::kPushback, *context.answer.pushback_ms);
  }
  ngx_http_finalize_request(r, ngx_http_send_header(r));
  return NGX_DONE;
}

}  // namespace

bool IsGrpcRequest(const ngx_http_request_t* r) {
  return r->headers_in.content_type != nullptr &&
         http::IsGrpc(View(r->headers_in.content_type->value));
}

ngx_int_t Refuse(Context& context) {
  context.answered = true;
  ngx_log_error(NGX_LOG_INFO, context.request->connection->log, 0,
                "weir: shed, reason %*s", Name(context.decision.reason).size(),
                Name(context.decision.reason).data());
  if (context.grpc) return RefuseGrpc(context);
  return context.answer.status;
}

void AddRefusalHeaders(ngx_http_request_t* r, const Context& context) {
  AddHeader(r, "weir-reason", Name(context.decision.reason));
  // A cache that keeps errors for a while, as those of networks do, would
  // refuse for us when there is room again.  An error page may say otherwise.
  if (!HasHeader(r, "Cache-Control")) AddHeader(r, "Cache-Control", "no-store");
  if (context.decision.never_retry && !context.grpc) {
    AddHeader(r, wire::kPushback, "-1");
  }
  const ngx_uint_t status = r->headers_out.status;
  if (context.answer.retry_after_s == 0 || (status != 429 && status != 503)) {
    return;
  }
  // An error page may bring its own.
  if (HasHeader(r, "Retry-After")) return;
  AddHeader(r, "Retry-After", context.answer.retry_after_s);
}

}  // namespace weir::nginx
