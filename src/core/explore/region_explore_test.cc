// Goal: whatever the order in which workers touch the region, and wherever one
// of them dies,
//   - the sum of the places held never passes the limit,
//   - no waiting request is forgotten while there is a free place, by workers
//     that call Tick() when NextWake() says and not before,
//   - all comes back: nothing is held, waits or has the turn in the end.
// Method: real guards over a real region, whose words are points at which the
// explorer may go on with another worker, keep a store back as x86 does, or end
// a process.  Small programs are run under all plans of two switches, larger
// random ones under random plans of up to four, with and without deaths.
//
// A fault prints program and plan.  WEIR_EXPLORE_TIMES=60 runs an hour of it.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "explore/explorer.h"
#include "weir/guard.h"

namespace weir::explore {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart{seconds(1000)};
constexpr int64_t kSlots = 4;
constexpr size_t kCalls = 8;  // Of a worker, at most.

enum class Call : uint8_t { kAdmit, kAsk, kFinish, kCancel, kTick, kReclaim };
using Script = std::vector<Call>;
using Program = std::vector<Script>;

std::string Print(const Program& program) {
  std::string text = "program";
  for (const Script& script : program) {
    text += ' ';
    for (const Call call : script) text += "AaFCTR"[static_cast<size_t>(call)];
  }
  return text;
}

// One region for all runs, made anew for each: only what few workers touch.
class Memory {
 public:
  Memory() : region_(SomePolicy(), kStart) {}
  static const Policy& SomePolicy() {
    static const Policy policy = [] {
      Policy p;
      p.service = "test";
      p.limit_floor = p.limit_ceiling = static_cast<int32_t>(kSlots);
      p.resources.push_back({.name = "api"});
      return p;
    }();
    return policy;
  }
  Region& Anew(size_t workers) {
    Region* const region = region_.get();
    Clear(region, offsetof(Region, client_quotas));
    Clear(&region->usage, sizeof region->usage);
    Clear(region->shards.data(), workers * sizeof(Region::Shard));
    return *Region::Create(region, "test", SomePolicy(), kStart);
  }

 private:
  static void Clear(void* memory, size_t size) { std::memset(memory, 0, size); }
  HeapRegion region_;
};

ProcessId Id(size_t worker) {
  return {.pid = static_cast<int32_t>(worker) + 1, .start = 1};
}

struct Worker {
  Guard* guard = nullptr;
  std::vector<Waiter> waiters = std::vector<Waiter>(kCalls);
  std::vector<Permit> running;
  size_t used = 0;
  Instant wake = kNever;
  bool dead = false;
};

class World {
 public:
  World(Region& region, const Program& program)
      : region_(region), program_(program), workers_(program.size()) {}

  // The workers' lives under the plan, and what is left in the end.
  std::optional<std::string> Live(const Plan& plan, int64_t* accesses) {
    static const auto policy =
        std::make_shared<const Policy>(Memory::SomePolicy());
    for (size_t i = 0; i < workers_.size(); ++i) {
      const int shard = *region_.ClaimShard(Id(i));
      workers_[i].guard = std::move(Guard::Make(policy, region_, shard, now_))
                              .value()
                              .release();
    }
    std::vector<std::function<void()>> threads;
    for (size_t i = 0; i < workers_.size(); ++i) {
      threads.emplace_back([this, i] { Work(i); });
    }
    const Run run = Explore(threads, plan, [this] { return Look(); });
    *accesses = run.accesses;
    for (size_t i = 0; i < workers_.size(); ++i) {
      workers_[i].dead = run.killed[i];
    }
    std::optional<std::string> fault = run.fault;
    if (!fault) fault = Rest();
    for (Worker& worker : workers_) Discard(worker);
    return fault;
  }

 private:
  // At each access.  The ledger's word is the first of it.
  std::optional<std::string> Look() const {
    uint64_t word = 0;
    std::memcpy(&word, static_cast<const void*>(&region_.places), sizeof word);
    const auto sum = static_cast<int64_t>(word >> 38);
    if (sum <= kSlots) return std::nullopt;
    return "places held: " + std::to_string(sum);
  }

  void Work(size_t i) {
    for (const Call call : program_[i]) {
      now_ += microseconds(100);
      Do(i, call);
    }
  }

  void Do(size_t i, Call call) {
    Worker& w = workers_[i];
    const Request request{
        .client = i + 1, .arrived = now_, .deadline = now_ + seconds(100)};
    switch (call) {
      case Call::kAdmit:
        Keep(w, w.guard->Admit(request, w.waiters[w.used++], now_).permit);
        break;
      case Call::kAsk:
        Keep(w, w.guard->Admit(request, now_).permit);
        break;
      case Call::kFinish:
        if (w.running.empty()) return;
        w.guard->Finish(std::move(w.running.back()), Outcome::kOk, now_);
        w.running.pop_back();
        break;
      case Call::kCancel:
        if (w.used == 0) return;
        w.guard->Cancel(w.waiters[w.used - 1], now_);
        break;
      case Call::kTick:
        w.guard->Tick(now_);
        break;
      case Call::kReclaim:
        Reclaim(i);
        break;
    }
    Drain(w);
  }

  void Keep(Worker& w, Permit permit) {
    if (permit) w.running.push_back(std::move(permit));
  }

  void Drain(Worker& w) {
    while (Waiter* waiter = w.guard->NextDecided()) {
      Keep(w, waiter->TakePermit());
    }
    w.wake = w.guard->NextWake();
  }

  // As Reclaimer does; a shard may also be that of one who died reclaiming.
  void Reclaim(size_t self) {
    for (size_t shard = 0; shard < workers_.size(); ++shard) {
      const ProcessId owner = region_.Owner(static_cast<int>(shard));
      if (owner.pid == 0 || !IsDead(owner)) continue;
      region_.Reclaim(static_cast<int>(shard), owner, Id(self));
    }
  }
  bool IsDead(ProcessId id) const {
    const auto worker = static_cast<size_t>(id.pid) - 1;
    return workers_[worker].dead || IsKilled(worker);
  }

  // When all scripts are done and no new request comes.
  std::optional<std::string> Rest() {
    size_t survivor = workers_.size();
    for (size_t i = 0; i < workers_.size(); ++i) {
      if (!workers_[i].dead) survivor = i;
    }
    if (survivor == workers_.size()) return std::nullopt;
    Reclaim(survivor);
    // Requests that run take long; those that wait must find the free places.
    TickFor(milliseconds(50));
    int64_t running = 0;
    int64_t waiting = 0;
    for (const Worker& w : workers_) {
      if (w.dead) continue;
      running += static_cast<int64_t>(w.running.size());
      waiting += w.guard->waiting();
    }
    if (running > kSlots) return "run: " + std::to_string(running);
    if (waiting > 0 && running < kSlots) {
      return "forgotten: " + std::to_string(waiting) + " wait while " +
             std::to_string(running) + " run";
    }
    for (int round = 0; round < 100; ++round) {
      for (size_t i = 0; i < workers_.size(); ++i) {
        if (!workers_[i].dead && !workers_[i].running.empty()) {
          now_ += microseconds(100);
          Do(i, Call::kFinish);
        }
      }
      TickFor(milliseconds(2));
    }
    TickFor(milliseconds(300));
    for (const Worker& w : workers_) {
      if (!w.dead && (w.guard->waiting() > 0 || !w.running.empty())) {
        return "still there in the end";
      }
    }
    if (region_.places.sum() != 0) {
      return "places not given back: " + std::to_string(region_.places.sum());
    }
    for (const Ledger& queued : region_.queued) {
      if (queued.sum() != 0) return "waiting in the books, but nowhere else";
    }
    if (region_.law.turn.load() != 0) return "the turn is not given back";
    return std::nullopt;
  }

  // All workers' timers, for so long.
  void TickFor(Duration time) {
    const Instant end = now_ + time;
    while (true) {
      Worker* next = nullptr;
      for (Worker& w : workers_) {
        if (!w.dead && (next == nullptr || w.wake < next->wake)) next = &w;
      }
      if (next == nullptr || next->wake > end) break;
      now_ = std::max(now_, next->wake);
      next->guard->Tick(now_);
      Drain(*next);
    }
    now_ = end;
  }

  // Of one that was killed nothing may run any more, not even a destructor.
  static void Discard(Worker& w) {
    if (w.dead) {
      for (Permit& permit : w.running) new (&permit) Permit;
      for (Waiter& waiter : w.waiters) new (&waiter) Waiter;
      ::operator delete(w.guard);
      return;
    }
    w.running.clear();
    delete w.guard;
  }

  Region& region_;
  const Program& program_;
  std::vector<Worker> workers_;
  Instant now_ = kStart;
};

int Times() {
  const char* const times = std::getenv("WEIR_EXPLORE_TIMES");
  return times != nullptr ? std::max(1, std::atoi(times)) : 1;
}

class RegionExploreTest : public ::testing::Test {
 protected:
  // False when there was a fault.
  bool Try(const Program& program, const Plan& plan,
           int64_t* accesses = nullptr) {
    Region& region = memory_.Anew(program.size());
    World world(region, program);
    int64_t count = 0;
    const auto fault = world.Live(plan, &count);
    if (accesses != nullptr) *accesses = count;
    ++runs_;
    if (!fault) return true;
    ADD_FAILURE() << *fault << "\n  " << Print(program) << "\n  "
                  << plan.Print();
    return false;
  }

  static Script Parse(std::string_view text) {
    Script script;
    for (const char c : text) {
      script.push_back(static_cast<Call>(std::string_view("AaFCTR").find(c)));
    }
    return script;
  }

  Memory memory_;
  int64_t runs_ = 0;
};

// Each pair of switches, in steps that grow with the length so that all
// programs have their share.
TEST_F(RegionExploreTest, SmallProgramsUnderAllPlansOfTwoSwitches) {
  const std::vector<Program> programs = {
      // The first is about to clear `tight` when the second begins to wait.
      {Parse("AAAFFAF"), Parse("AAAA")}, {Parse("AAF"), Parse("AAAAA")},
      {Parse("AFAF"), Parse("AAAAAF")},  {Parse("AAFF"), Parse("AAAFF")},
      {Parse("AAAF"), Parse("AAAC")},    {Parse("aaF"), Parse("aaaTA")},
  };
  for (const Program& program : programs) {
    for (const int64_t hold : {0, 1000}) {
      int64_t length = 0;
      ASSERT_TRUE(Try(program, {}, &length));
      const int64_t step = std::max<int64_t>(1, length / 200);
      for (int64_t first = 0; first < length; first += step) {
        for (int64_t second = first + 1; second < length; second += step) {
          Plan plan;
          plan.switches = {{first, 1}, {second, 0}};
          plan.hold_stores = hold;
          ASSERT_TRUE(Try(program, plan));
          if (hold != 0) continue;
          // Or the first one never goes on.
          plan.switches.pop_back();
          plan.kills = {{second, 0}};
          ASSERT_TRUE(Try(program, plan));
        }
      }
    }
  }
}

TEST_F(RegionExploreTest, RandomProgramsUnderRandomPlans) {
  SplitMix64 random(1);
  const auto below = [&](uint64_t n) { return random.Next() % n; };
  const int64_t runs = int64_t{60'000} * Times();
  for (int64_t run = 0; run < runs; ++run) {
    Program program(2 + below(2));
    for (Script& script : program) {
      script.resize(3 + below(kCalls - 2));
      for (Call& call : script) {
        constexpr std::string_view kUsual = "AAAAaFFFTC";
        call = Parse(kUsual.substr(below(kUsual.size()), 1)).front();
      }
    }
    Plan plan;
    const auto length = static_cast<uint64_t>(300 * program.size());
    for (uint64_t i = 1 + below(4); i > 0; --i) {
      plan.switches.push_back({static_cast<int64_t>(below(length)),
                               static_cast<size_t>(below(program.size()))});
    }
    std::sort(plan.switches.begin(), plan.switches.end());
    plan.hold_stores = below(2) == 0 ? 0 : static_cast<int64_t>(below(60));
    if (below(2) == 0) {
      plan.kills.push_back({static_cast<int64_t>(below(length)),
                            static_cast<size_t>(below(program.size()))});
    }
    ASSERT_TRUE(Try(program, plan)) << "run " << run;
  }
}

// A dead worker's part comes back once, wherever who takes it back dies too.
TEST_F(RegionExploreTest, ReclaimersThatDieLeaveTheirTaskToTheNext) {
  SplitMix64 random(2);
  const auto below = [&](uint64_t n) { return random.Next() % n; };
  const int64_t runs = int64_t{30'000} * Times();
  for (int64_t run = 0; run < runs; ++run) {
    const Program program = {Parse("AAAF"), Parse("RRAR"), Parse("ARRR")};
    Plan plan;
    const auto first = static_cast<int64_t>(below(400));
    plan.switches = {{first, 1 + below(2)}};
    plan.kills = {{first, 0}};
    const auto second = first + static_cast<int64_t>(below(200));
    plan.switches.push_back({second, 1 + below(2)});
    plan.switches.push_back({second + static_cast<int64_t>(below(100)), 1});
    if (below(2) == 0) plan.kills.push_back({second, 1 + below(2)});
    ASSERT_TRUE(Try(program, plan)) << "run " << run;
  }
}

}  // namespace
}  // namespace weir::explore
