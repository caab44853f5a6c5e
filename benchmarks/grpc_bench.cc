// What the guard costs a gRPC server: unary echoes a second with and without
// it, and the CPU of a refusal against that of an answer.
//
// Clients and servers share this process and its CPUs.  Slices of a twentieth
// of a second alternate between the servers, so that whatever else the machine
// does hits both; a run is a pair of slices, and the ratio is taken within it.
// Many short pairs and not few long ones: a pair varies by a third either way,
// however long it is.

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "echo.grpc.pb.h"
#include "weir/grpc/server.h"
#include "weir/host/clock.h"
#include "weir/host/cpu.h"

namespace {

using namespace std::chrono_literals;
using weir::grpc::GuardedServerBuilder;
using weir::grpc::ServiceGuard;
using weir::grpc::testing::Echo;
using weir::grpc::testing::Words;

constexpr int kClients = 4;
constexpr int kRuns = 100;
constexpr auto kSlice = 50ms;

weir::Instant Now() { return weir::host::MonotonicClock::Now(); }

class SyncEcho final : public Echo::Service {
  grpc::Status Say(grpc::ServerContext*, const Words* request,
                   Words* response) override {
    *response = *request;
    return grpc::Status::OK;
  }
};

class CallbackEcho final : public Echo::CallbackService {
  grpc::ServerUnaryReactor* Say(grpc::CallbackServerContext* context,
                                const Words* request,
                                Words* response) override {
    *response = *request;
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

enum class Kind { kPlain, kGuarded, kRefusing };

class Server {
 public:
  Server(bool sync, Kind kind) {
    if (sync) {
      service_ = std::make_unique<SyncEcho>();
    } else {
      service_ = std::make_unique<CallbackEcho>();
    }
    std::unique_ptr<grpc::ServerBuilder> builder;
    if (kind == Kind::kPlain) {
      builder = std::make_unique<grpc::ServerBuilder>();
    } else {
      weir::Policy policy;
      policy.service = "grpc-bench";
      policy.resources.push_back({.name = "default"});
      policy.resources[0].paused = kind == Kind::kRefusing;
      guard_ = *ServiceGuard::Make(policy, {.shared = false});
      builder = std::make_unique<GuardedServerBuilder>(guard_);
    }
    int port = 0;
    builder->AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                              &port);
    builder->RegisterService(service_.get());
    server_ = builder->BuildAndStart();
    for (auto& stub : stubs_) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      stub = Echo::NewStub(grpc::CreateCustomChannel(
          "127.0.0.1:" + std::to_string(port),
          grpc::InsecureChannelCredentials(), arguments));
    }
  }
  ~Server() { server_->Shutdown(); }

  struct Slice {
    double per_second = 0;
    double cpu_us = 0;  // A call, on both sides.
  };
  Slice Run() {
    std::atomic<int64_t> calls{0};
    const weir::Instant begin = Now();
    const auto cpu_before = weir::host::ProcessCpuTime();
    std::vector<std::thread> threads;
    for (auto& stub : stubs_) {
      threads.emplace_back([&] {
        Words request;
        request.set_text(std::string(64, 'x'));
        Words response;
        int64_t mine = 0;
        for (; Now() < begin + kSlice; ++mine) {
          grpc::ClientContext context;
          stub->Say(&context, request, &response);
        }
        calls += mine;
      });
    }
    for (std::thread& thread : threads) thread.join();
    const double seconds = weir::ToSeconds(Now() - begin);
    const double cpu =
        weir::ToSeconds(*weir::host::ProcessCpuTime() - *cpu_before);
    const auto count = static_cast<double>(calls);
    return {count / seconds, cpu * 1e6 / count};
  }

 private:
  std::shared_ptr<ServiceGuard> guard_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::array<std::unique_ptr<Echo::Stub>, kClients> stubs_;
};

nlohmann::ordered_json Result(const std::string& metric,
                              std::vector<double> values, const char* unit) {
  std::sort(values.begin(), values.end());
  return {{"metric", metric},      {"value", values[values.size() / 2]},
          {"unit", unit},          {"runs", values.size()},
          {"min", values.front()}, {"max", values.back()}};
}

void Measure(bool sync, nlohmann::ordered_json& results) {
  Server plain(sync, Kind::kPlain);
  Server guarded(sync, Kind::kGuarded);
  Server refusing(sync, Kind::kRefusing);
  for (Server* server : {&plain, &guarded, &refusing}) server->Run();
  std::vector<double> qps, ratio, cpu_ratio, refusals, refusal_cpu;
  for (int i = 0; i < kRuns; ++i) {
    // Who comes first takes turns.
    Server::Slice with, without;
    if (i % 2 == 0) {
      without = plain.Run();
      with = guarded.Run();
    } else {
      with = guarded.Run();
      without = plain.Run();
    }
    const Server::Slice refused = refusing.Run();
    qps.push_back(without.per_second);
    ratio.push_back(with.per_second / without.per_second);
    cpu_ratio.push_back(with.cpu_us / without.cpu_us);
    refusals.push_back(refused.per_second / without.per_second);
    refusal_cpu.push_back(refused.cpu_us / without.cpu_us);
  }
  const std::string suffix = sync ? "" : "_callback";
  results.push_back(Result("echo_qps" + suffix, qps, "calls/s"));
  results.push_back(Result("echo_qps_ratio_guarded" + suffix, ratio, "ratio"));
  results.push_back(
      Result("echo_cpu_ratio_guarded" + suffix, cpu_ratio, "ratio"));
  results.push_back(Result("refusal_qps_ratio" + suffix, refusals, "ratio"));
  results.push_back(Result("refusal_cpu_ratio" + suffix, refusal_cpu, "ratio"));
}

}  // namespace

int main() {
  nlohmann::ordered_json out = {{"name", "grpc"}};
  out["results"] = nlohmann::ordered_json::array();
  Measure(true, out["results"]);
  Measure(false, out["results"]);
  std::printf("%s\n", out.dump().c_str());
}
