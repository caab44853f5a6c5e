#include "nginx_conf.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <thread>

#include "access_log.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

// Each request of a flood holds two connections of a worker, and an unguarded
// port lets them pile up, so a worker gets what the system allows, within
// reason.
constexpr uint64_t kMostOpenFiles = 131072;

constexpr std::string_view kMain = R"(# Written by `weir up`; gone when it ends.
load_module {module};
daemon off;
{user}worker_processes {workers};
worker_rlimit_nofile {files};
pid nginx.pid;
error_log stderr warn;

events {{
  worker_connections {connections};
}}

http {{
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  scgi_temp_path scgi;
  uwsgi_temp_path uwsgi;
  keepalive_requests 1000000000;
  proxy_http_version 1.1;
  proxy_next_upstream off;

  weir_policy {policy};
)";

constexpr std::string_view kUpstream = R"(
  upstream {name} {{
    server {address};
    keepalive 1024;
    keepalive_requests 1000000000;
  }}
)";

constexpr std::string_view kServer = R"(  server {{
    listen 127.0.0.1:{port} backlog=4096;
    proxy_set_header Connection "";
    proxy_set_header Host {address};
{locations}  }}
)";

constexpr std::string_view kLocation = R"(    location {match} {{
      weir {resource};
      proxy_pass http://{name};
    }}
)";

std::string ServerText(std::string_view name, const NginxConf::Door& door,
                       const std::string& locations) {
  using fmt::arg;
  return fmt::format(kUpstream, arg("name", name),
                     arg("address", door.upstream)) +
         fmt::format(kServer, arg("port", door.port),
                     arg("address", door.upstream),
                     arg("locations", locations));
}

std::string Location(std::string_view match, std::string_view resource,
                     std::string_view name) {
  return fmt::format(kLocation, fmt::arg("match", match),
                     fmt::arg("resource", resource), fmt::arg("name", name));
}

bool IsProgram(const fs::path& path) {
  // A folder of the PATH that may not be read holds none for this user.
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

int DefaultNginxWorkers() {
  return static_cast<int>(
      std::clamp(std::thread::hardware_concurrency(), 1U, 32U));
}

std::string NginxQuoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string NginxConf::Text() const {
  using fmt::arg;
  const uint64_t files = std::min(open_files, kMostOpenFiles);
  std::string text = fmt::format(
      kMain, arg("module", NginxQuoted(module)),
      // Workers of the same user, who then read the policy and own the region.
      arg("user", root ? "user root;\n" : ""), arg("workers", workers),
      arg("files", files), arg("connections", files / 2),
      arg("policy", NginxQuoted(policy)));
  if (!log.empty()) {
    text += fmt::format("  log_format weir '{}';\n", kWeirLogFormat);
  }
  std::string server =
      log.empty() ? ""
                  : fmt::format("    access_log {} weir;\n", NginxQuoted(log));
  const auto has = [this](std::string_view path) {
    return std::any_of(
        routes.begin(), routes.end(),
        [path](const Route& route) { return route.path == path; });
  };
  if (!has("/")) server += Location("/", resource, "protected");
  for (const Route& route : routes) {
    server += Location(NginxQuoted(route.path), route.resource, "protected");
  }
  if (!health.empty() && !has("/healthz")) {
    server += Location("= /healthz", health, "protected");
  }
  text += ServerText("protected", guarded, server);
  if (unguarded) {
    text += ServerText("unprotected", *unguarded,
                       Location("/", "off", "unprotected"));
  }
  return text + "}\n";
}

Result<std::string> FindNginx() {
  const char* path = std::getenv("PATH");
  std::string folders = path != nullptr ? path : "";
  folders += ":/usr/sbin:/usr/local/sbin";
  for (size_t from = 0; from <= folders.size();) {
    const size_t colon = std::min(folders.find(':', from), folders.size());
    const fs::path nginx =
        fs::path(folders.substr(from, colon - from)) / "nginx";
    if (nginx.is_absolute() && IsProgram(nginx)) return nginx.string();
    from = colon + 1;
  }
  return Error{"nginx is not installed; on Debian: apt-get install nginx"};
}

Result<std::string> FindModule() {
  const std::string name = "ngx_http_weir_module.so";
  std::error_code ignored;
  const fs::path here =
      fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& folder :
       {here / "../adapters/nginx", here / "../lib/nginx/modules",
        fs::path("/usr/lib/nginx/modules")}) {
    const fs::path file = folder / name;
    if (fs::exists(file, ignored)) return fs::canonical(file, ignored).string();
  }
  return Error{"the nginx module, " + name +
               ", is neither in the build tree nor in /usr/lib/nginx/modules; "
               "build it: ninja " +
               name.substr(0, name.size() - 3)};
}

}  // namespace weir::cli
