#include "configuration.h"

#include <grp.h>

#include <exception>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "log.h"
#include "request.h"
#include "weir/config/policy.h"
#include "weir/shm/segment.h"

namespace weir::nginx {
namespace {

// NGX_CONF_OK and NGX_CONF_ERROR, typed.
char* const kOk = nullptr;
char* const kError = reinterpret_cast<char*>(-1);

// Runs `f` and turns an exception, which must not reach nginx, into a message.
template <typename F>
char* Guarded(ngx_conf_t* cf, F f) {
  try {
    return f();
  } catch (const std::exception& e) {
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "weir: %s", e.what());
    return kError;
  }
}

std::string PlaceOf(const ngx_str_t& file, ngx_uint_t line) {
  return std::string(View(file)) + ":" + std::to_string(line);
}

// The service of a policy file; it is read when it is first named.
Service* FindService(ngx_conf_t* cf, Main& main, std::string path) {
  for (const auto& service : main.services) {
    if (service->path() == path) return service.get();
  }
  auto policy = config::LoadPolicy(path);
  if (!policy) {
    LogLines(NGX_LOG_EMERG, cf->log, policy.complaints().Print());
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "the policy \"%s\" is refused",
                       path.c_str());
    return nullptr;
  }
  for (const auto& other : main.services) {
    if (other->policy().service == policy->service) {
      ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                         "the policies \"%s\" and \"%s\" are both of the "
                         "service `%s`; a service has one policy: use one file "
                         "for both, or give one another `service`",
                         other->path().c_str(), path.c_str(),
                         policy->service.c_str());
      return nullptr;
    }
  }
  main.services.push_back(
      std::make_unique<Service>(std::move(path), std::move(policy).value()));
  return main.services.back().get();
}

char* SetPolicy(ngx_conf_t* cf, ngx_command_t*, void* conf) {
  auto* location = static_cast<Location*>(conf);
  if (location->service != nullptr) {
    return const_cast<char*>("is duplicate");
  }
  ngx_str_t path = static_cast<ngx_str_t*>(cf->args->elts)[1];
  if (ngx_conf_full_name(cf->cycle, &path, 1) != NGX_OK) return kError;
  auto* main = static_cast<Main*>(
      ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module));
  return Guarded(cf, [&] {
    location->service = FindService(cf, *main, std::string(View(path)));
    return location->service == nullptr ? kError : kOk;
  });
}

char* SetResource(ngx_conf_t* cf, ngx_command_t*, void* conf) {
  auto* location = static_cast<Location*>(conf);
  if (location->resource.data != nullptr) {
    return const_cast<char*>("is duplicate");
  }
  location->resource = static_cast<ngx_str_t*>(cf->args->elts)[1];
  location->file = cf->conf_file->file.name;
  location->line = cf->conf_file->line;
  return kOk;
}

char* SetReaders(ngx_conf_t* cf, ngx_command_t*, void* conf) {
  auto* main = static_cast<Main*>(conf);
  if (main->access.mode != shm::SegmentAccess().mode) {
    return const_cast<char*>("is duplicate");
  }
  const ngx_str_t& name = static_cast<ngx_str_t*>(cf->args->elts)[1];
  if (View(name) == "all") {
    main->access.mode |= 0044;
    return kOk;
  }
  const group* found = getgrnam(reinterpret_cast<const char*>(name.data));
  if (found == nullptr) {
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "there is no group `%V`, which `weir_readers` names; "
                       "make it, or write `all`",
                       &name);
    return kError;
  }
  main->access.mode |= 0040;
  main->access.group = found->gr_gid;
  return kOk;
}

// Which resource of the policy a location's requests are, if any.
std::optional<Error> Resolve(Location& location) {
  const std::string name(View(location.resource));
  if (name.empty() || name == "off") return std::nullopt;
  if (location.service == nullptr) {
    return Error{"`weir " + name + "` needs a `weir_policy` here or around it"};
  }
  auto reference =
      location.service->Refer({name, PlaceOf(location.file, location.line)});
  if (!reference) return reference.error();
  location.reference = *reference;
  location.guarded = true;
  return std::nullopt;
}

// The settings of an upstream module in the location that is being merged; null
// when nginx was built without it.  By name, since not every nginx has them
// all; their own structures are private, but begin with this one.
const ngx_http_upstream_conf_t* UpstreamOf(ngx_conf_t* cf,
                                           std::string_view module) {
  for (ngx_module_t** m = cf->cycle->modules; *m != nullptr; ++m) {
    if ((*m)->name != module) continue;
    return static_cast<const ngx_http_upstream_conf_t*>(
        ngx_http_conf_get_module_loc_conf(cf, (**m)));
  }
  return nullptr;
}

// Has a `proxy_pass` or one of its kind without variables.
bool IsUsed(const ngx_http_upstream_conf_t* conf) {
  return conf != nullptr && conf->upstream != nullptr;
}

// Whoever makes the content here asks for no place, which costs nobody anything
// if what it needs is in the cache.
void WarnOfCache(ngx_conf_t* cf, const Location& location,
                 const ngx_http_upstream_conf_t& upstream) {
#if (NGX_HTTP_CACHE)
  if (!location.guarded || !upstream.cache) return;
  LogLines(
      NGX_LOG_WARN, cf->log,
      "`weir " + std::string(View(location.resource)) + "` meets a cache in " +
          PlaceOf(location.file, location.line) +
          ": the decision falls before nginx looks into its cache, so what "
          "is there is refused in an overload, too; put the cache into a "
          "server before this one, see \"Behind a cache\" in docs/nginx.md");
#endif
}

void LookAtUpstreams(ngx_conf_t* cf, Location& location) {
  constexpr std::string_view kModules[] = {
      "ngx_http_proxy_module", "ngx_http_fastcgi_module",
      "ngx_http_uwsgi_module", "ngx_http_scgi_module"};
  const auto* core = static_cast<const ngx_http_core_loc_conf_t*>(
      ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module));
  if (core->handler == nullptr) return;
  if (IsUsed(UpstreamOf(cf, "ngx_http_grpc_module"))) {
    location.body_use = BodyUse::kUnbuffered;
    return;
  }
  bool all_buffer = true;
  bool one_used = false;
  for (const std::string_view module : kModules) {
    const auto* conf = UpstreamOf(cf, module);
    if (conf == nullptr) continue;
    if (IsUsed(conf)) {
      location.body_use =
          conf->request_buffering ? BodyUse::kBuffered : BodyUse::kUnbuffered;
      WarnOfCache(cf, location, *conf);
      one_used = true;
    }
    all_buffer = all_buffer && conf->request_buffering;
  }
  // A name with variables does not tell which module it is.
  if (!one_used && !all_buffer) location.body_use = BodyUse::kUnbuffered;
}

// None when there is no http block.
std::span<const std::unique_ptr<Service>> ServicesOf(const ngx_cycle_t* cycle) {
  if (ngx_get_conf(cycle->conf_ctx, ngx_http_module) == nullptr) return {};
  return static_cast<Main*>(
             ngx_http_cycle_get_module_main_conf(cycle, ngx_http_weir_module))
      ->services;
}

}  // namespace

ngx_command_t commands[] = {
    {ngx_string("weir_readers"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1,
     SetReaders, NGX_HTTP_MAIN_CONF_OFFSET, 0, nullptr},
    {ngx_string("weir_policy"),
     NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF |
         NGX_CONF_TAKE1,
     SetPolicy, NGX_HTTP_LOC_CONF_OFFSET, 0, nullptr},
    {ngx_string("weir"),
     NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF |
         NGX_CONF_TAKE1,
     SetResource, NGX_HTTP_LOC_CONF_OFFSET, 0, nullptr},
    {ngx_string("weir_request_buffering"),
     NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_CONF_FLAG,
     ngx_conf_set_flag_slot, NGX_HTTP_LOC_CONF_OFFSET,
     offsetof(Location, request_buffering), nullptr},
    ngx_null_command};

void* CreateMain(ngx_conf_t* cf) {
  ngx_pool_cleanup_t* cleanup = ngx_pool_cleanup_add(cf->pool, sizeof(Main));
  if (cleanup == nullptr) return nullptr;
  cleanup->handler = [](void* data) { static_cast<Main*>(data)->~Main(); };
  return new (cleanup->data) Main;
}

void* CreateLocation(ngx_conf_t* cf) {
  void* memory = ngx_pcalloc(cf->pool, sizeof(Location));
  if (memory == nullptr) return nullptr;
  auto* location = new (memory) Location;
  location->request_buffering = NGX_CONF_UNSET;
  return location;
}

char* MergeLocation(ngx_conf_t* cf, void* parent, void* child) {
  const auto& outer = *static_cast<const Location*>(parent);
  auto& inner = *static_cast<Location*>(child);
  ngx_conf_merge_value(inner.request_buffering, outer.request_buffering, 1);
  if (inner.service == nullptr) inner.service = outer.service;
  if (inner.resource.data == nullptr) {
    inner.resource = outer.resource;
    inner.file = outer.file;
    inner.line = outer.line;
  }
  return Guarded(cf, [&] {
    const auto error = Resolve(inner);
    if (!error) {
      LookAtUpstreams(cf, inner);
      return kOk;
    }
    LogLines(NGX_LOG_EMERG, cf->log,
             error->message + " in " + PlaceOf(inner.file, inner.line));
    return kError;
  });
}

namespace {

// After a reload the old workers stay until their last connection ends.
void WarnOfManyWorkers(ngx_conf_t* cf) {
  const auto* core = reinterpret_cast<const ngx_core_conf_t*>(
      ngx_get_conf(cf->cycle->conf_ctx, ngx_core_module));
  const ngx_int_t workers = core->worker_processes;
  constexpr auto kMost = static_cast<ngx_int_t>(Region::kShards);
  if (workers == NGX_CONF_UNSET || workers <= kMost / 2) return;
  ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                     "%i workers, and after a reload as many old ones, are "
                     "more than the %i that weir guards at a time; those "
                     "beyond pass all requests until others have left",
                     workers, kMost);
}

// Services that this process began without a region.
std::set<std::string>& Unguarded() {
  static std::set<std::string> services;
  return services;
}

// For `nginx -t`.
void SayWhatAStartWouldDo(ngx_conf_t* cf, const Service& service) {
  const auto seen = shm::SharedRegion::Foresee(service.policy());
  const std::string who = "weir_policy \"" + service.path() + "\": ";
  if (!seen) {
    LogLines(NGX_LOG_WARN, cf->log,
             who +
                 "a start would go on without weir, a reload would be "
                 "refused: " +
                 seen.error().message);
  } else if (!seen->empty()) {
    LogLines(NGX_LOG_WARN, cf->log, who + *seen);
  }
}

// A start goes on without the guard: every site of this nginx is worth more.  A
// reload is refused, since what runs is guarded; unless it is not.
char* Attach(ngx_conf_t* cf, Service& service,
             const shm::SegmentAccess& access) {
  const auto error = service.Attach(access);
  const std::string who = "weir_policy \"" + service.path() + "\": ";
  const std::string& name = service.policy().service;
  if (!error) {
    Unguarded().erase(name);
    if (!service.replaced().empty()) {
      LogLines(NGX_LOG_WARN, cf->log, who + service.replaced());
    }
    return kOk;
  }
  const bool may_go_on =
      ngx_is_init_cycle(cf->cycle->old_cycle) || Unguarded().count(name) > 0;
  if (!may_go_on) {
    LogLines(NGX_LOG_EMERG, cf->log, who + error->message);
    return kError;
  }
  Unguarded().insert(name);
  LogLines(NGX_LOG_ALERT, cf->log,
           who + "`" + name +
               "` IS NOT GUARDED, requests pass until a start or "
               "a reload succeeds: " +
               error->message);
  return kOk;
}

}  // namespace

ngx_int_t AttachServices(ngx_conf_t* cf) {
  auto* main = static_cast<Main*>(
      ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module));
  if (!main->services.empty()) WarnOfManyWorkers(cf);
  // `nginx -t` and `nginx -s` only look.
  if (ngx_process == NGX_PROCESS_SIGNALLER) return NGX_OK;
  const char* const done = Guarded(cf, [&] {
    for (const auto& service : main->services) {
      if (ngx_test_config) {
        SayWhatAStartWouldDo(cf, *service);
      } else if (Attach(cf, *service, main->access) != kOk) {
        return kError;
      }
    }
    return kOk;
  });
  return done == kOk ? NGX_OK : NGX_ERROR;
}

void StartServices(ngx_cycle_t* cycle) {
  for (const auto& service : ServicesOf(cycle)) {
    try {
      service->Start(cycle->log);
    } catch (const std::exception& e) {
      ngx_log_error(NGX_LOG_ALERT, cycle->log, 0,
                    "weir is off in this worker: %s", e.what());
    }
  }
}

void StopServices(ngx_cycle_t* cycle) {
  for (const auto& service : ServicesOf(cycle)) service->Stop();
}

}  // namespace weir::nginx
