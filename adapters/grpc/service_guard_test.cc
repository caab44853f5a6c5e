#include "weir/grpc/service_guard.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "weir/host/clock.h"
#include "weir/snapshot.h"

namespace weir::grpc {
namespace {

using namespace std::chrono_literals;

Instant Now() { return host::MonotonicClock::Now(); }

Policy MakePolicy(std::vector<std::string> resources, int32_t limit = 0) {
  Policy policy;
  policy.service = "service-guard-test";
  policy.deadline = 20s;
  if (limit > 0) policy.limit_floor = policy.limit_ceiling = limit;
  for (std::string& name : resources) {
    policy.resources.push_back({.name = std::move(name)});
  }
  return policy;
}

std::shared_ptr<ServiceGuard> MakeGuard(const Policy& policy, int shards = 1) {
  auto guard = ServiceGuard::Make(policy, {.shared = false, .shards = shards});
  EXPECT_TRUE(guard) << guard.error().message;
  return *guard;
}

class EmptyView final : public CallView {
 public:
  std::optional<std::string_view> Header(std::string_view, int) override {
    return std::nullopt;
  }
  std::optional<std::string_view> Variable(std::string_view) override {
    return std::nullopt;
  }
  std::optional<http::Address> Peer() override { return std::nullopt; }
  Instant Deadline() override { return deadline; }

  Instant deadline = kNever;
};

// Waits for its decision in its thread.
class TestCall final : public ServiceGuard::Call {
 public:
  bool Ask(ServiceGuard& guard, ServiceGuard::Method method) {
    EmptyView view;
    return guard.Ask(*this, method, view, Now()) == Verdict::kQueue;
  }
  void Wait() {
    std::unique_lock lock(mutex_);
    decided_.wait(lock, [this] { return times_ > 0; });
  }
  int times() {
    const std::lock_guard lock(mutex_);
    return times_;
  }

 private:
  void Decided() override {
    const std::lock_guard lock(mutex_);
    ++times_;
    decided_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable decided_;
  int times_ = 0;
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

TEST(ServiceGuardTest, AMethodBelongsToTheMostSpecialResourceThatNamesIt) {
  Policy policy = MakePolicy(
      {"default", "Shop", "shop.v1.Shop", "Shop/Buy", "shop.v1.Shop/Pay"});
  for (size_t i = 0; i < policy.resources.size(); ++i) {
    policy.resources[i].paused = true;  // So that calls end at once.
  }
  const auto guard = MakeGuard(policy);
  const auto resource = [&](std::string_view method) {
    const auto handle = guard->Register(method);
    EXPECT_TRUE(handle) << handle.error().message;
    TestCall call;
    EXPECT_FALSE(call.Ask(*guard, *handle));
    return guard->ResourceName(call);
  };
  EXPECT_EQ(resource("/shop.v1.Shop/Pay"), "shop.v1.Shop/Pay");
  EXPECT_EQ(resource("/shop.v2.Shop/Buy"), "Shop/Buy");
  EXPECT_EQ(resource("/shop.v1.Shop/See"), "shop.v1.Shop");
  EXPECT_EQ(resource("/shop.v2.Shop/See"), "Shop");
  EXPECT_EQ(resource("/Shop/See"), "Shop");
  EXPECT_EQ(resource("/shop.v1.Stock/See"), "default");
}

TEST(ServiceGuardTest, TheOnlyResourceTakesAllMethods) {
  EXPECT_TRUE(MakeGuard(MakePolicy({"api"}))->Register("/a.B/C"));
}

TEST(ServiceGuardTest, SaysWhichMethodHasNoResource) {
  const auto guard = MakeGuard(MakePolicy({"Shop", "Stock"}));
  EXPECT_EQ(guard->Register("/x.Shoq/Buy").error().message,
            "the policy of `service-guard-test` has no resource for "
            "/x.Shoq/Buy; did you mean it by `Shop`? (a resource `default` "
            "takes all that have none)");
}

TEST(ServiceGuardTest, TheEarlierDeadlineCounts) {
  const auto guard = MakeGuard(MakePolicy({"api"}));
  const auto method = *guard->Register("/a.B/C");
  const Instant now = Now();
  EmptyView view;
  TestCall call;
  view.deadline = now + 3s;
  ASSERT_EQ(guard->Ask(call, method, view, now), Verdict::kAdmit);
  EXPECT_EQ(call.request().deadline, now + 3s);
  guard->Finish(call, Outcome::kOk, now);
  view.deadline = now + 1h;
  ASSERT_EQ(guard->Ask(call, method, view, now), Verdict::kAdmit);
  EXPECT_EQ(call.request().deadline, now + 20s);
}

TEST(ServiceGuardTest, ACallThatEndsTellsTheOneThatWaits) {
  const auto guard = MakeGuard(MakePolicy({"api"}, 1));
  const auto method = *guard->Register("/a.B/C");
  TestCall first;
  TestCall second;
  ASSERT_FALSE(first.Ask(*guard, method));
  ASSERT_TRUE(second.Ask(*guard, method));
  EXPECT_EQ(second.times(), 0);
  guard->Finish(first, Outcome::kOk, Now());
  second.Wait();
  EXPECT_TRUE(second.admitted());
  EXPECT_EQ(second.decision().reason, Reason::kWaited);
  EXPECT_EQ(second.times(), 1);
}

// Without its own housekeeping nothing would happen here.
TEST(ServiceGuardTest, WhatWaitsIsShedAtItsDeadline) {
  Policy policy = MakePolicy({"api"}, 1);
  policy.deadline = 2ms;
  const auto guard = MakeGuard(policy);
  const auto method = *guard->Register("/a.B/C");
  TestCall first;
  TestCall second;
  ASSERT_FALSE(first.Ask(*guard, method));
  ASSERT_TRUE(second.Ask(*guard, method));
  second.Wait();
  EXPECT_FALSE(second.admitted());
  EXPECT_EQ(second.decision().reason, Reason::kDeadline);
  EXPECT_EQ(guard->AnswerTo(second, Now()).grpc_status,
            http::kDeadlineExceeded);
}

TEST(ServiceGuardTest, ACancelledCallIsNotTold) {
  const auto guard = MakeGuard(MakePolicy({"api"}, 1));
  const auto method = *guard->Register("/a.B/C");
  TestCall first;
  TestCall second;
  ASSERT_FALSE(first.Ask(*guard, method));
  ASSERT_TRUE(second.Ask(*guard, method));
  EXPECT_TRUE(guard->Cancel(second, Now()));
  EXPECT_FALSE(guard->Cancel(second, Now()));
  guard->Finish(first, Outcome::kOk, Now());
  EXPECT_EQ(second.times(), 0);
  const Snapshot snapshot = Read(guard->region());
  EXPECT_EQ(Sum(snapshot, ClassCounter::shed_cancelled_total), 1u);
  EXPECT_EQ(snapshot.inflight, 0);
}

TEST(ServiceGuardTest, ACallThatIsForgottenGivesItsPlaceBack) {
  const auto guard = MakeGuard(MakePolicy({"api"}, 1));
  const auto method = *guard->Register("/a.B/C");
  {
    TestCall call;
    ASSERT_FALSE(call.Ask(*guard, method));
  }
  const Snapshot snapshot = Read(guard->region());
  EXPECT_EQ(snapshot.inflight, 0);
  EXPECT_EQ(Sum(snapshot, ClassCounter::finished_ignored_total), 1u);
}

TEST(ServiceGuardTest, StoppedItShedsWhatWaitsAndWhatWould) {
  const auto guard = MakeGuard(MakePolicy({"api"}, 1));
  const auto method = *guard->Register("/a.B/C");
  TestCall first;
  TestCall second;
  TestCall third;
  ASSERT_FALSE(first.Ask(*guard, method));
  ASSERT_TRUE(second.Ask(*guard, method));
  guard->Stop();
  second.Wait();
  EXPECT_EQ(second.decision().reason, Reason::kShutdown);
  EXPECT_FALSE(third.Ask(*guard, method));
  EXPECT_EQ(third.decision().reason, Reason::kShutdown);
  EXPECT_EQ(guard->AnswerTo(third, Now()).grpc_status, http::kUnavailable);
}

// Nothing else wakes the thread that gives them back: the file is looked at
// once an hour, and no call comes.
TEST(ServiceGuardTest, APlaceThatIsSpareAfterAnEndIsGivenBackByItself) {
  auto made =
      ServiceGuard::Make(MakePolicy({"api"}, 3),
                         {.shared = false, .shards = 2, .file_interval = 1h});
  ASSERT_TRUE(made) << made.error().message;
  const auto guard = *made;
  const auto method = *guard->Register("/a.B/C");
  // Often, so that the thread sleeps for sure when one of them ends.
  for (int i = 0; i < 50; ++i) {
    TestCall call;
    ASSERT_FALSE(call.Ask(*guard, method));
    guard->Finish(call, Outcome::kOk, Now());
    const Instant patience = Now() + 20s;
    while (guard->region().places.sum() != 0 && Now() < patience)
      std::this_thread::yield();
    ASSERT_EQ(guard->region().places.sum(), 0) << "call " << i;
  }
}

// Goal: with many threads each call is decided once and ended once, no more run
// at a time than may, and nothing stays.
// Method: calls wait, are cancelled while they wait, end or are forgotten, by
// a seeded draw.  The limit is 3 places, one for each of three shards at most.
TEST(ServiceGuardTest, ThreadsLoseNothing) {
  constexpr int kThreads = 6;
  constexpr int kCalls = 400;
  for (const int shards : {1, 3}) {
    const auto guard = MakeGuard(MakePolicy({"api"}, 3), shards);
    const auto method = *guard->Register("/a.B/C");
    std::atomic<int> running{0};
    std::atomic<int> most{0};
    std::atomic<uint64_t> cancelled{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(static_cast<unsigned>(t));
        for (int i = 0; i < kCalls; ++i) {
          TestCall call;
          if (call.Ask(*guard, method)) {
            if (random() % 4 == 0 && guard->Cancel(call, Now())) {
              ++cancelled;
              continue;
            }
            call.Wait();
            ASSERT_EQ(call.times(), 1);
          }
          if (!call.admitted()) continue;
          const int now_running = ++running;
          int seen = most.load();
          while (seen < now_running &&
                 !most.compare_exchange_weak(seen, now_running)) {
          }
          std::this_thread::yield();
          --running;
          if (random() % 8 != 0) guard->Finish(call, Outcome::kOk, Now());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const Snapshot snapshot = Read(guard->region());
    EXPECT_LE(most.load(), 3) << shards;
    EXPECT_EQ(snapshot.inflight, 0) << shards;
    for (const int64_t waiting : snapshot.waiting) EXPECT_EQ(waiting, 0);
    EXPECT_EQ(Sum(snapshot, ClassCounter::offered_total),
              uint64_t{kThreads * kCalls});
    EXPECT_EQ(Sum(snapshot, ClassCounter::admitted_total), Finished(snapshot));
    EXPECT_EQ(Sum(snapshot, ClassCounter::shed_cancelled_total), cancelled);
  }
}

class PolicyFolder {
 public:
  PolicyFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "weir.XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~PolicyFolder() { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/policy.toml"; }
  void Write(const std::string& text) const {
    std::ofstream(folder_ + "/next") << text;
    std::filesystem::rename(folder_ + "/next", path());
  }

 private:
  std::string folder_;
};

TEST(ServiceGuardTest, FollowsItsPolicyFile) {
  const PolicyFolder folder;
  folder.Write("service = \"followed\"\n[resource.Shop]\n[resource.default]\n");
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> lines;
  auto made =
      ServiceGuard::Load(folder.path(), {.shared = false,
                                         .shards = 2,
                                         .file_interval = 20ms,
                                         .log = [&](const std::string& line) {
                                           const std::lock_guard lock(mutex);
                                           lines.push_back(line);
                                           changed.notify_one();
                                         }});
  ASSERT_TRUE(made) << made.error().message;
  const auto guard = *made;
  const auto method = *guard->Register("/x.Shop/Buy");
  const auto next_line = [&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !lines.empty(); });
    const std::string line = lines.front();
    lines.clear();
    return line;
  };

  folder.Write(
      "service = \"followed\"\n[resource.default]\n[resource.Shop]\n"
      "paused = true\n");
  EXPECT_EQ(next_line(),
            "policy \"" + folder.path() + "\" changed and is in force");
  {
    TestCall call;
    EXPECT_FALSE(call.Ask(*guard, method));
    EXPECT_EQ(call.decision().reason, Reason::kPaused);
  }

  folder.Write("service = \"followed\"\n[resource.a]\n[resource.b]\n");
  EXPECT_EQ(next_line(),
            "policy \"" + folder.path() +
                "\" changed and is refused: the policy of `followed` has no "
                "resource for /x.Shop/Buy (a resource `default` takes all that "
                "have none); the running policy is unchanged");
  {
    TestCall call;
    EXPECT_FALSE(call.Ask(*guard, method));
    EXPECT_EQ(call.decision().reason, Reason::kPaused);
  }

  folder.Write("service = \"followed\"\nlimits = 3\n[resource.a]\n");
  EXPECT_NE(next_line().find("limits"), std::string::npos);
}

TEST(ServiceGuardTest, OptionsOutOfRangeAreRefusedByName) {
  constexpr int kTooMany = static_cast<int>(Region::kShards) + 1;
  const auto refusal = [](const ServiceGuard::Options& options) {
    const auto error = options.Check();
    return error ? error->message : std::string();
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({.shards = 64, .file_interval = 1h}), "");
  EXPECT_NE(refusal({.shards = -1}).find("`shards`"), std::string::npos);
  EXPECT_NE(refusal({.shards = kTooMany}).find("`shards`"), std::string::npos);
  for (const Duration interval :
       {Duration(0), Duration(19ms), Duration(61min)}) {
    EXPECT_NE(refusal({.file_interval = interval}).find("`file_interval`"),
              std::string::npos);
  }
  Policy policy;
  policy.service = "options";
  policy.resources.push_back({.name = "default"});
  EXPECT_FALSE(
      ServiceGuard::Make(policy, {.shared = false, .shards = kTooMany}).ok());
}

TEST(ServiceGuardTest, SaysWhyItCannotBeMade) {
  EXPECT_NE(ServiceGuard::Load("/nowhere/policy.toml", {})
                .error()
                .message.find("/nowhere/policy.toml"),
            std::string::npos);
  EXPECT_FALSE(ServiceGuard::Make(Policy{}, {.shared = false}));
}

}  // namespace
}  // namespace weir::grpc
