#include "weir/sim/processor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "weir/scenario/random.h"
#include "weir/scenario/service_time.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;
using Discipline = Processor::Discipline;

constexpr Instant kStart{};

// Puts work into one processor at given instants, and notes when it ended.
class Bench final : public Processor::Owner, private Handler {
 public:
  Bench(Discipline discipline, int32_t workers)
      : processor(events, *this, discipline, workers) {}

  void AddAt(Duration at, Duration demand) {
    works.push_back(std::make_unique<Item>());
    works.back()->demand = demand;
    events.At(kStart + at, *this, works.size() - 1);
  }
  void Run(Duration until) { events.RunUntil(kStart + until); }
  Duration EndOf(size_t i) const { return works[i]->end; }

  EventQueue events;
  Processor processor;

 private:
  struct Item : Work {
    Duration demand{};
    Duration end{-1};
  };

  void OnEvent(Instant, uint64_t index) override {
    processor.Add(*works[index], works[index]->demand);
  }
  void OnWorkDone(Work& work, Instant now) override {
    static_cast<Item&>(work).end = now - kStart;
  }
  bool OnWorkTurn(Work&, Instant, Instant) override { return true; }

 public:
  std::vector<std::unique_ptr<Item>> works;
};

TEST(ProcessorTest, FcfsServesInOrderOfArrival) {
  Bench bench(Discipline::kFcfs, 1);
  bench.AddAt(0ms, 10ms);
  bench.AddAt(1ms, 5ms);
  bench.AddAt(2ms, 1ms);
  bench.Run(1s);
  EXPECT_EQ(bench.EndOf(0), 10ms);
  EXPECT_EQ(bench.EndOf(1), 15ms);
  EXPECT_EQ(bench.EndOf(2), 16ms);
}

// Two share from 0 to 8 ms (4 ms each), then one is alone.
TEST(ProcessorTest, SharingDividesSpeedEqually) {
  Bench bench(Discipline::kSharing, 1);
  bench.AddAt(0ms, 10ms);
  bench.AddAt(0ms, 4ms);
  bench.Run(1s);
  EXPECT_EQ(bench.EndOf(1), 8ms);
  EXPECT_EQ(bench.EndOf(0), 14ms);
}

TEST(ProcessorTest, SharingGivesNobodyMoreThanOneWorker) {
  Bench bench(Discipline::kSharing, 4);
  bench.AddAt(0ms, 10ms);
  bench.AddAt(0ms, 3ms);
  bench.Run(1s);
  EXPECT_EQ(bench.EndOf(0), 10ms);
  EXPECT_EQ(bench.EndOf(1), 3ms);
}

TEST(ProcessorTest, SpeedChangesWorkInService) {
  for (const Discipline discipline :
       {Discipline::kFcfs, Discipline::kSharing}) {
    Bench bench(discipline, 1);
    bench.AddAt(0ms, 10ms);
    bench.Run(4ms);
    bench.processor.SetSpeed(0.5);  // 6 ms of work are left.
    bench.Run(8ms);
    bench.processor.SetSpeed(0);  // 4 ms are left.
    bench.Run(100ms);
    bench.processor.SetSpeed(2);
    bench.Run(1s);
    EXPECT_EQ(bench.EndOf(0), 102ms);
  }
}

TEST(ProcessorTest, FewerWorkersFinishWhatTheyHaveAndTakeNoMore) {
  Bench bench(Discipline::kFcfs, 2);
  for (int i = 0; i < 4; ++i) bench.AddAt(0ms, 10ms);
  bench.Run(5ms);
  bench.processor.SetWorkers(1);
  bench.Run(1s);
  EXPECT_EQ(bench.EndOf(0), 10ms);
  EXPECT_EQ(bench.EndOf(1), 10ms);
  EXPECT_EQ(bench.EndOf(2), 20ms);
  EXPECT_EQ(bench.EndOf(3), 30ms);
}

TEST(ProcessorTest, RemovedWorkGivesItsWorkerToTheNext) {
  Bench bench(Discipline::kFcfs, 1);
  bench.AddAt(0ms, 10ms);
  bench.AddAt(0ms, 10ms);
  bench.AddAt(0ms, 10ms);
  bench.Run(4ms);
  EXPECT_EQ(bench.processor.Remove(*bench.works[1]), 0ms);  // It waited.
  EXPECT_EQ(bench.processor.Remove(*bench.works[0]), 4ms);
  bench.Run(1s);
  EXPECT_EQ(bench.EndOf(2), 14ms);
  EXPECT_LT(bench.EndOf(0), 0ms);
}

// Goal: with Poisson arrivals, the mean number in a sharing server is
// rho / (1 - rho) whatever the distribution of work is (insensitivity), and
// the number in the system is the rate times the time in it (Little's law).
// Method: 200 000 arrivals at rho = 0.7.  The tolerance is some four standard
// errors of the mean of that many correlated samples.
TEST(ProcessorTest, SharingIsInsensitiveToTheDistribution) {
  const scenario::Span kSpans[] = {
      {.distribution = scenario::Span::Distribution::kConstant, .mean = 10ms},
      {.distribution = scenario::Span::Distribution::kExponential,
       .mean = 10ms},
      {.distribution = scenario::Span::Distribution::kBimodal,
       .mean = 10ms,
       .fast = 2ms,
       .slow = 82ms,
       .slow_ratio = .1}};
  for (const scenario::Span& span : kSpans) {
    constexpr double kLoad = 0.7;
    constexpr int kArrivals = 200'000;
    Bench bench(Discipline::kSharing, 1);
    scenario::Random random(11);
    Duration at{};
    double last_arrival = 0;
    std::vector<Duration> arrivals;
    for (int i = 0; i < kArrivals; ++i) {
      at += FromSeconds(0.010 / kLoad * random.Exponential());
      arrivals.push_back(at);
      bench.AddAt(at, scenario::Draw(span, random));
      last_arrival = ToSeconds(at);
    }
    bench.Run(at + 100s);
    double sojourn = 0;
    for (size_t i = 0; i < arrivals.size(); ++i) {
      ASSERT_GE(bench.EndOf(i), arrivals[i]);
      sojourn += ToSeconds(bench.EndOf(i) - arrivals[i]);
    }
    const double mean_number = sojourn / last_arrival;
    EXPECT_NEAR(mean_number, kLoad / (1 - kLoad), 0.15)
        << static_cast<int>(span.distribution);
  }
}

// Goal: nothing is lost to rounding.  Method: a sharing server whose number of
// jobs changes all the time is busy exactly as long as its work takes.
TEST(ProcessorTest, SharingConservesWork) {
  Bench bench(Discipline::kSharing, 1);
  scenario::Random random(5);
  Duration work{};
  for (int i = 0; i < 10'000; ++i) {
    const Duration demand(static_cast<int64_t>(random.Below(2'000'000)));
    work += demand;
    bench.AddAt(Duration(static_cast<int64_t>(random.Below(1'000'000'000))),
                demand);
  }
  bench.Run(100s);
  Duration last{};
  for (size_t i = 0; i < bench.works.size(); ++i) {
    last = std::max(last, bench.EndOf(i));
  }
  EXPECT_EQ(bench.processor.in_service(), 0u);
  // It was never idle between the first arrival (within 1 ms) and the end.
  EXPECT_NEAR(ToSeconds(bench.processor.busy()), ToSeconds(work), 1e-4);
  EXPECT_NEAR(ToSeconds(last), ToSeconds(work), 1e-3);
}

}  // namespace
}  // namespace weir::sim
