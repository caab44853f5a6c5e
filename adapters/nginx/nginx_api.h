// nginx's headers, made fit for C++.
//
// Standard headers come first: nginx's include what they need inside of
// extern "C", where templates cannot be declared.

#ifndef WEIR_ADAPTERS_NGINX_NGINX_API_H_
#define WEIR_ADAPTERS_NGINX_NGINX_API_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" {
#include <ngx_config.h>
// ngx_config.h comes first.
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

extern ngx_module_t ngx_http_weir_module;
}

namespace weir::nginx {

inline std::string_view View(const ngx_str_t& text) {
  return {reinterpret_cast<const char*>(text.data), text.len};
}

// Does not copy; nginx only reads what it gets this way.
inline ngx_str_t Text(std::string_view text) {
  return {text.size(),
          reinterpret_cast<u_char*>(const_cast<char*>(text.data()))};
}

}  // namespace weir::nginx

#endif  // WEIR_ADAPTERS_NGINX_NGINX_API_H_
