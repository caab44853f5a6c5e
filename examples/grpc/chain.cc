// Three services in a chain, A -> B -> C, each a process of its own, of which
// the last gets three times what it can do.  Each layer tries four times.
//
//   grpc_chain [--seconds N] [--seed N] [--capacity PER_SECOND]
//
// C has two workers that take a request each from a queue, as servers do.
// Without weir a layer gives an attempt half a second and tries again at once.
// With weir all three servers have a guard, and all three callers a guarded
// channel that hands on deadlines and knows when not to try again; nothing is
// told to any of them about C.

#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "echo.grpc.pb.h"
#include "weir/grpc/client.h"
#include "weir/grpc/server.h"
#include "weir/host/clock.h"

extern char** environ;

namespace {

using namespace std::chrono_literals;
using weir::grpc::GuardedChannel;
using weir::grpc::ServerScope;
using weir::grpc::ServiceGuard;
using weir::grpc::testing::Echo;
using weir::grpc::testing::Words;

constexpr int kWorkers = 2;      // Of C.
constexpr int kAttempts = 4;     // Of a layer.
constexpr double kOverload = 3;  // What is offered, of C's capacity.
constexpr auto kPatience = 1s;   // Of a user.
constexpr auto kAttemptTimeout = 500ms;
// Chosen: so that what is measured is the overload and not its beginning.
constexpr auto kWarmUp = 3s;

weir::Instant Now() { return weir::host::MonotonicClock::Now(); }

// Calls the next service, with or without weir.
class Next {
 public:
  Next(const std::string& address, bool with) {
    if (with) {
      weir::ClientPolicy policy;
      policy.retries.max_retries = kAttempts - 1;
      guarded_ = *GuardedChannel::Make(
          address, grpc::InsecureChannelCredentials(), {.policy = policy});
      stub_ = Echo::NewStub(guarded_->channel());
    } else {
      stub_ = Echo::NewStub(
          grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
    }
  }

  weir::grpc::CallResult Say(const ServerScope& scope) {
    const auto attempt = [&](grpc::ClientContext& context) {
      Words words;
      return stub_->Say(&context, words, &words);
    };
    if (guarded_) return guarded_->Call(scope, attempt);
    grpc::Status status;
    for (int i = 0; i < kAttempts; ++i) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + kAttemptTimeout);
      status = attempt(context);
      if (status.ok()) break;
    }
    return {status};
  }

 private:
  std::shared_ptr<GuardedChannel> guarded_;
  std::unique_ptr<Echo::Stub> stub_;
};

// A and B.
class Middle final : public Echo::Service {
 public:
  Middle(const std::string& next, bool with) : next_(next, with) {}

 private:
  grpc::Status Say(grpc::ServerContext* context, const Words*,
                   Words*) override {
    ++arrived;
    return weir::grpc::Relay(next_.Say(weir::grpc::ScopeOf(*context)),
                             *context);
  }

  Next next_;

 public:
  std::atomic<int64_t> arrived{0};
};

// C.
class Last final : public Echo::CallbackService {
 public:
  explicit Last(double capacity)
      : service_time_(std::chrono::duration_cast<std::chrono::nanoseconds>(
            std::chrono::duration<double>(kWorkers / capacity))) {
    for (int i = 0; i < kWorkers; ++i) {
      workers_.emplace_back([this] { Work(); });
    }
  }
  ~Last() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    arrived_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  int64_t handled() const { return handled_; }

 private:
  grpc::ServerUnaryReactor* Say(grpc::CallbackServerContext* context,
                                const Words*, Words*) override {
    ++handled_;
    auto* reactor = context->DefaultReactor();
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(reactor);
    }
    arrived_.notify_one();
    return reactor;
  }

  // A worker that wakes late, since the machine is busy, makes up for it while
  // there is work, so that C can do what it is said to.
  void Work() {
    weir::Instant done = Now();
    std::unique_lock lock(mutex_);
    for (;;) {
      if (queue_.empty() && !stopping_) {
        arrived_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
        done = Now();
      }
      if (stopping_) return;
      auto* reactor = queue_.front();
      queue_.pop_front();
      lock.unlock();
      done += service_time_;
      std::this_thread::sleep_for(done - Now());
      reactor->Finish(grpc::Status::OK);
      lock.lock();
    }
  }

  const std::chrono::nanoseconds service_time_;
  std::atomic<int64_t> handled_{0};
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<grpc::ServerUnaryReactor*> queue_;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

// In a child: serves until the parent closes our input, then tells how many
// calls came.
int Serve(const std::string& role, bool with, const std::string& next,
          double capacity) {
  std::shared_ptr<ServiceGuard> guard;
  std::unique_ptr<grpc::ServerBuilder> builder;
  if (with) {
    weir::Policy policy;
    policy.service = "grpc-chain-" + role;
    policy.deadline_from = {
        {weir::Source::Kind::kHeader, std::string("grpc-timeout")}};
    policy.trusted = {{weir::http::MapIPv4({127, 0, 0, 0}), 96 + 8}};
    policy.resources.push_back({.name = "default"});
    guard = *ServiceGuard::Make(policy, {.shared = false});
    builder = std::make_unique<weir::grpc::GuardedServerBuilder>(guard);
  } else {
    builder = std::make_unique<grpc::ServerBuilder>();
  }
  std::unique_ptr<Last> last;
  std::unique_ptr<Middle> middle;
  grpc::Service* service = nullptr;
  if (role == "c") {
    service = (last = std::make_unique<Last>(capacity)).get();
  } else {
    service = (middle = std::make_unique<Middle>(next, with)).get();
  }
  int port = 0;
  builder->AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                            &port);
  builder->RegisterService(service);
  const auto server = builder->BuildAndStart();
  if (!server) return 1;
  std::cout << port << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    // What has come here so far.
    std::cout << (last ? last->handled() : middle->arrived.load()) << std::endl;
  }
  _exit(0);  // Without weir thousands of calls would have to end first.
}

// A child, and lines to and from it.
class Child {
 public:
  Child(const std::string& role, bool with, const std::string& next,
        double capacity) {
    int in[2];
    int out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) std::abort();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    const std::string number = std::to_string(capacity);
    const char* const arguments[] = {
        "grpc_chain", "serve",        role.c_str(), with ? "with" : "without",
        next.c_str(), number.c_str(), nullptr};
    if (posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr,
                    const_cast<char* const*>(arguments), environ) != 0) {
      std::abort();
    }
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = fdopen(out[0], "r");
    address = "127.0.0.1:" + std::to_string(ReadNumber());
  }
  ~Child() {
    close(to_);
    waitpid(pid_, nullptr, 0);
    fclose(from_);
  }

  int64_t arrived() {
    if (write(to_, "\n", 1) != 1) std::abort();
    return ReadNumber();
  }

  std::string address;

 private:
  int64_t ReadNumber() {
    char line[32] = "";
    if (fgets(line, sizeof line, from_) == nullptr) std::abort();
    return std::atoll(line);
  }

  pid_t pid_ = 0;
  int to_ = -1;
  FILE* from_ = nullptr;
};

struct Report {
  double offered = 0;  // Each per second.
  double answered_in_time = 0;
  double at_a = 0, at_b = 0, at_c = 0;  // Calls whose handlers ran.
};

Report Run(bool with, double capacity, int seconds, unsigned seed) {
  Child c("c", with, "", capacity);
  Child b("b", with, c.address, capacity);
  Child a("a", with, b.address, capacity);
  Next front(a.address, with);

  std::mt19937 random(seed);
  std::exponential_distribution<double> gap(kOverload * capacity);
  std::atomic<int64_t> offered{0};
  std::atomic<int64_t> answered{0};
  std::vector<std::thread> users;
  int64_t at_a = 0, at_b = 0, at_c = 0;
  const weir::Instant begin = Now();
  const weir::Instant measured = begin + kWarmUp;
  const weir::Instant end = measured + std::chrono::seconds(seconds);
  bool warm = false;
  for (weir::Instant at = begin; at < end;
       at += weir::FromSeconds(gap(random))) {
    std::this_thread::sleep_for(at - Now());
    if (!warm && at >= measured) {
      warm = true;
      at_a = a.arrived(), at_b = b.arrived(), at_c = c.arrived();
    }
    users.emplace_back([&, at] {
      ServerScope scope;
      scope.scope.deadline = at + kPatience;
      const bool ok = front.Say(scope).status.ok();
      if (at < measured) return;
      ++offered;
      if (ok && Now() <= at + kPatience) ++answered;
    });
  }
  Report report;
  report.at_a = static_cast<double>(a.arrived() - at_a) / seconds;
  report.at_b = static_cast<double>(b.arrived() - at_b) / seconds;
  report.at_c = static_cast<double>(c.arrived() - at_c) / seconds;
  for (std::thread& user : users) user.join();
  report.offered = static_cast<double>(offered) / seconds;
  report.answered_in_time = static_cast<double>(answered) / seconds;
  return report;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 6 && std::strcmp(argv[1], "serve") == 0) {
    return Serve(argv[2], std::strcmp(argv[3], "with") == 0, argv[4],
                 std::atof(argv[5]));
  }
  int seconds = 10;
  unsigned seed = 1;
  double capacity = 50;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seconds") == 0) {
      seconds = std::atoi(argv[i + 1]);
    } else if (std::strcmp(argv[i], "--seed") == 0) {
      seed = static_cast<unsigned>(std::atoi(argv[i + 1]));
    } else if (std::strcmp(argv[i], "--capacity") == 0) {
      capacity = std::atof(argv[i + 1]);
    } else {
      std::fprintf(stderr,
                   "usage: grpc_chain [--seconds N] [--seed N] "
                   "[--capacity PER_SECOND]\n");
      return 2;
    }
  }
  std::printf("C can do %.0f/s, %.0f/s are offered, %d s\n\n", capacity,
              kOverload * capacity, seconds);
  std::printf("%-13s %9s %9s %11s   %8s %8s %8s\n", "", "offered", "in time",
              "of capacity", "A runs", "B runs", "C runs");
  for (const bool with : {false, true}) {
    const Report r = Run(with, capacity, seconds, seed);
    std::printf("%-13s %7.1f/s %7.1f/s %11.3f   %6.0f/s %6.0f/s %6.0f/s\n",
                with ? "with weir" : "without weir", r.offered,
                r.answered_in_time, r.answered_in_time / capacity, r.at_a,
                r.at_b, r.at_c);
    std::fflush(stdout);
  }
  return 0;
}
