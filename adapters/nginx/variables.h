// $weir_decision, $weir_reason, $weir_queue_ms, $weir_limit.

#ifndef WEIR_ADAPTERS_NGINX_VARIABLES_H_
#define WEIR_ADAPTERS_NGINX_VARIABLES_H_

#include "nginx_api.h"

namespace weir::nginx {

ngx_int_t AddVariables(ngx_conf_t* cf);

}  // namespace weir::nginx

#endif  // WEIR_ADAPTERS_NGINX_VARIABLES_H_
