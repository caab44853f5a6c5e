#include "weir/grpc/client.h"

#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "echo.grpc.pb.h"
#include "testing/echo_server.h"
#include "weir/degrade/switch.h"
#include "weir/grpc/server.h"
#include "weir/host/clock.h"

namespace weir::grpc {
namespace {

using namespace std::chrono_literals;
using ::grpc::Status;
using ::grpc::StatusCode;
using testing::Echo;
using testing::Words;

// What handlers saw, for the thread that called them.
class Notes {
 public:
  void Add(const std::string& word) {
    const std::lock_guard lock(mutex_);
    text_ += word + " ";
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

// A server without a guard, whose Say() does what a test wants.
class Backend {
 public:
  explicit Backend(testing::SyncEcho::SayFunction say,
                   std::shared_ptr<ServiceGuard> guard = nullptr)
      : service_(stage, std::move(say)) {
    int port = 0;
    std::unique_ptr<::grpc::ServerBuilder> builder =
        guard == nullptr ? std::make_unique<::grpc::ServerBuilder>()
                         : std::make_unique<GuardedServerBuilder>(guard);
    builder->AddListeningPort("127.0.0.1:0",
                              ::grpc::InsecureServerCredentials(), &port);
    builder->RegisterService(&service_);
    server_ = builder->BuildAndStart();
    EXPECT_NE(server_, nullptr);
    address = "127.0.0.1:" + std::to_string(port);
  }
  ~Backend() { server_->Shutdown(); }

  testing::Stage stage;
  std::string address;

 private:
  testing::SyncEcho service_;
  std::unique_ptr<::grpc::Server> server_;
};

Instant Now() { return host::MonotonicClock::Now(); }

class Caller {
 public:
  explicit Caller(const std::string& address, ClientPolicy policy = {}) {
    policy.retries.backoff.first = 1ms;
    // What one test spends is not missed by the next.
    Use(address, {.policy = policy,
                  .allowance = std::make_shared<RetryAllowance>(
                      RetryAllowance::Config())});
  }
  Caller(const std::string& address, const GuardedChannel::Options& options) {
    Use(address, options);
  }
  void Use(const std::string& address, const GuardedChannel::Options& options) {
    auto made = GuardedChannel::Make(
        address, ::grpc::InsecureChannelCredentials(), options);
    EXPECT_TRUE(made) << made.error().message;
    channel = *made;
    stub = Echo::NewStub(channel->channel());
  }

  // By the stub alone.
  Status Say(const std::string& text = "hello") {
    ::grpc::ClientContext context;
    Words words;
    words.set_text(text);
    return stub->Say(&context, words, &words);
  }
  // With retries.
  CallResult Call(const ServerScope& scope = {}) {
    return channel->Call(scope, [&](::grpc::ClientContext& context) {
      Words words;
      return stub->Say(&context, words, &words);
    });
  }
  uint64_t dropped(DropReason reason) const {
    return channel->guard().counts().dropped[static_cast<size_t>(reason)];
  }

  std::shared_ptr<GuardedChannel> channel;
  std::unique_ptr<Echo::Stub> stub;
};

std::string Header(const ::grpc::ServerContext& context, const char* name) {
  const auto& metadata = context.client_metadata();
  const auto it = metadata.find(name);
  return it == metadata.end()
             ? "none"
             : std::string(it->second.data(), it->second.size());
}

TEST(ClientTest, CallsArePassedOnAndCounted) {
  Backend backend(nullptr);
  Caller caller(backend.address);
  EXPECT_TRUE(caller.Say().ok());
  EXPECT_TRUE(caller.Call().status.ok());
  EXPECT_EQ(caller.channel->guard().counts().sent, 2u);
  EXPECT_EQ(backend.stage.handled(), 2);
}

TEST(ClientTest, TheMarkOfACallIsNotSent) {
  Notes seen;
  Backend backend([&](::grpc::ServerContext& context, const Words&, Words&) {
    seen.Add(Header(context, "weir-asked"));
    seen.Add(Header(context, "weir-criticality"));
    return Status::OK;
  });
  Caller caller(backend.address);
  ServerScope scope;
  scope.scope.criticality = Criticality::kDeferrable;
  EXPECT_TRUE(caller.Call(scope).status.ok());
  EXPECT_EQ(seen.text(), "none deferrable ");
}

TEST(ClientTest, ABackendThatRefusesIsSparedAtHome) {
  Backend backend([](::grpc::ServerContext&, const Words&, Words&) {
    return Status(StatusCode::RESOURCE_EXHAUSTED, "full");
  });
  Caller caller(backend.address);
  int dropped = 0;
  for (int i = 0; i < 500; ++i) {
    const Status status = caller.Say();
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    if (status.error_message() == "dropped by weir: throttle") ++dropped;
  }
  EXPECT_EQ(caller.dropped(DropReason::kThrottle),
            static_cast<uint64_t>(dropped));
  EXPECT_EQ(backend.stage.handled() + dropped, 500);
  EXPECT_GT(dropped, 300);
}

// The breaker opens, and then a call of each kind ends at home.
TEST(ClientTest, EveryKindOfCallCanBeDropped) {
  Backend backend([](::grpc::ServerContext&, const Words&, Words&) {
    return Status(StatusCode::INTERNAL, "broken");
  });
  ClientPolicy policy;
  policy.breaker.open_for = policy.breaker.open_for_ceiling = 1h;
  Caller caller(backend.address, policy);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(caller.Say().error_code(), StatusCode::INTERNAL);
  }
  const auto expect_dropped = [](const Status& status) {
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(status.error_message(), "dropped by weir: breaker");
  };
  expect_dropped(caller.Say());
  const CallResult result = caller.Call();
  expect_dropped(result.status);
  EXPECT_TRUE(result.never_retry_above);
  Words words;
  {
    ::grpc::ClientContext context;
    auto writer = caller.stub->Gather(&context, &words);
    writer->Write(words);
    writer->WritesDone();
    expect_dropped(writer->Finish());
  }
  {
    ::grpc::ClientContext context;
    auto reader = caller.stub->Repeat(&context, words);
    EXPECT_FALSE(reader->Read(&words));
    expect_dropped(reader->Finish());
  }
  {
    ::grpc::ClientContext context;
    auto stream = caller.stub->Talk(&context);
    stream->Write(words);
    EXPECT_FALSE(stream->Read(&words));
    expect_dropped(stream->Finish());
  }
  {
    ::grpc::ClientContext context;
    std::promise<Status> done;
    caller.stub->async()->Say(&context, &words, &words,
                              [&](Status status) { done.set_value(status); });
    expect_dropped(done.get_future().get());
  }
  EXPECT_EQ(backend.stage.handled(), 20);
}

TEST(ClientTest, ACallIsTriedAgainAndSaysSo) {
  std::atomic<int> calls{0};
  Notes attempts;
  Backend backend([&](::grpc::ServerContext& context, const Words&, Words&) {
    attempts.Add(Header(context, "grpc-previous-rpc-attempts"));
    return ++calls < 3 ? Status(StatusCode::UNAVAILABLE, "not now")
                       : Status::OK;
  });
  Caller caller(backend.address);
  EXPECT_TRUE(caller.Call().status.ok());
  EXPECT_EQ(attempts.text(), "none 1 2 ");
  EXPECT_EQ(caller.channel->guard().counts().retries, 2u);
}

TEST(ClientTest, APushBackIsHonoured) {
  for (const char* pushback : {"-1", "1"}) {
    std::atomic<int> calls{0};
    Backend backend([&](::grpc::ServerContext& context, const Words&, Words&) {
      context.AddTrailingMetadata("grpc-retry-pushback-ms", pushback);
      return ++calls < 2 ? Status(StatusCode::RESOURCE_EXHAUSTED, "full")
                         : Status::OK;
    });
    Caller caller(backend.address);
    const bool again = std::string(pushback) == "1";
    const CallResult result = caller.Call();
    EXPECT_EQ(result.status.ok(), again);
    EXPECT_EQ(result.never_retry_above, !again);
    EXPECT_EQ(calls, again ? 2 : 1);
  }
}

// A server that shakes hands as HTTP/2 does, reads a call and breaks down.
class BreakingServer {
 public:
  BreakingServer() {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    const auto* const any = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, any, size), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port = std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { Serve(); });
  }
  ~BreakingServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }

  std::string port;
  std::atomic<int> calls{0};

 private:
  void Serve() {
    for (int peer; (peer = accept(listener_, nullptr, nullptr)) >= 0;) {
      constexpr char kSettings[9] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
      EXPECT_EQ(send(peer, kSettings, sizeof(kSettings), 0), 9);
      std::string bytes;
      char some[4096];
      // The name of the method, which is sent as it is.
      while (bytes.find("Echo/Say") == std::string::npos) {
        const ssize_t read = recv(peer, some, sizeof(some), 0);
        if (read <= 0) break;
        bytes.append(some, static_cast<size_t>(read));
      }
      ++calls;
      close(peer);
    }
  }

  int listener_ = -1;
  std::thread thread_;
};

TEST(ClientTest, ARefusedConnectionIsNothingSentAndCostsNoBudget) {
  std::string port;
  {
    BreakingServer gone;
    port = gone.port;
  }
  for (const std::string& target :
       {"127.0.0.1:" + port, "ipv4:127.0.0.1:" + port}) {
    Caller caller(target);
    const CallResult result = caller.Call();
    EXPECT_EQ(result.status.error_code(), StatusCode::UNAVAILABLE);
    EXPECT_TRUE(result.unreached) << target;
    EXPECT_FALSE(result.sent());
    const ClientGuard& guard = caller.channel->guard();
    EXPECT_EQ(guard.tokens().tokens(Now()), 10);
    // Three attempts; the next two open the breaker.
    for (int i = 0; i < 2; ++i) (void)caller.Say();
    EXPECT_EQ(guard.breaker().state(Now()), CircuitBreaker::State::kOpen);
    EXPECT_EQ(caller.Call().dropped, DropReason::kBreaker);
  }
}

TEST(ClientTest, AConnectionThatBreaksUnderACallWasReached) {
  for (const std::string scheme : {"", "ipv4:"}) {
    BreakingServer server;
    ClientPolicy policy;
    policy.retries.max_retries = 0;
    Caller caller(scheme + "127.0.0.1:" + server.port, policy);
    const CallResult result = caller.Call();
    EXPECT_EQ(result.status.error_code(), StatusCode::UNAVAILABLE)
        << result.status.error_message();
    EXPECT_EQ(server.calls, 1);
    EXPECT_FALSE(result.unreached);
    EXPECT_TRUE(result.sent());
  }
}

TEST(ClientTest, ChannelsShareTheAllowanceOfTheProcess) {
  while (RetryAllowance::OfProcess()->Spend(Now())) {
  }
  Backend backend([](::grpc::ServerContext&, const Words&, Words&) {
    return Status(StatusCode::UNAVAILABLE, "away");
  });
  for (int i = 0; i < 2; ++i) {
    Caller caller(backend.address, GuardedChannel::Options());
    caller.Call();
    EXPECT_EQ(caller.channel->guard().counts().retries, 0u);
  }
  EXPECT_EQ(backend.stage.handled(), 2);
}

TEST(ClientTest, BadPoliciesAreRefused) {
  ClientPolicy policy;
  policy.throttle.k = 0;
  EXPECT_FALSE(GuardedChannel::Make(
      "127.0.0.1:1", ::grpc::InsecureChannelCredentials(), {.policy = policy}));
}

// A -> B: the handler of A calls B for its caller.
class ChainTest : public ::testing::Test {
 protected:
  ChainTest() {
    Policy policy;
    policy.service = "chain-test";
    policy.deadline = 20s;
    policy.deadline_from = {{Source::Kind::kHeader, "grpc-timeout"}};
    policy.criticality_from = {{Source::Kind::kHeader, "weir-criticality"}};
    policy.trusted = {{http::MapIPv4({127, 0, 0, 0}), 96 + 8}};
    policy.resources.push_back({.name = "default"});
    guard_ = *ServiceGuard::Make(policy, {.shared = false});
    b_ = std::make_unique<Backend>(
        [this](::grpc::ServerContext& context, const Words& words, Words&) {
          const auto scope = ScopeOf(context);
          b_criticality_ = scope.scope.criticality;
          b_left_ = scope.scope.deadline - host::MonotonicClock::Now();
          return words.text() == "refuse"
                     ? Status(StatusCode::UNAVAILABLE, "full")
                     : Status::OK;
        },
        guard_);
    to_b_ = std::make_unique<Caller>(b_->address, OnlyOnce());
    a_ = std::make_unique<Backend>(
        [this](::grpc::ServerContext& context, const Words& words, Words& out) {
          const auto scope = ScopeOf(context);
          a_left_ = scope.scope.deadline - host::MonotonicClock::Now();
          const CallResult result =
              to_b_->channel->Call(scope, [&](::grpc::ClientContext& call) {
                return to_b_->stub->Say(&call, words, &out);
              });
          b_code_ = result.status.error_code();
          return Relay(result, context);
        },
        guard_);
    to_a_ = Echo::NewStub(::grpc::CreateChannel(
        a_->address, ::grpc::InsecureChannelCredentials()));
  }

  static ClientPolicy OnlyOnce() {
    ClientPolicy policy;
    policy.deadline.margin = 500ms;
    policy.retries.max_retries = 0;
    return policy;
  }

  std::shared_ptr<ServiceGuard> guard_;
  std::atomic<Criticality> b_criticality_{Criticality::kImportant};
  std::atomic<Duration> a_left_{};
  std::atomic<Duration> b_left_{};
  std::atomic<int> b_code_{-1};
  std::unique_ptr<Backend> b_;
  std::unique_ptr<Caller> to_b_;
  std::unique_ptr<Backend> a_;
  std::unique_ptr<Echo::Stub> to_a_;
};

TEST_F(ChainTest, CriticalityAndDeadlineAreHandedOn) {
  ::grpc::ClientContext context;
  context.AddMetadata("weir-criticality", "deferrable");
  context.set_deadline(std::chrono::system_clock::now() + 9s);
  Words words;
  EXPECT_TRUE(to_a_->Say(&context, words, &words).ok());
  EXPECT_EQ(b_criticality_, Criticality::kDeferrable);
  // gRPC rounds what is left up to ten milliseconds, the margin is 500.
  EXPECT_LT(b_left_.load(), a_left_.load() - 400ms);
  EXPECT_GT(b_left_.load(), 0ms);
}

TEST_F(ChainTest, WhoCancelsAlsoCancelsBelow) {
  ::grpc::ClientContext context;
  auto call = std::async(std::launch::async, [&] {
    Words words;
    words.set_text("hold");
    return to_a_->Say(&context, words, &words);
  });
  // "hold" is held in A first.
  a_->stage.WaitForHeld(1);
  a_->stage.Release();
  b_->stage.WaitForHeld(1);
  context.TryCancel();
  EXPECT_EQ(call.get().error_code(), StatusCode::CANCELLED);
  while (b_code_ == -1) std::this_thread::yield();
  EXPECT_EQ(b_code_, StatusCode::CANCELLED);
}

TEST_F(ChainTest, OverloadBelowIsNotTriedAgainAbove) {
  ::grpc::ClientContext context;
  Words words;
  words.set_text("refuse");
  const Status status = to_a_->Say(&context, words, &words);
  EXPECT_EQ(b_code_, StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto pushback = trailers.find("grpc-retry-pushback-ms");
  ASSERT_NE(pushback, trailers.end());
  EXPECT_EQ(std::string(pushback->second.data(), pushback->second.size()),
            "-1");
}

// The scope of a handler is what the guard decided by, not what a caller that
// is not trusted wrote.
TEST(ScopeTest, CriticalityIsTheOneThatWasDecidedBy) {
  Policy policy;
  policy.service = "scope-test";
  policy.criticality_from = {{Source::Kind::kHeader, "weir-criticality"}};
  policy.resources.push_back(
      {.name = "default", .criticality = Criticality::kSheddable});
  const auto guard = *ServiceGuard::Make(policy, {.shared = false});
  std::atomic<Criticality> seen{Criticality::kImportant};
  Backend backend(
      [&](::grpc::ServerContext& context, const Words&, Words&) {
        seen = ScopeOf(context).scope.criticality;
        return Status::OK;
      },
      guard);
  const auto stub = Echo::NewStub(::grpc::CreateChannel(
      backend.address, ::grpc::InsecureChannelCredentials()));
  ::grpc::ClientContext context;
  context.AddMetadata("weir-criticality", "vital");
  Words words;
  EXPECT_TRUE(stub->Say(&context, words, &words).ok());
  EXPECT_EQ(seen, Criticality::kSheddable);
}

// `weir switch` puts a level into the region.
TEST(ScopeTest, TheLevelIsTheDecisionsAndNotWhatItsCallerWrote) {
  Policy policy;
  policy.service = "scope-test";
  policy.resources.push_back(
      {.name = "default", .degrade = {{.name = "less"}, {.name = "least"}}});
  const auto guard = *ServiceGuard::Make(policy, {.shared = false});
  std::atomic<int> seen{-1};
  Backend backend(
      [&](::grpc::ServerContext& context, const Words&, Words&) {
        seen = ScopeOf(context).degrade;
        return Status::OK;
      },
      guard);
  const auto stub = Echo::NewStub(::grpc::CreateChannel(
      backend.address, ::grpc::InsecureChannelCredentials()));
  for (const uint8_t level : {0, 1, 2, 0}) {
    const_cast<Region&>(guard->region())
        .resources[0]
        .by_hand.store(
            Switch{.action = Switch::Action::kDegrade, .level = level}.Pack());
    ::grpc::ClientContext context;
    context.AddMetadata("weir-degrade", "4");
    Words words;
    EXPECT_TRUE(stub->Say(&context, words, &words).ok());
    EXPECT_EQ(seen, level);
  }
}

}  // namespace
}  // namespace weir::grpc
