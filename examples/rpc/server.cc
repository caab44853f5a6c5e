// A shop that tells prices, over gRPC, guarded, and listed in ZooKeeper.
//
//   rpc_server --policy examples/rpc/shop.toml --zookeeper 127.0.0.1:2181
//
// Prints "ready ADDRESS" once it serves.  SIGTERM: leaves the registry, serves
// for a moment whoever has not heard of it, ends what it has begun, and goes.

#include "weir/grpc/server.h"

#include <grpcpp/grpcpp.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "registry.h"
#include "shop.grpc.pb.h"

namespace {

// Chosen: some ten times what ZooKeeper takes to tell its clients.
constexpr auto kGrace = std::chrono::milliseconds(300);

class Shop final : public weir::example::Shop::Service {
 public:
  explicit Shop(std::chrono::milliseconds work) : work_(work) {}
  void set_address(std::string address) { address_ = std::move(address); }

  grpc::Status Price(grpc::ServerContext*, const weir::example::Item* item,
                     weir::example::Quote* quote) override {
    std::this_thread::sleep_for(work_);
    quote->set_cents(100 * static_cast<int64_t>(item->name().size()));
    quote->set_server(address_);
    return grpc::Status::OK;
  }

 private:
  const std::chrono::milliseconds work_;
  std::string address_;
};

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::string policy, zookeeper = "127.0.0.1:2181", address = "127.0.0.1";
  int port = 0, work_ms = 5;
  CLI::App app("A guarded gRPC server that is listed in ZooKeeper.");
  app.add_option("--policy", policy, "policy file of the service")->required();
  app.add_option("--zookeeper", zookeeper, "where ZooKeeper listens")
      ->capture_default_str();
  app.add_option("--address", address, "to listen at, and for clients")
      ->capture_default_str();
  app.add_option("--port", port, "0: any that is free")->capture_default_str();
  app.add_option("--work-ms", work_ms, "what a call takes")
      ->capture_default_str()
      ->check(CLI::Range(0, 60'000));
  CLI11_PARSE(app, argc, argv);

  // Before any thread is made, so that only sigwait() gets them.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  auto guard = weir::grpc::ServiceGuard::Load(policy, {.log = Say});
  if (!guard) {
    std::fprintf(stderr, "%s\n", guard.error().message.c_str());
    return 2;
  }
  Shop shop{std::chrono::milliseconds(work_ms)};
  weir::grpc::GuardedServerBuilder builder(*guard);
  builder.AddListeningPort(address + ":" + std::to_string(port),
                           grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&shop);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    std::fprintf(stderr, "rpc_server: cannot serve at %s:%d %s\n",
                 address.c_str(), port, builder.error().c_str());
    return 1;
  }
  address += ":" + std::to_string(port);
  shop.set_address(address);

  auto registry = rpc::Registry::Make({.servers = zookeeper, .log = Say});
  if (!registry) {
    std::fprintf(stderr, "%s\n", registry.error().message.c_str());
    return 2;
  }
  (*registry)->Announce("shop", address);
  Say("ready " + address);

  int signal = 0;
  sigwait(&ends, &signal);
  registry->reset();  // First of all: nobody new shall come.
  // Clients hear of it within a moment; what they send until then is served.
  std::this_thread::sleep_for(kGrace);
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5));
  Say("gone");
}
