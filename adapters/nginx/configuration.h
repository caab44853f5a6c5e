// The module's directives: weir_policy, weir, weir_request_buffering,
// weir_readers.

#ifndef WEIR_ADAPTERS_NGINX_CONFIGURATION_H_
#define WEIR_ADAPTERS_NGINX_CONFIGURATION_H_

#include <memory>
#include <vector>

#include "nginx_api.h"
#include "service.h"

namespace weir::nginx {

// Of the whole http block.  Services live as long as nginx's cycle.
struct Main {
  std::vector<std::unique_ptr<Service>> services;
  shm::SegmentAccess access;  // Of `weir_readers`.
};

extern ngx_command_t commands[];

void* CreateMain(ngx_conf_t* cf);
void* CreateLocation(ngx_conf_t* cf);
char* MergeLocation(ngx_conf_t* cf, void* parent, void* child);

// Maps the regions of all services.
ngx_int_t AttachServices(ngx_conf_t* cf);

// In a worker.
void StartServices(ngx_cycle_t* cycle);
void StopServices(ngx_cycle_t* cycle);

}  // namespace weir::nginx

#endif  // WEIR_ADAPTERS_NGINX_CONFIGURATION_H_
