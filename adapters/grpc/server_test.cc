#include "weir/grpc/server.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/health_check_service_interface.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "echo.grpc.pb.h"
#include "private_api.h"
#include "testing/echo_server.h"
#include "weir/snapshot.h"

namespace weir::grpc {
namespace {

using namespace std::chrono_literals;
using ::grpc::Status;
using ::grpc::StatusCode;
using testing::Echo;
using testing::Words;

Policy MakePolicy(int32_t limit = 0) {
  Policy policy;
  policy.service = "grpc-test";
  policy.deadline = 20s;
  policy.deadline_from = {{Source::Kind::kHeader, "grpc-timeout"}};
  policy.trusted = {{http::MapIPv4({127, 0, 0, 0}), 96 + 8}};
  if (limit > 0) policy.limit_floor = policy.limit_ceiling = limit;
  policy.resources.push_back({.name = "default"});
  return policy;
}

enum class Api { kSync, kCallback, kInterceptedSync, kInterceptedCallback };

bool IsIntercepted(Api api) {
  return api == Api::kInterceptedSync || api == Api::kInterceptedCallback;
}

// A guarded server and a channel to it.
class World {
 public:
  World(Api api, const Policy& policy) {
    auto made = ServiceGuard::Make(policy, {.shared = false});
    EXPECT_TRUE(made) << made.error().message;
    guard = *made;
    const bool sync = api == Api::kSync || api == Api::kInterceptedSync;
    if (sync) {
      service_ = std::make_unique<testing::SyncEcho>(stage);
    } else {
      service_ = std::make_unique<testing::CallbackEcho>(stage);
    }
    GuardedServerBuilder builder(guard);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", ::grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(service_.get());
    if (IsIntercepted(api)) builder.UseInterceptors();
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr) << builder.error();
    address = "127.0.0.1:" + std::to_string(port);
    channel = NewChannel();
    stub = Echo::NewStub(channel);
  }
  ~World() { Stop(); }

  std::shared_ptr<::grpc::Channel> NewChannel() const {
    ::grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // Where gRPC may retry, it alone says how often it did.
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    return ::grpc::CreateCustomChannel(
        address, ::grpc::InsecureChannelCredentials(), arguments);
  }

  // Ends all calls; then everything that ends has ended.
  void Stop() {
    if (!server_) return;
    stage.Release();
    server_->Shutdown();
    server_.reset();
  }

  Status Say(const std::string& text) {
    ::grpc::ClientContext context;
    return Say(context, text);
  }
  Status Say(::grpc::ClientContext& context, const std::string& text) {
    Words request;
    Words response;
    request.set_text(text);
    const Status status = stub->Say(&context, request, &response);
    EXPECT_EQ(response.text(), status.ok() ? text : "");
    return status;
  }

  std::future<Status> SayLater(const std::string& text) {
    return std::async(std::launch::async, [this, text] { return Say(text); });
  }

  Snapshot Read() const { return weir::Read(guard->region()); }

  testing::Stage stage;
  std::shared_ptr<ServiceGuard> guard;
  std::string address;
  std::shared_ptr<::grpc::Channel> channel;
  std::unique_ptr<Echo::Stub> stub;

 private:
  std::unique_ptr<::grpc::Service> service_;
  std::unique_ptr<::grpc::Server> server_;
};

uint64_t Sum(const Snapshot& snapshot, ClassCounter counter) {
  uint64_t sum = 0;
  for (const uint64_t of_class : snapshot[counter]) sum += of_class;
  return sum;
}

uint64_t Finished(const Snapshot& snapshot) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kOutcomes; ++i) {
    sum += Sum(snapshot,
               static_cast<ClassCounter>(
                   static_cast<size_t>(ClassCounter::finished_ok_total) + i));
  }
  return sum;
}

// Every admitted call ended, once.
void ExpectAllEnded(const World& world) {
  const Snapshot snapshot = world.Read();
  EXPECT_EQ(snapshot.inflight, 0);
  EXPECT_EQ(Sum(snapshot, ClassCounter::admitted_total), Finished(snapshot));
}

// A condition that another thread brings about.
void WaitUntil(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::yield();
}

std::string Trailer(const ::grpc::ClientContext& context, const char* name) {
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto it = metadata.find(name);
  return it == metadata.end()
             ? "none"
             : std::string(it->second.data(), it->second.size());
}

std::string NameOf(const ::testing::TestParamInfo<Api>& tested) {
  switch (tested.param) {
    case Api::kSync:
      return "Sync";
    case Api::kCallback:
      return "Callback";
    case Api::kInterceptedSync:
      return "InterceptedSync";
    case Api::kInterceptedCallback:
      return "InterceptedCallback";
  }
  return "";
}

class ServerTest : public ::testing::TestWithParam<Api> {};

INSTANTIATE_TEST_SUITE_P(Apis, ServerTest,
                         ::testing::Values(Api::kSync, Api::kCallback,
                                           Api::kInterceptedSync,
                                           Api::kInterceptedCallback),
                         NameOf);

// One call of each kind, with their answers checked.
void CallAllKinds(World& world) {
  EXPECT_TRUE(world.Say("hello").ok());
  {
    ::grpc::ClientContext context;
    Words words;
    auto writer = world.stub->Gather(&context, &words);
    for (const char* text : {"a", "b", "c"}) {
      Words part;
      part.set_text(text);
      EXPECT_TRUE(writer->Write(part));
    }
    writer->WritesDone();
    EXPECT_TRUE(writer->Finish().ok());
    EXPECT_EQ(words.text(), "abc");
  }
  {
    ::grpc::ClientContext context;
    Words request;
    request.set_text("again");
    request.set_times(5);
    auto reader = world.stub->Repeat(&context, request);
    int times = 0;
    for (Words words; reader->Read(&words); ++times) {
      EXPECT_EQ(words.text(), "again");
    }
    EXPECT_TRUE(reader->Finish().ok());
    EXPECT_EQ(times, 5);
  }
  {
    ::grpc::ClientContext context;
    auto stream = world.stub->Talk(&context);
    for (const char* text : {"a", "b", "c"}) {
      Words words;
      words.set_text(text);
      EXPECT_TRUE(stream->Write(words));
      EXPECT_TRUE(stream->Read(&words));
      EXPECT_EQ(words.text(), text);
    }
    stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
  }
}

TEST_P(ServerTest, EveryKindOfCallIsAnsweredAndCountedOnce) {
  World world(GetParam(), MakePolicy());
  CallAllKinds(world);
  world.Stop();
  ExpectAllEnded(world);
  const Snapshot snapshot = world.Read();
  // Four starts, and six messages that came after the start.
  EXPECT_EQ(Sum(snapshot, ClassCounter::offered_total), 10u);
  EXPECT_EQ(Sum(snapshot, ClassCounter::finished_ok_total), 1u);
  EXPECT_EQ(Sum(snapshot, ClassCounter::finished_ignored_total), 9u);
}

TEST_P(ServerTest, EveryKindOfCallIsRefusedWithOneStatus) {
  Policy policy = MakePolicy();
  policy.resources[0].paused = true;
  World world(GetParam(), policy);
  const auto expect_refused = [](const Status& status) {
    EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE);
    EXPECT_EQ(status.error_message(), "shed by weir: paused");
  };
  expect_refused(world.Say("hello"));
  {
    ::grpc::ClientContext context;
    Words words;
    auto writer = world.stub->Gather(&context, &words);
    writer->Write(words);
    writer->WritesDone();
    expect_refused(writer->Finish());
  }
  {
    ::grpc::ClientContext context;
    Words words;
    auto reader = world.stub->Repeat(&context, words);
    EXPECT_FALSE(reader->Read(&words));
    expect_refused(reader->Finish());
  }
  {
    ::grpc::ClientContext context;
    Words words;
    auto stream = world.stub->Talk(&context);
    stream->Write(words);
    EXPECT_FALSE(stream->Read(&words));
    expect_refused(stream->Finish());
  }
  world.Stop();
  ExpectAllEnded(world);
  EXPECT_EQ(Sum(world.Read(), ClassCounter::shed_paused_total), 4u);
  EXPECT_TRUE(IsIntercepted(GetParam()) || world.stage.handled() == 0);
}

TEST_P(ServerTest, AHandlersErrorIsCountedAsOne) {
  World world(GetParam(), MakePolicy());
  EXPECT_EQ(world.Say("fail").error_code(), StatusCode::INTERNAL);
  world.Stop();
  ExpectAllEnded(world);
  EXPECT_EQ(Sum(world.Read(), ClassCounter::finished_error_total), 1u);
}

TEST_P(ServerTest, AHandlerThatThrowsEndsItsCall) {
  World world(GetParam(), MakePolicy());
  EXPECT_FALSE(world.Say("throw").ok());
  world.Stop();
  ExpectAllEnded(world);
  EXPECT_EQ(Sum(world.Read(), ClassCounter::offered_total), 1u);
}

TEST_P(ServerTest, ACallWhoseCallerCancelsEnds) {
  World world(GetParam(), MakePolicy());
  ::grpc::ClientContext context;
  auto call = std::async(std::launch::async,
                         [&] { return world.Say(context, "hold"); });
  world.stage.WaitForHeld(1);
  EXPECT_EQ(world.Read().inflight, 1);
  context.TryCancel();
  EXPECT_EQ(call.get().error_code(), StatusCode::CANCELLED);
  world.Stop();
  ExpectAllEnded(world);
}

TEST_P(ServerTest, ACallWhoseDeadlinePassesEnds) {
  World world(GetParam(), MakePolicy());
  ::grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + 50ms);
  EXPECT_EQ(world.Say(context, "hold").error_code(),
            StatusCode::DEADLINE_EXCEEDED);
  WaitUntil([&] { return world.Read().inflight == 0; });
  world.Stop();
  ExpectAllEnded(world);
}

TEST_P(ServerTest, CallsOfAConnectionThatBreaksEnd) {
  World world(GetParam(), MakePolicy());
  // Cancelled here, not by the server: the stream goes with its channel.
  auto channel = world.NewChannel();
  auto stub = Echo::NewStub(channel);
  auto context = std::make_unique<::grpc::ClientContext>();
  auto stream = stub->Talk(context.get());
  Words words;
  words.set_text("hold");
  ASSERT_TRUE(stream->Write(words));
  world.stage.WaitForHeld(1);
  context->TryCancel();
  EXPECT_FALSE(stream->Finish().ok());
  stream.reset();
  context.reset();
  stub.reset();
  channel.reset();
  world.Stop();
  ExpectAllEnded(world);
}

TEST_P(ServerTest, AStreamThatIsIdleHoldsNoPlace) {
  World world(GetParam(), MakePolicy());
  ::grpc::ClientContext context;
  auto stream = world.stub->Talk(&context);
  Words words;
  words.set_text("a");
  ASSERT_TRUE(stream->Write(words));
  ASSERT_TRUE(stream->Read(&words));
  EXPECT_EQ(world.Read().inflight, 0);
  EXPECT_EQ(Sum(world.Read(), ClassCounter::admitted_total), 2u);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  world.Stop();
  ExpectAllEnded(world);
}

TEST_P(ServerTest, AMessageHoldsAPlaceWhileItIsHandled) {
  World world(GetParam(), MakePolicy());
  ::grpc::ClientContext context;
  auto stream = world.stub->Talk(&context);
  Words words;
  words.set_text("hold");
  ASSERT_TRUE(stream->Write(words));
  world.stage.WaitForHeld(1);
  EXPECT_EQ(world.Read().inflight, 1);
  world.stage.Release();
  ASSERT_TRUE(stream->Read(&words));
  EXPECT_EQ(world.Read().inflight, 0);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  world.Stop();
  ExpectAllEnded(world);
}

TEST_P(ServerTest, AMessageWaitsForRoomAndIsNotLost) {
  World world(GetParam(), MakePolicy(1));
  ::grpc::ClientContext context;
  auto stream = world.stub->Talk(&context);
  Words words;
  words.set_text("before");
  ASSERT_TRUE(stream->Write(words));
  ASSERT_TRUE(stream->Read(&words));
  auto call = world.SayLater("hold");
  world.stage.WaitForHeld(1);
  words.set_text("after");
  ASSERT_TRUE(stream->Write(words));
  WaitUntil([&] { return Sum(world.Read(), ClassCounter::waited_total) == 1; });
  EXPECT_EQ(world.stage.handled(), 2);
  world.stage.Release();
  ASSERT_TRUE(stream->Read(&words));
  EXPECT_EQ(words.text(), "after");
  EXPECT_TRUE(call.get().ok());
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  world.Stop();
  ExpectAllEnded(world);
}

TEST_P(ServerTest, AStreamWhoseMessageFindsNoRoomInTimeEnds) {
  Policy policy = MakePolicy(1);
  policy.deadline_from.clear();
  policy.resources[0].deadline = 100ms;
  World world(GetParam(), policy);
  ::grpc::ClientContext context;
  auto stream = world.stub->Talk(&context);
  Words words;
  words.set_text("before");
  ASSERT_TRUE(stream->Write(words));
  ASSERT_TRUE(stream->Read(&words));
  auto call = world.SayLater("hold");
  world.stage.WaitForHeld(1);
  ASSERT_TRUE(stream->Write(words));
  EXPECT_FALSE(stream->Read(&words));
  const Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(status.error_message(), "shed by weir: deadline");
  world.stage.Release();
  call.get();
  world.Stop();
  ExpectAllEnded(world);
}

// As a caller does that is cancelled between its first and second frame.
TEST_P(ServerTest, ACallWithoutAPayloadEnds) {
  World world(GetParam(), MakePolicy());
  ::grpc::GenericStub stub(world.channel);
  for (const char* method :
       {"/weir.grpc.testing.Echo/Say", "/weir.grpc.testing.Echo/Repeat"}) {
    ::grpc::ClientContext context;
    ::grpc::CompletionQueue queue;
    auto call = stub.PrepareCall(&context, method, &queue);
    const auto next = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      EXPECT_TRUE(queue.Next(&tag, &ok));
    };
    call->StartCall(nullptr);
    next();
    call->WritesDone(nullptr);
    next();
    Status status;
    call->Finish(&status, nullptr);
    next();
    EXPECT_FALSE(status.ok()) << method;
  }
  EXPECT_EQ(world.stage.handled(), 0);
  world.Stop();
  ExpectAllEnded(world);
}

TEST_P(ServerTest, AMalformedPayloadIsAnErrorAndEnds) {
  World world(GetParam(), MakePolicy());
  ::grpc::GenericStub stub(world.channel);
  ::grpc::ClientContext context;
  const ::grpc::Slice slice("\xff\xff\xff");
  const ::grpc::ByteBuffer request(&slice, 1);
  ::grpc::CompletionQueue queue;
  auto call = stub.PrepareUnaryCall(&context, "/weir.grpc.testing.Echo/Say",
                                    request, &queue);
  call->StartCall();
  ::grpc::ByteBuffer response;
  Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(world.stage.handled(), 0);
  world.Stop();
  ExpectAllEnded(world);
}

// What only guarded handlers can do.
class HandlerTest : public ServerTest {};

INSTANTIATE_TEST_SUITE_P(Apis, HandlerTest,
                         ::testing::Values(Api::kSync, Api::kCallback), NameOf);

TEST_P(HandlerTest, ARefusalComesBeforeThePayloadIsParsed) {
  Policy policy = MakePolicy();
  policy.resources[0].paused = true;
  World world(GetParam(), policy);
  ::grpc::GenericStub stub(world.channel);
  ::grpc::ClientContext context;
  const ::grpc::Slice slice("\xff\xff\xff");
  const ::grpc::ByteBuffer request(&slice, 1);
  ::grpc::CompletionQueue queue;
  auto call = stub.PrepareUnaryCall(&context, "/weir.grpc.testing.Echo/Say",
                                    request, &queue);
  call->StartCall();
  ::grpc::ByteBuffer response;
  Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status.error_message(), "shed by weir: paused");
}

TEST_P(HandlerTest, ARefusalSaysWhyAndWhenToComeBack) {
  Policy policy = MakePolicy();
  policy.resources[0].paused = true;
  World world(GetParam(), policy);
  ::grpc::ClientContext context;
  const Status status = world.Say(context, "hello");
  EXPECT_EQ(Trailer(context, "weir-reason"), "paused");
  const int64_t pushback =
      std::stoll(Trailer(context, "grpc-retry-pushback-ms"));
  EXPECT_GE(pushback, 1);
  testing::RpcStatus details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), StatusCode::UNAVAILABLE);
  testing::RetryInfo retry;
  ASSERT_EQ(details.details_size(), 2);
  ASSERT_TRUE(retry.ParseFromString(details.details(0).value()));
  EXPECT_EQ(retry.retry_delay().seconds() * 1000 +
                retry.retry_delay().nanos() / 1'000'000,
            pushback);
  testing::ErrorInfo error;
  ASSERT_TRUE(error.ParseFromString(details.details(1).value()));
  EXPECT_EQ(error.reason(), "PAUSED");
  EXPECT_EQ(error.metadata().at("resource"), "default");
}

TEST_P(HandlerTest, ACallThatWaitsRunsWhenThereIsRoom) {
  World world(GetParam(), MakePolicy(1));
  auto first = world.SayLater("hold");
  world.stage.WaitForHeld(1);
  std::vector<std::future<Status>> others;
  for (int i = 0; i < 4; ++i) others.push_back(world.SayLater("hello"));
  WaitUntil([&] {
    return Sum(world.Read(), ClassCounter::waited_total) == others.size();
  });
  EXPECT_EQ(world.stage.handled(), 1);
  world.stage.Release();
  EXPECT_TRUE(first.get().ok());
  for (auto& other : others) EXPECT_TRUE(other.get().ok());
  world.Stop();
  ExpectAllEnded(world);
}

TEST_P(HandlerTest, ACallThatWaitsTooLongIsRefused) {
  Policy policy = MakePolicy(1);
  policy.deadline_from.clear();
  policy.resources[0].deadline = 20ms;
  World world(GetParam(), policy);
  auto first = world.SayLater("hold");
  world.stage.WaitForHeld(1);
  ::grpc::ClientContext context;
  EXPECT_EQ(world.Say(context, "hello").error_code(),
            StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(Trailer(context, "weir-reason"), "deadline");
  EXPECT_EQ(Trailer(context, "grpc-retry-pushback-ms"), "-1");
  EXPECT_EQ(world.stage.handled(), 1);
  world.stage.Release();
  first.get();
  world.Stop();
  ExpectAllEnded(world);
}

TEST_P(HandlerTest, ACallThatLeavesWhileItWaitsHoldsNothing) {
  World world(GetParam(), MakePolicy(1));
  auto first = world.SayLater("hold");
  world.stage.WaitForHeld(1);
  ::grpc::ClientContext context;
  auto second = std::async(std::launch::async,
                           [&] { return world.Say(context, "hello"); });
  WaitUntil([&] { return Sum(world.Read(), ClassCounter::waited_total) == 1; });
  context.TryCancel();
  EXPECT_EQ(second.get().error_code(), StatusCode::CANCELLED);
  if (GetParam() == Api::kSync) {
    WaitUntil([&] {
      return Sum(world.Read(), ClassCounter::shed_cancelled_total) == 1;
    });
    EXPECT_EQ(world.stage.handled(), 1);
  }
  world.stage.Release();
  EXPECT_TRUE(first.get().ok());
  world.Stop();
  ExpectAllEnded(world);
}

// A server with one place, which is taken, and with more to do than it can.
class FullWorld : public World {
 public:
  FullWorld(Api api, const Policy& policy)
      : World(api, policy), running_(SayLater("hold")) {
    stage.WaitForHeld(1);
    while (waiting.size() < room) Queue(waiting.size() % 2 == 0 ? "1" : "2");
    auto& region = const_cast<Region&>(guard->region());
    // The law's turn is taken, as it would end an overload of so few calls.
    constexpr int32_t kNoWorker = 1'000'000;
    region.law.turn.store(kNoWorker);
    region.flags.overloaded.store(1);
    region.published.waiting_bound.store(static_cast<int64_t>(room));
  }
  ~FullWorld() {
    stage.Release();
    EXPECT_TRUE(running_.get().ok());
  }

  // `attempts` were made, as gRPC says it; null: none.
  Status Say(::grpc::ClientContext& context, const char* attempts) {
    if (attempts != nullptr) {
      context.AddMetadata("grpc-previous-rpc-attempts", attempts);
    }
    return World::Say(context, "hello");
  }
  // Adds one that waits; returns when it does.
  void Queue(const char* attempts) {
    waiting.push_back(std::async(std::launch::async, [this, attempts] {
      ::grpc::ClientContext context;
      return Say(context, attempts);
    }));
    WaitUntil([this] {
      return Sum(Read(), ClassCounter::waited_total) == waiting.size();
    });
  }

  // What may wait in an overload, and does: at first retries.
  const size_t room =
      static_cast<size_t>(guard->region().published.queue_target.load());
  std::vector<std::future<Status>> waiting;

 private:
  std::future<Status> running_;
};

TEST_P(HandlerTest, RetriesAreShedBeforeFirstAttemptsAsImportant) {
  FullWorld world(GetParam(), MakePolicy(1));
  const size_t room = world.room;
  ASSERT_GT(room, 1u);
  while (world.waiting.size() < 2 * room) world.Queue(nullptr);
  for (size_t i = 0; i < room; ++i) {
    const Status status = world.waiting[i].get();
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(status.error_message(), "shed by weir: level");
  }
  ::grpc::ClientContext context;
  EXPECT_EQ(world.Say(context, "1").error_message(), "shed by weir: level");
  EXPECT_EQ(world.stage.handled(), 1);
  world.stage.Release();
  for (size_t i = room; i < 2 * room; ++i) {
    EXPECT_TRUE(world.waiting[i].get().ok());
  }
  world.Stop();
  ExpectAllEnded(world);
}

TEST_P(HandlerTest, AShortageIsUnavailableWhereThePolicySaysSo) {
  Policy policy = MakePolicy(1);
  policy.try_elsewhere = true;
  FullWorld world(GetParam(), policy);
  while (world.waiting.size() < 2 * world.room) world.Queue(nullptr);
  ::grpc::ClientContext context;
  const Status status = world.Say(context, "1");
  EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(Trailer(context, "weir-reason"), "level");
  // It would wait before it asks another replica.
  EXPECT_EQ(Trailer(context, "grpc-retry-pushback-ms"), "none");
  testing::RpcStatus details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), StatusCode::UNAVAILABLE);
}

// A server of the sync API holds a thread for each call that waits.
TEST(SyncTest, WhatWouldTakeTooManyThreadsIsRefusedAsExhausted) {
  World world(Api::kSync, MakePolicy(1));
  auto first = world.SayLater("hold");
  world.stage.WaitForHeld(1);
  constexpr int kCalls = 400;
  struct Call {
    ::grpc::ClientContext context;
    Words request, response;
  };
  std::vector<Call> calls(kCalls);
  std::atomic<int> done{0};
  std::atomic<int> exhausted{0};
  for (Call& call : calls) {
    world.stub->async()->Say(
        &call.context, &call.request, &call.response,
        [&](const Status& status) {
          if (status.error_code() == StatusCode::RESOURCE_EXHAUSTED) {
            ++exhausted;
          }
          ++done;
        });
  }
  WaitUntil([&] { return exhausted > 0; });
  world.stage.Release();
  WaitUntil([&] { return done == kCalls; });
  EXPECT_TRUE(first.get().ok());
  world.Stop();
  ExpectAllEnded(world);
  EXPECT_EQ(Sum(world.Read(), ClassCounter::shed_limit_total),
            static_cast<uint64_t>(exhausted));
}

TEST_P(ServerTest, WithInterceptorsNothingWaits) {
  if (!IsIntercepted(GetParam())) return;
  for (const bool elsewhere : {false, true}) {
    Policy policy = MakePolicy(1);
    policy.try_elsewhere = elsewhere;
    World world(GetParam(), policy);
    auto first = world.SayLater("hold");
    world.stage.WaitForHeld(1);
    const Status status = world.Say("hello");
    EXPECT_EQ(status.error_code(), elsewhere ? StatusCode::UNAVAILABLE
                                             : StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(status.error_message(), "shed by weir: limit");
    world.stage.Release();
    EXPECT_TRUE(first.get().ok());
    world.Stop();
    ExpectAllEnded(world);
  }
}

// A caller whose time is over by the time that its call is here.
TEST_P(HandlerTest, ACallThatComesTooLateIsRefusedOnArrival) {
  Policy policy = MakePolicy();
  policy.deadline_from = {{Source::Kind::kHeader, "x-budget"}};
  World world(GetParam(), policy);
  ::grpc::ClientContext context;
  context.AddMetadata("x-budget", "0s");
  const Status status = world.Say(context, "hello");
  EXPECT_EQ(status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(Trailer(context, "grpc-retry-pushback-ms"), "-1");
  EXPECT_EQ(world.stage.handled(), 0);
}

TEST_P(HandlerTest, MetadataAreReadFromThoseWhoAreTrusted) {
  for (const bool trusted : {false, true}) {
    Policy policy = MakePolicy();
    policy.criticality_from = {{Source::Kind::kHeader, "weir-criticality"}};
    if (!trusted) policy.trusted.clear();
    World world(GetParam(), policy);
    ::grpc::ClientContext context;
    context.AddMetadata("weir-criticality", "vital");
    EXPECT_TRUE(world.Say(context, "hello").ok());
    const auto offered = world.Read()[ClassCounter::offered_total];
    EXPECT_EQ(offered[Index(Criticality::kVital)], trusted ? 1u : 0u);
    EXPECT_EQ(offered[Index(Criticality::kImportant)], trusted ? 0u : 1u);
  }
}

TEST_P(HandlerTest, GuardedTwiceItIsCountedOnce) {
  World world(GetParam(), MakePolicy());
  testing::SyncEcho service(world.stage);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(GuardHandlers(world.guard, service), std::nullopt);
  }
  GuardedServerBuilder builder(world.guard);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", ::grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&service);
  auto server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  auto stub = Echo::NewStub(
      ::grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                            ::grpc::InsecureChannelCredentials()));
  ::grpc::ClientContext context;
  Words words;
  EXPECT_TRUE(stub->Say(&context, words, &words).ok());
  server->Shutdown();
  EXPECT_EQ(Sum(world.Read(), ClassCounter::offered_total), 1u);
}

TEST(BuilderTest, HealthChecksAreNotGuarded) {
  Policy policy = MakePolicy();
  policy.resources[0].paused = true;
  const auto guard = *ServiceGuard::Make(policy, {.shared = false});
  ::grpc::EnableDefaultHealthCheckService(true);
  testing::Stage stage;
  testing::SyncEcho service(stage);
  GuardedServerBuilder builder(guard);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", ::grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&service);
  auto server = builder.BuildAndStart();
  ::grpc::EnableDefaultHealthCheckService(false);
  ASSERT_NE(server, nullptr);
  ::grpc::GenericStub stub(
      ::grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                            ::grpc::InsecureChannelCredentials()));
  ::grpc::ClientContext context;
  ::grpc::CompletionQueue queue;
  const ::grpc::Slice nothing("");
  auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check",
                                    ::grpc::ByteBuffer(&nothing, 1), &queue);
  call->StartCall();
  ::grpc::ByteBuffer response;
  Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_TRUE(status.ok()) << status.error_message();
  ::grpc::Slice slice;
  ASSERT_TRUE(response.DumpToSingleSlice(&slice).ok());
  // HealthCheckResponse{status: SERVING}
  EXPECT_EQ(
      std::string(reinterpret_cast<const char*>(slice.begin()), slice.size()),
      "\x08\x01");
  server->Shutdown();
}

TEST(BuilderTest, HealthAndReflectionAreExempt) {
  EXPECT_TRUE(IsExempt("/grpc.health.v1.Health/Check"));
  EXPECT_TRUE(IsExempt("/grpc.health.v1.Health/Watch"));
  EXPECT_TRUE(IsExempt(
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"));
  EXPECT_FALSE(IsExempt("/weir.grpc.testing.Echo/Say"));
}

TEST(BuilderTest, AMethodWithoutAResourceKeepsTheServerFromStarting) {
  Policy policy = MakePolicy();
  policy.resources = {{.name = "Echo/Say"}, {.name = "Echo/Talk"}};
  const auto guard = *ServiceGuard::Make(policy, {.shared = false});
  testing::Stage stage;
  testing::SyncEcho service(stage);
  GuardedServerBuilder builder(guard);
  builder.AddListeningPort("127.0.0.1:0", ::grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  EXPECT_EQ(builder.BuildAndStart(), nullptr);
  EXPECT_EQ(builder.error(),
            "the policy of `grpc-test` has no resource for "
            "/weir.grpc.testing.Echo/Gather (a resource `default` takes all "
            "that have none)");
}

// A server of the completion queue API with one thread, whose calls live as
// long as their CallData.
class QueueServer {
 public:
  QueueServer(std::shared_ptr<ServiceGuard> guard, bool may_wait)
      : guard_(std::move(guard)), may_wait_(may_wait) {
    GuardedServerBuilder builder(guard_);
    builder.AddListeningPort("127.0.0.1:0", ::grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(&service_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
    method_ = *guard_->Register("/weir.grpc.testing.Echo/Say");
    new CallData(*this);
    thread_ = std::thread([this] {
      void* tag = nullptr;
      for (bool ok = false; queue_->Next(&tag, &ok);) {
        static_cast<CallData*>(tag)->Next(ok);
      }
    });
  }
  ~QueueServer() {
    server_->Shutdown();
    queue_->Shutdown();
    thread_.join();
  }

  int port = 0;
  std::atomic<bool> hold{false};

 private:
  class CallData {
   public:
    explicit CallData(QueueServer& server) : server_(server) {
      server.service_.RequestSay(&context_, &request_, &responder_,
                                 server.queue_.get(), server.queue_.get(),
                                 this);
    }
    void Next(bool ok) {
      switch (state_) {
        case State::kArrives:
          return ok ? Arrived() : Delete();
        case State::kWaits:
          return Decided(permit_.Entered(context_));
        case State::kRuns:
          return Run();
        case State::kEnds:
          return Delete();
      }
    }

   private:
    enum class State { kArrives, kWaits, kRuns, kEnds };

    void Arrived() {
      new CallData(server_);
      if (!server_.may_wait_) {
        return Decided(
            permit_.Enter(*server_.guard_, server_.method_, context_));
      }
      state_ = State::kWaits;
      if (permit_.Enter(*server_.guard_, server_.method_, context_,
                        *server_.queue_, this)) {
        Decided(permit_.Entered(context_));
      }
    }
    void Decided(const std::optional<Status>& refusal) {
      if (refusal) {
        state_ = State::kEnds;
        return responder_.FinishWithError(*refusal, this);
      }
      state_ = State::kRuns;
      Run();
    }
    void Run() {
      if (server_.hold) {  // Comes round again.
        alarm_.Set(server_.queue_.get(), gpr_inf_past(GPR_CLOCK_MONOTONIC),
                   this);
        return;
      }
      state_ = State::kEnds;
      const Status status = testing::Answer(request_, &response_);
      permit_.End(status);
      if (status.ok()) return responder_.Finish(response_, status, this);
      responder_.FinishWithError(status, this);
    }
    void Delete() { delete this; }

    QueueServer& server_;
    State state_ = State::kArrives;
    ::grpc::ServerContext context_;
    Words request_, response_;
    ::grpc::ServerAsyncResponseWriter<Words> responder_{&context_};
    ::grpc::Alarm alarm_;
    CallPermit permit_;
  };

  std::shared_ptr<ServiceGuard> guard_;
  const bool may_wait_;
  ServiceGuard::Method method_ = 0;
  Echo::AsyncService service_;
  std::unique_ptr<::grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<::grpc::Server> server_;
  std::thread thread_;
};

TEST(QueueTest, OneLineGuardsACallOfACompletionQueue) {
  for (const bool may_wait : {false, true}) {
    const auto guard = *ServiceGuard::Make(MakePolicy(1), {.shared = false});
    {
      QueueServer server(guard, may_wait);
      const auto stub = Echo::NewStub(
          ::grpc::CreateChannel("127.0.0.1:" + std::to_string(server.port),
                                ::grpc::InsecureChannelCredentials()));
      const auto say = [&](const std::string& text) {
        ::grpc::ClientContext context;
        Words words;
        words.set_text(text);
        return stub->Say(&context, words, &words);
      };
      EXPECT_TRUE(say("hello").ok());
      EXPECT_EQ(say("fail").error_code(), StatusCode::INTERNAL);

      server.hold = true;
      auto first = std::async(std::launch::async, [&] { return say("hello"); });
      WaitUntil([&] { return weir::Read(guard->region()).inflight == 1; });
      auto second =
          std::async(std::launch::async, [&] { return say("hello"); });
      if (may_wait) {
        WaitUntil([&] {
          return Sum(weir::Read(guard->region()), ClassCounter::waited_total) ==
                 1;
        });
        server.hold = false;
        EXPECT_TRUE(second.get().ok());
      } else {
        EXPECT_EQ(second.get().error_code(), StatusCode::RESOURCE_EXHAUSTED);
        server.hold = false;
      }
      EXPECT_TRUE(first.get().ok());
    }
    const Snapshot snapshot = weir::Read(guard->region());
    EXPECT_EQ(snapshot.inflight, 0);
    EXPECT_EQ(Sum(snapshot, ClassCounter::admitted_total), Finished(snapshot));
  }
}

class NoFactory final
    : public ::grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  ::grpc::experimental::Interceptor* CreateServerInterceptor(
      ::grpc::experimental::ServerRpcInfo*) override {
    return nullptr;
  }
};

TEST(BuilderTest, InterceptorsThatItWasNotToldOfKeepTheServerFromStarting) {
  const auto guard = *ServiceGuard::Make(MakePolicy(), {.shared = false});
  const auto creators = [] {
    std::vector<std::unique_ptr<
        ::grpc::experimental::ServerInterceptorFactoryInterface>>
        list;
    list.push_back(std::make_unique<NoFactory>());
    return list;
  };
  testing::Stage stage;
  testing::SyncEcho service(stage);
  {
    GuardedServerBuilder builder(guard);
    builder.RegisterService(&service);
    builder.experimental().SetInterceptorCreators(creators());
    EXPECT_EQ(builder.BuildAndStart(), nullptr);
    EXPECT_NE(builder.error().find("SetInterceptorCreators()"),
              std::string::npos);
  }
  GuardedServerBuilder builder(guard);
  builder.AddListeningPort("127.0.0.1:0", ::grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  builder.SetInterceptorCreators(creators());
  EXPECT_NE(builder.BuildAndStart(), nullptr);
}

}  // namespace
}  // namespace weir::grpc
