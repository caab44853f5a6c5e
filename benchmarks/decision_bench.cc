// What a decision costs: admit + finish, and refuse, in-process.
//
// "With clock" reads the monotonic clock once for each pair, as an adapter
// does; the difference to the rows without is that reading.  With two threads
// each has its own guard at one region, and the time is that of a pair in one
// of them while the other does the same.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "weir/guard.h"
#include "weir/host/clock.h"

namespace {

using weir::host::MonotonicClock;

constexpr int kRepetitions = 9;

// What a stage adds is the difference to admit_finish_1_thread_ns.
using Configure = void (*)(weir::Policy&);

void AddQuota(weir::Policy& policy, weir::Quota::Kind kind) {
  policy.resources[0].quota =
      weir::QuotaPolicy{.rule = {.calls = 1'000'000,
                                 .kind = kind,
                                 .window = std::chrono::milliseconds(10)}};
}
void AddFixedQuota(weir::Policy& policy) {
  AddQuota(policy, weir::Quota::Kind::kFixed);
}
void AddSlidingQuota(weir::Policy& policy) {
  AddQuota(policy, weir::Quota::Kind::kSliding);
}
void AddTiers(weir::Policy& policy) {
  policy.tiers =
      weir::TierTable::Config{.max = weir::TierTable::kMostMax,
                              .tiers = {{70, 20}, {80, 50}, {100, 100}}};
}
void AddSmoothTiers(weir::Policy& policy) {
  AddTiers(policy);
  policy.tiers->smooth = true;
}
void AddSystem(weir::Policy& policy) {
  policy.system = {.qps = 1e9,
                   .threads = 1e6,
                   .latency_ms = 1e6,
                   .load = 1e6,
                   .cpu_ratio = 1};
}
void AddRobustSystem(weir::Policy& policy) {
  AddSystem(policy);
  policy.system.robust = true;
}

std::shared_ptr<weir::Policy> MakePolicy(int ceiling) {
  auto policy = std::make_shared<weir::Policy>();
  policy->service = "bench";
  policy->limit_ceiling = ceiling;
  policy->resources.push_back({.name = "api"});
  return policy;
}

struct World {
  explicit World(int ceiling, Configure configure = nullptr)
      : policy(MakePolicy(ceiling)), region(*policy, MonotonicClock::Now()) {
    if (configure != nullptr) configure(*policy);
  }
  std::unique_ptr<weir::Guard> MakeGuard(int thread) {
    const int shard = *region->ClaimShard({.pid = 1 + thread, .start = 1});
    return std::move(
        *weir::Guard::Make(policy, *region, shard, MonotonicClock::Now()));
  }
  std::shared_ptr<weir::Policy> policy;
  weir::HeapRegion region;
};

std::unique_ptr<World> shared_world;

template <bool kWithClock>
void AdmitFinish(benchmark::State& state) {
  if (state.thread_index() == 0) {
    shared_world = std::make_unique<World>(1'000'000);
  }
  std::unique_ptr<weir::Guard> guard;
  weir::Instant now = MonotonicClock::Now();
  for (auto _ : state) {
    // The world is there once the loop has begun, in all threads.
    if (guard == nullptr) [[unlikely]] {
      guard = shared_world->MakeGuard(state.thread_index());
    }
    now = kWithClock ? MonotonicClock::Now() : now + weir::Duration(1000);
    weir::Admission admission = guard->Admit(
        {.arrived = now, .deadline = now + std::chrono::seconds(1)}, now);
    guard->Finish(std::move(admission.permit), weir::Outcome::kOk, now);
  }
  guard.reset();
}

template <Configure kConfigure>
void WithStage(benchmark::State& state) {
  World world(1'000'000, kConfigure);
  const auto guard = world.MakeGuard(0);
  weir::Instant now = MonotonicClock::Now();
  for (auto _ : state) {
    now += weir::Duration(1000);
    weir::Admission admission = guard->Admit(
        {.arrived = now, .deadline = now + std::chrono::seconds(1)}, now);
    guard->Finish(std::move(admission.permit), weir::Outcome::kOk, now);
  }
}

void Refuse(benchmark::State& state) {
  World world(1);
  const auto guard = world.MakeGuard(0);
  weir::Instant now = MonotonicClock::Now();
  weir::Permit running = guard->Admit({.arrived = now}, now).permit;
  for (auto _ : state) {
    now += weir::Duration(1000);
    weir::Admission refused = guard->Admit(
        {.arrived = now, .deadline = now + std::chrono::seconds(1)}, now);
    benchmark::DoNotOptimize(refused);
  }
  guard->Finish(std::move(running), weir::Outcome::kOk, now);
}

void Clock(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(MonotonicClock::Now());
}

// Prints what Google Benchmark prints, and keeps each repetition's time.
class Keeper : public benchmark::ConsoleReporter {
 public:
  Keeper() : ConsoleReporter(OO_None) {}
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.run_type == Run::RT_Iteration) {
        times[run.run_name.function_name].push_back(run.GetAdjustedRealTime() *
                                                    run.threads);
      }
    }
  }
  std::map<std::string, std::vector<double>> times;
};

}  // namespace

int main(int argc, char** argv) {
  const auto add = [](const char* name, auto* function, int threads) {
    benchmark::RegisterBenchmark(name, function)
        ->Threads(threads)
        ->Repetitions(kRepetitions)
        ->UseRealTime();
  };
  add("clock_1_thread_ns", Clock, 1);
  add("admit_finish_1_thread_ns", AdmitFinish<false>, 1);
  add("admit_finish_2_threads_ns", AdmitFinish<false>, 2);
  add("admit_finish_with_clock_1_thread_ns", AdmitFinish<true>, 1);
  add("admit_finish_with_clock_2_threads_ns", AdmitFinish<true>, 2);
  add("refuse_1_thread_ns", Refuse, 1);
  add("admit_finish_fixed_quota_ns", WithStage<AddFixedQuota>, 1);
  add("admit_finish_sliding_quota_ns", WithStage<AddSlidingQuota>, 1);
  add("admit_finish_tiers_ns", WithStage<AddTiers>, 1);
  add("admit_finish_smooth_tiers_ns", WithStage<AddSmoothTiers>, 1);
  add("admit_finish_system_ns", WithStage<AddSystem>, 1);
  add("admit_finish_robust_system_ns", WithStage<AddRobustSystem>, 1);
  benchmark::Initialize(&argc, argv);
  Keeper keeper;
  benchmark::RunSpecifiedBenchmarks(&keeper);

  nlohmann::ordered_json out = {{"name", "decision"}, {"machine", ""}};
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  out["machine"] = host;
  for (auto& [name, times] : keeper.times) {
    std::sort(times.begin(), times.end());
    out["results"].push_back({{"metric", name},
                              {"value", times[times.size() / 2]},
                              {"unit", "ns"},
                              {"runs", times.size()},
                              {"min", times.front()},
                              {"max", times.back()}});
  }
  std::printf("%s\n", out.dump().c_str());
}
