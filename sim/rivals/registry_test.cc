// Every rival at work in one small world.

#include "weir/rivals/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "samples_test.h"
#include "weir/splitmix64.h"

namespace weir::rivals {
namespace {

using testing::ElementsAre;

std::vector<std::string> NamesOf(const std::vector<const Entry*>& entries) {
  std::vector<std::string> names;
  for (const Entry* entry : entries) names.emplace_back(entry->name);
  return names;
}

TEST(RegistryTest, NamesAreUniqueLowerCaseWords) {
  std::set<std::string> names;
  for (const Entry& entry : Registry()) {
    const std::string name(entry.name);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-."),
              std::string::npos)
        << name;
    EXPECT_FALSE(entry.summary.empty()) << name;
  }
}

TEST(RegistryTest, FindsByNameAndByVendor) {
  EXPECT_THAT(NamesOf(FindRivals("brpc-auto")), ElementsAre("brpc-auto"));
  EXPECT_THAT(NamesOf(FindRivals("envoy")),
              ElementsAre("envoy-gradient", "envoy-gradient-10s",
                          "envoy-admission", "envoy-retry-budget"));
  // The name of a law is not the vendor of its variants.
  EXPECT_THAT(NamesOf(FindRivals("envoy-gradient")),
              ElementsAre("envoy-gradient"));
  EXPECT_THAT(NamesOf(FindRivals("mutant")),
              ElementsAre("mutant-minimum", "mutant-maximum", "mutant-frozen"));
  EXPECT_TRUE(FindRivals("env").empty());
  EXPECT_TRUE(FindRivals("").empty());
}

TEST(RegistryTest, NeedsAreTheAbilities) {
  const auto needs = [](std::string_view name) {
    return Needs(FindRivals(name).front()->make({}));
  };
  EXPECT_EQ(needs("none"), "");
  EXPECT_EQ(needs("fixed"), "limit");
  EXPECT_EQ(needs("netflix-gradient2"), "limit, finish");
  EXPECT_EQ(needs("kratos-bbr"), "arrival, finish, signals");
  EXPECT_EQ(needs("folly-codel"), "start");
  EXPECT_EQ(needs("wechat-dagor-1s"), "arrival, start");
  EXPECT_EQ(needs("facebook-adaptive-lifo"), "arrival, start, order");
  EXPECT_EQ(needs("uber-cinnamon"), "arrival, limit, start, finish");
}

// What stands in front cannot see into the server, so a law that measures
// starts or signals must have a seat there, unless it owns the queue in front.
TEST(RegistryTest, FrontSeatsNeedNoSignals) {
  for (const Entry& entry : Registry()) {
    const Rival rival = entry.make({});
    if (entry.seat == Seat::kFront) {
      EXPECT_FALSE(rival.watches()) << entry.name;
    }
    EXPECT_EQ(rival.watches(), rival.watch_period() > Duration::zero());
  }
}

constexpr int kWorkers = 8;
constexpr Duration kService = 10ms;
constexpr Duration kDeadline = 500ms;
constexpr Duration kTick = 250us;

struct Result {
  int arrived = 0;
  int in_time = 0;
  int most_inside = 0;     // Started or waiting at once.
  uint64_t decisions = 0;  // A hash of all decisions in their order.
};

// Eight workers behind a FIFO that a rival guards from its seat, in steps of
// 250 us.  Arrivals are Poisson at `load` times the capacity, service times
// exponential.  A rival in front takes the server for opaque; one that sits in
// it sees its queue.  Callers wait 500 ms; the server does not know.
class SmallWorld {
 public:
  SmallWorld(const Entry& entry, double load, uint64_t seed)
      : rival_(entry.make({.seed = seed,
                           .workers = kWorkers,
                           .service = kService,
                           .deadline = kDeadline})),
        opaque_(entry.seat == Seat::kFront),
        load_(load),
        arrivals_(seed + 1),
        services_(seed + 2),
        draws_(seed + 3) {}

  Result Run(Duration time) {
    for (Duration at{}; at < time; at += kTick) {
      now_ = kStart + at;
      Finish();
      Watch();
      const double mean = load_ * kWorkers * (kTick / (1.0 * kService));
      // Poisson by products of uniforms: at most a few per tick.
      const double none = std::exp(-mean);
      for (double p = arrivals_.NextUnit(); p > none;
           p *= arrivals_.NextUnit()) {
        Arrive();
      }
      Take();
    }
    return result_;
  }

 private:
  struct Job {
    Instant arrived;
    Instant started;
    Duration service;
    int inside_at_arrival;
    Criticality criticality;
  };

  int inside() const {
    return static_cast<int>(running_.size() + queue_.size());
  }

  void Decide(bool yes) {
    result_.decisions = Mix64(result_.decisions * 2 + (yes ? 1 : 0) + 1);
  }

  void Arrive() {
    ++result_.arrived;
    const uint64_t draw = draws_.Next();
    const Duration service =
        FromSeconds(-std::log(1 - services_.NextUnit()) * ToSeconds(kService));
    const auto criticality = Criticality(draw % kCriticalities);
    const auto queued = static_cast<int>(queue_.size());
    const bool admitted =
        rival_.Admit({.now = now_,
                      .inflight = opaque_ ? inside() : inside() - queued,
                      .queued = opaque_ ? 0 : queued,
                      .queue_delay = opaque_ || queue_.empty()
                                         ? Duration()
                                         : now_ - queue_.front().arrived,
                      .criticality = criticality,
                      .client = draw % 100,
                      .draw = draw}) &&
        inside() < rival_.Limit(now_);
    Decide(admitted);
    if (!admitted) return;
    queue_.push_back({now_, now_, service, inside() + 1, criticality});
    result_.most_inside = std::max(result_.most_inside, inside());
    // Without a queue of its own, what is let in starts at once.
    if (opaque_) rival_.Take({.now = now_});
  }

  void Take() {
    while (running_.size() < kWorkers && !queue_.empty()) {
      const bool newest = rival_.QueueOrder(now_) == Order::kNewestFirst;
      Job job = newest ? queue_.back() : queue_.front();
      newest ? queue_.pop_back() : queue_.pop_front();
      if (!opaque_) {
        const bool taken =
            rival_.Take({.now = now_,
                         .queue_delay = now_ - job.arrived,
                         .queued = static_cast<int>(queue_.size()),
                         .criticality = job.criticality,
                         .patience = kDeadline});
        Decide(taken);
        if (!taken) continue;
      }
      job.started = now_;
      running_.emplace(now_ + job.service, job);
    }
  }

  void Finish() {
    while (!running_.empty() && running_.begin()->first <= now_) {
      const Job job = running_.begin()->second;
      const bool in_time = now_ - job.arrived <= kDeadline;
      if (in_time) ++result_.in_time;
      const Duration queued = job.started - job.arrived;
      const auto waiting = static_cast<int>(queue_.size());
      rival_.Learn({.now = now_,
                    .latency = now_ - (opaque_ ? job.arrived : job.started),
                    .queue_delay = opaque_ ? Duration() : queued,
                    .inflight_at_start = job.inside_at_arrival,
                    .inflight = opaque_ ? inside() : inside() - waiting,
                    .queued = opaque_ ? 0 : waiting,
                    .outcome = in_time ? Outcome::kOk : Outcome::kTimedOut,
                    .criticality = job.criticality});
      busy_ += job.service;
      running_.erase(running_.begin());
    }
  }

  void Watch() {
    const Duration period = rival_.watch_period();
    if (period == Duration::zero() || now_ < watch_at_) return;
    const Duration span = now_ - watched_at_;
    const double cpu = span > Duration::zero()
                           ? ToSeconds(busy_) / ToSeconds(span) / kWorkers
                           : 0;
    rival_.Watch({.now = now_,
                  .cpu_ratio = std::min(cpu, 1.0),
                  .load1 = static_cast<double>(inside())});
    busy_ = Duration();
    watched_at_ = now_;
    watch_at_ = now_ + period;
  }

  Rival rival_;
  bool opaque_;
  double load_;
  SplitMix64 arrivals_;
  SplitMix64 services_;
  SplitMix64 draws_;
  Instant now_ = kStart;
  std::deque<Job> queue_;
  std::multimap<Instant, Job> running_;  // By the time each ends.
  Duration busy_{};
  Instant watched_at_ = kStart;
  Instant watch_at_ = kStart;
  Result result_;
};

Result RunNamed(std::string_view name, double load, uint64_t seed = 1) {
  return SmallWorld(*FindRivals(name).front(), load, seed).Run(10s);
}

TEST(SmallWorldTest, SameSeedGivesTheSameDecisions) {
  for (const Entry& entry : Registry()) {
    const Result first = SmallWorld(entry, 2.0, 5).Run(5s);
    const Result second = SmallWorld(entry, 2.0, 5).Run(5s);
    EXPECT_EQ(first.decisions, second.decisions) << entry.name;
    EXPECT_GT(first.arrived, 7000) << entry.name;
  }
}

// The share of what eight workers can answer in ten seconds.
double Goodput(std::string_view name, double load) {
  return RunNamed(name, load).in_time / (10s * kWorkers / (1.0 * kService));
}

TEST(SmallWorldTest, WithoutControlOverloadLeavesNothing) {
  EXPECT_LT(Goodput("none", 2.0), 0.2);
  EXPECT_LT(Goodput("mutant-maximum", 2.0), 0.2);
}

TEST(SmallWorldTest, MinimumUsesOneWorkerOfEight) {
  EXPECT_NEAR(Goodput("mutant-minimum", 2.0), 1.0 / kWorkers, 0.03);
  EXPECT_EQ(RunNamed("mutant-minimum", 2.0).most_inside, 1);
}

// The rivals whose authors' measurements promise it keep their server busy and
// its answers in time at twice its capacity, from a cold start.
TEST(SmallWorldTest, GoodOnesHoldTheirGoodputAtTwiceTheCapacity) {
  for (const std::string_view name :
       {"fixed", "netflix-gradient2", "netflix-aimd", "envoy-gradient",
        "brpc-auto", "folly-codel", "breakwater", "linkedin-bouncer",
        "uber-cinnamon", "failsafe-limiter"}) {
    EXPECT_GT(Goodput(name, 2.0), 0.85) << name;
  }
}

TEST(SmallWorldTest, CodelAsPublishedIsTooGentleForRequests) {
  EXPECT_LT(Goodput("rfc-codel", 2.0), Goodput("folly-codel", 2.0) - 0.3);
}

}  // namespace
}  // namespace weir::rivals
