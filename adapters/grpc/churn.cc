// What callers do to a server in an hour, in two minutes: calls of every kind
// that are cancelled at any moment, run into deadlines, lose their connection
// or are left lying, against both APIs of a guarded server whose limit is too
// small for them.  Afterwards nothing may be left: inflight and what waits are
// 0, and every admitted call ended once.
//
//   grpc_churn [--seconds 120] [--seed 1] [--threads 8]

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "testing/echo_server.h"
#include "weir/grpc/client.h"
#include "weir/grpc/server.h"
#include "weir/host/clock.h"
#include "weir/snapshot.h"

namespace weir::grpc {
namespace {

using namespace std::chrono_literals;
using testing::Echo;
using testing::Words;

Instant Now() { return host::MonotonicClock::Now(); }

struct Options {
  int seconds = 120;
  unsigned seed = 1;
  int threads = 8;
};

// The server, and what it serves.
struct Server {
  explicit Server(bool sync) {
    Policy policy;
    policy.service = "churn";
    policy.deadline = 50ms;
    policy.limit_floor = policy.limit_ceiling = 3;
    policy.resources.push_back({.name = "default"});
    guard = *ServiceGuard::Make(policy, {.shared = false, .shards = 2});
    if (sync) {
      service = std::make_unique<testing::SyncEcho>(stage);
    } else {
      service = std::make_unique<testing::CallbackEcho>(stage);
    }
    GuardedServerBuilder builder(guard);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", ::grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(service.get());
    server = builder.BuildAndStart();
    address = "127.0.0.1:" + std::to_string(port);
  }

  testing::Stage stage;
  std::shared_ptr<ServiceGuard> guard;
  std::unique_ptr<::grpc::Service> service;
  std::unique_ptr<::grpc::Server> server;
  std::string address;
};

// One thread of callers.
class Churner {
 public:
  Churner(std::vector<std::unique_ptr<Server>>& servers, unsigned seed)
      : servers_(servers), random_(seed) {}

  void Run(Instant end) {
    while (Now() < end) {
      if (calls % 50 == 0) Connect();  // The old one goes, with its calls.
      ++calls;
      Call();
    }
  }

  int64_t calls = 0;

 private:
  uint32_t Draw(uint32_t below) { return random_() % below; }

  void Connect() {
    ::grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = Echo::NewStub(::grpc::CreateCustomChannel(
        servers_[Draw(static_cast<uint32_t>(servers_.size()))]->address,
        ::grpc::InsecureChannelCredentials(), arguments));
  }

  void Call() {
    ::grpc::ClientContext context;
    switch (Draw(4)) {
      case 0:
        context.set_deadline(std::chrono::system_clock::now() +
                             std::chrono::microseconds(Draw(20'000)));
        break;
      case 1:
        context.set_deadline(std::chrono::system_clock::now() - 1ms);
        break;
      default:
        context.set_deadline(std::chrono::system_clock::now() + 1s);
    }
    // Another thread cancels, at any moment of the call.
    std::thread canceller;
    if (Draw(3) == 0) {
      canceller = std::thread([&context, spins = Draw(20'000)] {
        for (std::atomic<uint32_t> i = 0; i < spins; ++i) {
        }
        context.TryCancel();
      });
    }
    Words words;
    const uint32_t text = Draw(8);
    words.set_text(text == 0 ? "fail" : text == 1 ? "throw" : "hello");
    words.set_times(static_cast<int32_t>(Draw(4)));
    switch (Draw(4)) {
      case 0:
        stub_->Say(&context, words, &words);
        break;
      case 1:
        Gather(context, words);
        break;
      case 2:
        Repeat(context, words);
        break;
      case 3:
        Talk(context, words);
        break;
    }
    if (canceller.joinable()) canceller.join();
  }

  void Gather(::grpc::ClientContext& context, Words& words) {
    auto writer = stub_->Gather(&context, &words);
    Words part;
    for (uint32_t i = Draw(5); i > 0 && writer->Write(part); --i) {
    }
    if (Draw(4) == 0) context.TryCancel();
    writer->WritesDone();
    writer->Finish();
  }

  void Repeat(::grpc::ClientContext& context, Words& words) {
    auto reader = stub_->Repeat(&context, words);
    if (Draw(4) == 0) context.TryCancel();
    while (reader->Read(&words)) {
    }
    reader->Finish();
  }

  void Talk(::grpc::ClientContext& context, Words& words) {
    auto stream = stub_->Talk(&context);
    for (uint32_t i = Draw(5); i > 0; --i) {
      if (!stream->Write(words)) break;
      if (Draw(3) > 0 && !stream->Read(&words)) break;
    }
    if (Draw(4) == 0) context.TryCancel();
    stream->WritesDone();
    while (stream->Read(&words)) {
    }
    stream->Finish();
  }

  std::vector<std::unique_ptr<Server>>& servers_;
  std::mt19937 random_;
  std::unique_ptr<Echo::Stub> stub_;
};

uint64_t Sum(const Snapshot& snapshot, ClassCounter from, ClassCounter to) {
  uint64_t sum = 0;
  for (auto c = static_cast<size_t>(from); c <= static_cast<size_t>(to); ++c) {
    for (const uint64_t of_class : snapshot.by_class[c]) sum += of_class;
  }
  return sum;
}

// Says what is left; true when nothing is.
bool IsClean(const char* name, const Snapshot& snapshot) {
  const uint64_t offered =
      Sum(snapshot, ClassCounter::offered_total, ClassCounter::offered_total);
  const uint64_t admitted =
      Sum(snapshot, ClassCounter::admitted_total, ClassCounter::admitted_total);
  const uint64_t shed = Sum(snapshot, ClassCounter::shed_paused_total,
                            ClassCounter::shed_shutdown_total);
  const uint64_t finished = Sum(snapshot, ClassCounter::finished_ok_total,
                                ClassCounter::finished_ignored_total);
  int64_t waiting = 0;
  for (const int64_t of_class : snapshot.waiting) waiting += of_class;
  std::printf(
      "%-9s offered %8lu  admitted %8lu  shed %8lu  finished %8lu  inflight "
      "%ld  waiting %ld\n",
      name, offered, admitted, shed, finished, snapshot.inflight, waiting);
  return snapshot.inflight == 0 && waiting == 0 && admitted == finished &&
         offered == admitted + shed && admitted > 0 && shed > 0;
}

bool Churn(const Options& options) {
  std::vector<std::unique_ptr<Server>> servers;
  servers.push_back(std::make_unique<Server>(true));
  servers.push_back(std::make_unique<Server>(false));
  std::vector<std::unique_ptr<Churner>> churners;
  std::vector<std::thread> threads;
  const Instant end = Now() + std::chrono::seconds(options.seconds);
  for (int i = 0; i < options.threads; ++i) {
    churners.push_back(std::make_unique<Churner>(
        servers, options.seed * 1000 + static_cast<unsigned>(i)));
    threads.emplace_back(
        [churner = churners.back().get(), end] { churner->Run(end); });
  }
  for (std::thread& thread : threads) thread.join();
  int64_t calls = 0;
  for (const auto& churner : churners) calls += churner->calls;
  std::printf("%ld calls in %d s, seed %u\n", calls, options.seconds,
              options.seed);
  bool clean = true;
  const char* const names[] = {"sync", "callback"};
  for (size_t i = 0; i < servers.size(); ++i) {
    servers[i]->server->Shutdown();  // Waits for all calls.
    clean = IsClean(names[i], Read(servers[i]->guard->region())) && clean;
  }
  std::puts(clean ? "clean" : "NOT clean");
  return clean;
}

}  // namespace
}  // namespace weir::grpc

int main(int argc, char** argv) {
  weir::grpc::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const int value = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--seconds") == 0) {
      options.seconds = value;
    } else if (std::strcmp(argv[i], "--seed") == 0) {
      options.seed = static_cast<unsigned>(value);
    } else if (std::strcmp(argv[i], "--threads") == 0) {
      options.threads = value;
    } else {
      std::fprintf(stderr,
                   "usage: grpc_churn [--seconds N] [--seed N] "
                   "[--threads N]\n");
      return 2;
    }
  }
  return weir::grpc::Churn(options) ? 0 : 1;
}
