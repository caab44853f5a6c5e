// The private nginx that `weir up` starts: its configuration, and where the
// program and the module are.  Start it with a prefix (-p) of its own: the pid
// and temporary files lie there.

#ifndef WEIR_CLI_NGINX_CONF_H_
#define WEIR_CLI_NGINX_CONF_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weir/result.h"

namespace weir::cli {

// One for each core, 32 at most.
int DefaultNginxWorkers();

struct NginxConf {
  std::string module;  // The .so; absolute.
  std::string policy;  // Absolute.
  int workers = 1;
  bool root = false;  // Started by root.
  uint64_t open_files = 1024;

  std::string resource;  // What requests are, by the policy, and
  std::string health;    // what /healthz is; empty: like the others.
  // Paths that are something else than `resource`, with all below them.
  struct Route {
    std::string path;      // Begins with '/'.
    std::string resource;  // Or "off".
  };
  std::vector<Route> routes{};
  std::string log{};  // Of the guarded port, as weir replay reads it; or none.

  struct Door {
    uint16_t port = 0;
    std::string upstream;  // host:port
  };
  Door guarded;
  std::optional<Door> unguarded{};

  // The text of nginx.conf.
  std::string Text() const;
};

// A string in nginx's quotes.
std::string NginxQuoted(std::string_view text);

// The distribution's nginx: on the PATH, or where Debian has it for those who
// have no /usr/sbin on theirs.
Result<std::string> FindNginx();

// The module that belongs to the running program: of the same build tree, else
// of the same installation, else nginx's own folder of modules.
Result<std::string> FindModule();

}  // namespace weir::cli

#endif  // WEIR_CLI_NGINX_CONF_H_
