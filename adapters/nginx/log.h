// Words for nginx's error log.

#ifndef WEIR_ADAPTERS_NGINX_LOG_H_
#define WEIR_ADAPTERS_NGINX_LOG_H_

#include <string>
#include <string_view>

#include "nginx_api.h"
#include "weir/policy.h"

namespace weir::nginx {

// Logs each line of `text` by itself: nginx cuts what is longer than 2 KiB, and
// all lines get a prefix of one length, so that marks stay under what they
// mark.
void LogLines(ngx_uint_t level, ngx_log_t* log, std::string_view text);

// "; did you mean `checkout`?", or "; it has `a` and `b`", to end a message
// about a resource that `policy` does not have.
std::string NearestResource(const Policy& policy, std::string_view name);

}  // namespace weir::nginx

#endif  // WEIR_ADAPTERS_NGINX_LOG_H_
