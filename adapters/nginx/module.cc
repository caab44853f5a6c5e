// ngx_http_weir_module: the thin C face of what this folder holds.

#include <algorithm>

#include "configuration.h"
#include "nginx_api.h"
#include "request.h"
#include "variables.h"

namespace weir::nginx {
namespace {

ngx_http_output_header_filter_pt next_header_filter;
ngx_http_output_body_filter_pt next_body_filter;
ngx_http_request_body_filter_pt next_request_body_filter;

ngx_int_t FilterHeader(ngx_http_request_t* r) {
  BeforeHeader(r);
  const ngx_int_t rc = next_header_filter(r);
  AfterHeader(r);
  return rc;
}

ngx_int_t FilterBody(ngx_http_request_t* r, ngx_chain_t* in) {
  const ngx_buf_t* const last = BeforeAnswer(r, in);
  const ngx_int_t rc = next_body_filter(r, in);
  AfterAnswer(r, last, rc);
  return rc;
}

ngx_int_t FilterRequestBody(ngx_http_request_t* r, ngx_chain_t* in) {
  return PassBody(r, in, next_request_body_filter);
}

ngx_int_t InstallHandlers(ngx_conf_t* cf) {
  auto* core = static_cast<ngx_http_core_main_conf_t*>(
      ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module));
  // nginx calls the handlers of a phase from the last to the first.  So the
  // first place is the last step before the content is made.
  ngx_array_t& handlers = core->phases[NGX_HTTP_PRECONTENT_PHASE].handlers;
  if (ngx_array_push(&handlers) == nullptr) return NGX_ERROR;
  auto* const first = static_cast<ngx_http_handler_pt*>(handlers.elts);
  std::copy_backward(first, first + handlers.nelts - 1, first + handlers.nelts);
  *first = HandlePrecontent;
  // A dynamic module comes last, so its filters run first: they see the answer
  // as its maker made it.
  next_header_filter = ngx_http_top_header_filter;
  ngx_http_top_header_filter = FilterHeader;
  next_body_filter = ngx_http_top_body_filter;
  ngx_http_top_body_filter = FilterBody;
  next_request_body_filter = ngx_http_top_request_body_filter;
  ngx_http_top_request_body_filter = FilterRequestBody;
  // Not in init_module: what fails there ends nginx, and what fails here
  // refuses the new configuration while the old one goes on.
  return AttachServices(cf);
}

bool IsWorker() {
  return ngx_process == NGX_PROCESS_WORKER || ngx_process == NGX_PROCESS_SINGLE;
}

ngx_int_t InitProcess(ngx_cycle_t* cycle) {
  if (IsWorker()) StartServices(cycle);
  return NGX_OK;
}

void ExitProcess(ngx_cycle_t* cycle) {
  if (IsWorker()) StopServices(cycle);
}

ngx_http_module_t context = {
    AddVariables,   InstallHandlers,  // Before and after http { } is read.
    CreateMain,     nullptr,          // Main: create, init.
    nullptr,        nullptr,          // Server: create, merge.
    CreateLocation, MergeLocation};

}  // namespace
}  // namespace weir::nginx

// What nginx looks for in a module's file; its own build makes the arrays.
#define WEIR_EXPORT __attribute__((visibility("default")))

extern "C" {

WEIR_EXPORT ngx_module_t ngx_http_weir_module = {NGX_MODULE_V1,
                                                 &weir::nginx::context,
                                                 weir::nginx::commands,
                                                 NGX_HTTP_MODULE,
                                                 nullptr,  // init_master
                                                 nullptr,  // init_module
                                                 weir::nginx::InitProcess,
                                                 nullptr,  // init_thread
                                                 nullptr,  // exit_thread
                                                 weir::nginx::ExitProcess,
                                                 nullptr,  // exit_master
                                                 NGX_MODULE_V1_PADDING};

WEIR_EXPORT extern ngx_module_t* ngx_modules[];
WEIR_EXPORT ngx_module_t* ngx_modules[] = {&ngx_http_weir_module, nullptr};

WEIR_EXPORT extern char* ngx_module_names[];
WEIR_EXPORT char* ngx_module_names[] = {
    const_cast<char*>("ngx_http_weir_module"), nullptr};

WEIR_EXPORT extern char* ngx_module_order[];
WEIR_EXPORT char* ngx_module_order[] = {nullptr};
}
