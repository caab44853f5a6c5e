// Tells the service behind at which degrade level to answer.

#include <array>

#include "request.h"

namespace weir::nginx {
namespace {

constexpr std::string_view kName = "weir-degrade";
constexpr std::array<std::string_view, DegradeLadder::kMaxLevels + 1> kLevels =
    {"0", "1", "2", "3", "4"};

}  // namespace

ngx_int_t PassDegradeLevel(ngx_http_request_t* r, uint8_t level) {
  const ngx_str_t value = Text(kLevels[level]);
  bool there = false;
  // What a client says of it is not its to say.
  for (ngx_list_part_t* part = &r->headers_in.headers.part; part != nullptr;
       part = part->next) {
    auto* headers = static_cast<ngx_table_elt_t*>(part->elts);
    for (ngx_uint_t i = 0; i < part->nelts; ++i) {
      const std::string_view key(
          reinterpret_cast<const char*>(headers[i].lowcase_key),
          headers[i].key.len);
      if (key != kName) continue;
      headers[i].value = value;
      there = true;
    }
  }
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

}  // namespace weir::nginx
