// Asks a shop for prices, of whichever servers ZooKeeper lists.
//
//   rpc_client --zookeeper 127.0.0.1:2181 --rate 200 --seconds 5
//
// Each server has a guarded channel of its own: a throttle, a breaker, a level.
// A call goes to the better of two servers taken at random: weir::ReplicaLoad
// knows who is slow, who fails and who is fresh.  When its guard keeps the call
// at home, or the server cannot be reached, it goes to the other, at no cost;
// and so it does when the server says that it is not there, if the retry
// budget of the process allows.
//
// Prints a line a second, and the sums at the end.

#include "weir/grpc/client.h"

#include <grpcpp/grpcpp.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <future>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "registry.h"
#include "shop.grpc.pb.h"
#include "weir/client/replica_load.h"
#include "weir/client/wire.h"
#include "weir/host/clock.h"
#include "weir/splitmix64.h"

namespace {

using weir::host::MonotonicClock;
using namespace std::chrono_literals;

// Chosen: a moment for caches and connections; a real service knows its own.
constexpr auto kSlowStart = 2s;

struct Server {
  explicit Server(weir::Duration slow_start)
      : load(MonotonicClock::Now(), slow_start) {}

  std::string address;
  std::shared_ptr<weir::grpc::GuardedChannel> channel;
  std::unique_ptr<weir::example::Shop::Stub> stub;
  weir::ReplicaLoad load;
};

// The servers of the moment.  Any thread.
class Servers {
 public:
  explicit Servers(std::shared_ptr<weir::RetryAllowance> allowance)
      : allowance_(std::move(allowance)) {
    // Another server is the better second try, so a channel makes none.
    options_.policy.retries.max_retries = 0;
    options_.allowance = allowance_;
  }

  // Keeps the channels, and what they have learned, of those that stay.  Who
  // comes to others that are warm begins slowly.
  void Replace(const std::vector<std::string>& addresses) {
    const std::lock_guard lock(mutex_);
    std::map<std::string, std::shared_ptr<Server>> old;
    for (auto& server : list_) old[server->address] = server;
    list_.clear();
    for (const std::string& address : addresses) {
      std::shared_ptr<Server> server = old[address];
      if (server == nullptr) {
        server = Connect(address, old.empty() ? 0s : kSlowStart);
      }
      if (server != nullptr) list_.push_back(std::move(server));
    }
  }

  // Up to two, the better one first.
  std::vector<std::shared_ptr<Server>> Choose() {
    const std::lock_guard lock(mutex_);
    if (list_.size() < 2) return list_;
    const auto load = [this](size_t i) -> const weir::ReplicaLoad& {
      return list_[i]->load;
    };
    const auto [first, second] = weir::ChooseTwo(
        list_.size(), load, MonotonicClock::Now(), draws_.Next());
    return {list_[first], list_[second]};
  }

  // Whether a call may be made once more.
  bool MayTryOther() { return allowance_->Spend(MonotonicClock::Now()); }

  std::vector<std::string> addresses() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> list;
    for (const auto& server : list_) list.push_back(server->address);
    return list;
  }

 private:
  std::shared_ptr<Server> Connect(const std::string& address,
                                  weir::Duration slow_start) {
    auto channel = weir::grpc::GuardedChannel::Make(
        address, grpc::InsecureChannelCredentials(), options_);
    if (!channel) {
      std::fprintf(stderr, "%s\n", channel.error().message.c_str());
      return nullptr;
    }
    auto server = std::make_shared<Server>(slow_start);
    server->address = address;
    server->stub = weir::example::Shop::NewStub((*channel)->channel());
    server->channel = *std::move(channel);
    return server;
  }

  const std::shared_ptr<weir::RetryAllowance> allowance_;
  weir::grpc::GuardedChannel::Options options_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Server>> list_;
  weir::SplitMix64 draws_{std::random_device()()};
};

class Shopper {
 public:
  Shopper(Servers& servers, weir::Duration budget)
      : servers_(servers), budget_(budget) {}

  void Ask() {
    const auto chosen = servers_.Choose();
    grpc::Status status(grpc::StatusCode::UNAVAILABLE, "nobody is listed");
    for (const auto& server : chosen) {
      const weir::grpc::CallResult result = AskOne(*server);
      status = result.status;
      // What was never sent cost nobody anything.
      if (!result.sent()) continue;
      if (status.error_code() != grpc::StatusCode::UNAVAILABLE ||
          !servers_.MayTryOther()) {
        break;
      }
    }
    const std::lock_guard lock(mutex_);
    ++calls_;
    if (status.ok()) return;
    ++failed_[std::to_string(status.error_code()) + " " +
              status.error_message()];
  }

  void Print(const char* name) {
    const std::lock_guard lock(mutex_);
    std::printf("%s %d calls;", name, std::exchange(calls_, 0));
    for (const auto& [server, count] : std::exchange(answered_, {})) {
      std::printf(" %s answered %d;", server.c_str(), count);
    }
    for (const auto& [why, count] : std::exchange(failed_, {})) {
      std::printf(" %d failed: %s;", count, why.c_str());
    }
    std::printf("\n");
    std::fflush(stdout);
  }

 private:
  weir::grpc::CallResult AskOne(Server& server) {
    weir::example::Item item;
    item.set_name("umbrella");
    weir::example::Quote quote;
    const weir::grpc::ServerScope scope{
        .scope = {.deadline = MonotonicClock::Now() + budget_}};
    server.load.OnSent();
    weir::grpc::CallResult result =
        server.channel->Call(scope, [&](grpc::ClientContext& context) {
          return server.stub->Price(&context, item, &quote);
        });
    server.load.OnEnded(weir::wire::KindOfGrpcCode(result.status.error_code()),
                        MonotonicClock::Now());
    if (result.status.ok()) {
      const std::lock_guard lock(mutex_);
      ++answered_[quote.server()];
    }
    return result;
  }

  Servers& servers_;
  const weir::Duration budget_;
  std::mutex mutex_;
  int calls_ = 0;
  std::map<std::string, int> answered_;
  std::map<std::string, int> failed_;
};

}  // namespace

int main(int argc, char** argv) {
  std::string zookeeper = "127.0.0.1:2181";
  int rate = 200, seconds = 5, threads = 16, budget_ms = 500;
  CLI::App app("Calls a service that is found in ZooKeeper.");
  app.add_option("--zookeeper", zookeeper, "where ZooKeeper listens")
      ->capture_default_str();
  app.add_option("--rate", rate, "calls a second")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  app.add_option("--seconds", seconds, "for so long")
      ->capture_default_str()
      ->check(CLI::Range(1, 3600));
  app.add_option("--threads", threads, "most calls at a time")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  app.add_option("--budget-ms", budget_ms, "time that a call may take")
      ->capture_default_str()
      ->check(CLI::Range(1, 60'000));
  CLI11_PARSE(app, argc, argv);

  std::promise<void> listed;
  std::once_flag first;
  Servers servers(
      std::make_shared<weir::RetryAllowance>(weir::RetryAllowance::Config{}));
  const auto registry = rpc::Registry::Make({.servers = zookeeper});
  if (!registry) {
    std::fprintf(stderr, "%s\n", registry.error().message.c_str());
    return 2;
  }
  (*registry)->Follow("shop", [&](const std::vector<std::string>& addresses) {
    servers.Replace(addresses);
    std::string line = "servers:";
    for (const std::string& address : addresses) line += " " + address;
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
    std::call_once(first, [&] { listed.set_value(); });
  });
  if (listed.get_future().wait_for(10s) != std::future_status::ready) {
    std::fprintf(stderr, "rpc_client: no shop is listed in ZooKeeper at %s\n",
                 zookeeper.c_str());
    return 1;
  }

  Shopper shopper(servers, std::chrono::milliseconds(budget_ms));
  const weir::Instant begun = MonotonicClock::Now();
  std::atomic<int64_t> next{0};
  const int64_t all = int64_t{rate} * seconds;
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) {
    pool.emplace_back([&] {
      for (int64_t n; (n = next++) < all;) {
        const weir::Instant due =
            begun + std::chrono::nanoseconds(1s) * n / rate;
        std::this_thread::sleep_for(due - MonotonicClock::Now());
        shopper.Ask();
      }
    });
  }
  for (int s = 1; s <= seconds; ++s) {
    std::this_thread::sleep_for(begun + std::chrono::seconds(s) -
                                MonotonicClock::Now());
    shopper.Print(("second " + std::to_string(s) + ":").c_str());
  }
  for (std::thread& thread : pool) thread.join();
  shopper.Print("rest:");
}
