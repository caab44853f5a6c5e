// Registry: who serves what, kept in ZooKeeper.
//
//   /weir-rpc/shop/127.0.0.1:4711        an ephemeral node for each server
//
// A server announces itself; clients follow a service and hear of each change.
// While ZooKeeper is away, everybody goes on with what they know.  When it has
// forgotten the session, since this process hung for too long or ZooKeeper lost
// its data, a new one is made and everything announced anew.

#ifndef WEIR_EXAMPLES_RPC_REGISTRY_H_
#define WEIR_EXAMPLES_RPC_REGISTRY_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/result.h"
#include "weir/time.h"

namespace rpc {

class Registry {
 public:
  struct Config {
    std::string servers = "127.0.0.1:2181";  // Of ZooKeeper; commas between.
    // A server that dies is listed for so long.  ZooKeeper allows from 2 to 20
    // of its ticks.
    weir::Duration session_timeout = std::chrono::seconds(4);
    // Hears a line for a log; from the registry's thread.
    std::function<void(const std::string&)> log{};
  };
  // The addresses of a service, sorted; from the registry's thread.  A list
  // that would become empty stays as it was: a server that may be gone is
  // better than none.
  using Changed = std::function<void(const std::vector<std::string>&)>;

  // Connects in the background, for as long as it takes.
  static weir::Result<std::unique_ptr<Registry>> Make(const Config& config);
  // Takes back what was announced.
  ~Registry();

  // `service` and `address` must not hold a slash.
  void Announce(const std::string& service, const std::string& address);
  void Follow(const std::string& service, Changed changed);

 private:
  class Impl;
  explicit Registry(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rpc

#endif  // WEIR_EXAMPLES_RPC_REGISTRY_H_
