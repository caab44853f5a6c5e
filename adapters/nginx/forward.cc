// Tells the service behind at which degrade level to answer, and how much time
// its caller has left.

#include <array>
#include <cinttypes>
#include <cstdio>

#include "request.h"
#include "weir/http/request_inputs.h"

namespace weir::nginx {
namespace {

constexpr std::string_view kName = "weir-degrade";
constexpr std::array<std::string_view, DegradeLadder::kMaxLevels + 1> kLevels =
    {"0", "1", "2", "3", "4"};

// Calls `f` with each header line of that name; stops when it fails.
template <typename F>
ngx_int_t ForEach(ngx_http_request_t* r, std::string_view name, F f) {
  for (ngx_list_part_t* part = &r->headers_in.headers.part; part != nullptr;
       part = part->next) {
    auto* headers = static_cast<ngx_table_elt_t*>(part->elts);
    for (ngx_uint_t i = 0; i < part->nelts; ++i) {
      const std::string_view key(
          reinterpret_cast<const char*>(headers[i].lowcase_key),
          headers[i].key.len);
      if (key == name && f(headers[i]) != NGX_OK) return NGX_ERROR;
    }
  }
  return NGX_OK;
}

}  // namespace

ngx_int_t PassDegradeLevel(ngx_http_request_t* r, uint8_t level) {
  const ngx_str_t value = Text(kLevels[level]);
  bool there = false;
  // What a client says of it is not its to say.
  static_cast<void>(ForEach(r, kName, [&](ngx_table_elt_t& header) {
    header.value = value;
    there = true;
    return NGX_OK;
  }));
  if (there || level == 0) return NGX_OK;
  auto* header =
      static_cast<ngx_table_elt_t*>(ngx_list_push(&r->headers_in.headers));
  if (header == nullptr) return NGX_ERROR;
  header->hash = 1;
  header->key = Text(kName);
  header->value = value;
  header->lowcase_key = header->key.data;
#if nginx_version >= 1023000
  header->next = nullptr;
#endif
  return NGX_OK;
}

ngx_int_t PassDeadline(ngx_http_request_t* r, const Policy& policy,
                       Duration spent) {
  // Headers count in milliseconds, so less makes no difference.
  if (spent < std::chrono::milliseconds(1)) return NGX_OK;
  for (const Source& source : policy.deadline_from) {
    if (source.kind != Source::Kind::kHeader) continue;
    const auto rewrite = [&](ngx_table_elt_t& header) {
      const auto budget = http::ParseBudget(source.key, View(header.value));
      if (!budget) return NGX_OK;
      const http::BudgetText text =
          http::PrintBudget(source.key, *budget - spent);
      auto* copy = static_cast<u_char*>(ngx_pnalloc(r->pool, text.size));
      if (copy == nullptr) return NGX_ERROR;
      ngx_memcpy(copy, text.bytes.data(), text.size);
      header.value = {text.size, copy};
      return NGX_OK;
    };
    if (ForEach(r, source.key, rewrite) != NGX_OK) return NGX_ERROR;
  }
  return NGX_OK;
}

}  // namespace weir::nginx
