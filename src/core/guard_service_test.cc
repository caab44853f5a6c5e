// What users feel: the guard in front of a simulated service.  Each claim holds
// for every seed tried; bounds are what the seeds show with some air, not
// goals (docs/results has the figures of the real simulator).

#include <gtest/gtest.h>

#include <numeric>

#include "testing/simulated_service.h"
#include "weir/snapshot.h"

namespace weir::testing {
namespace {

struct Result {
  double goodput_ratio = 0;
  double shed_ratio = 0;
  double p99 = 0;
  std::array<double, kCriticalities> served{};  // Good of offered.
};

Result Measure(SimulatedService& service, double from, double to) {
  service.RunTo(from);
  service.TakeTallies();
  service.TakeP99();
  service.RunTo(to);
  Result result;
  const auto tallies = service.TakeTallies();
  int64_t offered = 0;
  int64_t good = 0;
  int64_t shed = 0;
  for (size_t c = 0; c < kCriticalities; ++c) {
    offered += tallies[c].offered;
    good += tallies[c].good;
    shed += tallies[c].shed;
    result.served[c] =
        static_cast<double>(tallies[c].good) /
        static_cast<double>(std::max<int64_t>(1, tallies[c].offered));
  }
  const double ideal = std::min(static_cast<double>(offered),
                                service.world().capacity() * (to - from));
  result.goodput_ratio = static_cast<double>(good) / ideal;
  result.shed_ratio = static_cast<double>(shed) / static_cast<double>(offered);
  result.p99 = service.TakeP99();
  return result;
}

World Loaded(double load, uint64_t seed, int workers = 1) {
  World world;
  world.seed = seed;
  world.workers = workers;
  world.load = [load](double) { return load; };
  return world;
}

class WorkersAndSeeds : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  int workers() const { return std::get<0>(GetParam()); }
  uint64_t seed() const {
    return static_cast<uint64_t>(std::get<1>(GetParam()));
  }
};
INSTANTIATE_TEST_SUITE_P(All, WorkersAndSeeds,
                         ::testing::Combine(::testing::Values(1, 2, 4),
                                            ::testing::Values(11, 12, 13)));

TEST_P(WorkersAndSeeds, BelowCapacityNothingIsShedNotEvenFromACold) {
  SimulatedService service(Loaded(.8, seed(), workers()));
  const Result result = Measure(service, 0, 20);
  EXPECT_EQ(result.shed_ratio, 0);
}

TEST_P(WorkersAndSeeds, CloseToCapacityNothingIsShedEither) {
  SimulatedService service(Loaded(.93, seed(), workers()));
  const Result result = Measure(service, 5, 20);
  EXPECT_LE(result.shed_ratio, .0005);
}

TEST_P(WorkersAndSeeds, TwiceTheCapacityLosesNothingButTheExcess) {
  SimulatedService service(Loaded(2, seed(), workers()));
  const Result result = Measure(service, 5, 25);
  EXPECT_GE(result.goodput_ratio, .98);
  EXPECT_LE(result.p99, .08);
  EXPECT_GE(result.served[0], .999);
  EXPECT_GE(result.served[1], .98);
  EXPECT_LE(result.served[3], .01);
}

TEST_P(WorkersAndSeeds, TenTimesTheCapacityServesTheVitalWhileTheyFit) {
  World world = Loaded(10, seed(), workers());
  world.shares = {.05, .15, .4, .4};  // Vital: half of the capacity.
  SimulatedService service(world);
  const Result result = Measure(service, 2, 17);
  EXPECT_GE(result.goodput_ratio, .97);
  EXPECT_GE(result.served[0], .995);
  EXPECT_LE(result.served[2], .01);
  EXPECT_LE(result.p99, .08);
}

TEST_P(WorkersAndSeeds, AFloodIsForgottenWithinASecond) {
  World world = Loaded(1, seed(), workers());
  world.load = [](double t) { return t < 5 ? .8 : t < 10 ? 10 : .8; };
  SimulatedService service(world);
  service.RunTo(11);
  service.TakeTallies();
  service.RunTo(20);
  int64_t shed = 0;
  for (const auto& tally : service.TakeTallies()) shed += tally.shed;
  EXPECT_LE(shed, 12);  // Of 11 520; the flood's own are gone.
}

TEST_P(WorkersAndSeeds, HalfOfTheServersLostIsHalfOfTheWorkLostNotMore) {
  World world = Loaded(.8, seed(), workers());
  world.change = [](double t, World& w) { w.servers = t < 10 ? 16 : 8; };
  world.load = [](double t) { return t < 10 ? .8 : 1.6; };
  SimulatedService service(world);
  const Result result = Measure(service, 10, 30);
  EXPECT_GE(result.goodput_ratio, .97);
  EXPECT_GE(result.served[0], .99);
}

// A limit of capacity times a third of the deadline, whatever a request takes,
// would hold itself down to nothing here.
TEST(GuardServiceTest, AServiceThatTakesHalfOfItsDeadlineDoesAllItsWork) {
  for (const double service_time : {.3, .4, .5}) {
    for (const double load : {.7, 2.}) {
      World world = Loaded(load, 11);
      world.servers = 64;
      world.service = service_time;
      world.deadline = 4 * service_time;  // Exponential: 2 % take longer.
      SimulatedService by_quarter(world);
      EXPECT_GE(Measure(by_quarter, 15, 60).goodput_ratio, .95)
          << service_time << " s at " << load;
      world.deadline = 2 * service_time;  // 14 % take longer.
      SimulatedService by_half(world);
      EXPECT_GE(Measure(by_half, 15, 60).goodput_ratio, .75)
          << service_time << " s at " << load;
    }
  }
}

TEST(GuardServiceTest, OneGreedyClientDoesNotStarveAThousandModestOnes) {
  World world = Loaded(5.6, 21);
  world.shares = {0, 1, 0, 0};
  world.client = [](Random& random) -> uint64_t {
    return random.Uniform() < 5 / 5.6 ? 1 : 2 + random.Next() % 1000;
  };
  SimulatedService service(world);
  service.RunTo(5);
  const size_t before = service.good_clients().size();
  service.RunTo(25);
  int64_t modest = 0;
  for (size_t i = before; i < service.good_clients().size(); ++i) {
    modest += service.good_clients()[i] != 1;
  }
  EXPECT_GE(modest / (20 * .6 * 1600), .96);
}

TEST(GuardServiceTest, TheSameSeedGivesTheSameDecisions) {
  const auto run = [] {
    SimulatedService service(Loaded(3, 31, 2));
    service.RunTo(5);
    const Snapshot snapshot = Read(service.region());
    return std::pair(snapshot.by_class, snapshot.counters);
  };
  EXPECT_EQ(run(), run());
}

TEST(GuardServiceTest, AWorkerThatStopsLookingDoesNotStopTheOthers) {
  // Worker 1 lets vital requests wait and is never called again, as one that
  // hangs would; the places it left free must not stay free.
  Policy policy;
  policy.service = "test";
  policy.limit_floor = policy.limit_ceiling = 2;
  policy.resources.push_back({.name = "api"});
  const Instant start{std::chrono::seconds(1000)};
  HeapRegion region(policy, start);
  const auto shared = std::make_shared<Policy>(policy);
  const auto make = [&](int pid) {
    return std::move(*Guard::Make(
        shared, *region, *region->ClaimShard({.pid = pid, .start = 1}), start));
  };
  const auto hangs = make(1);
  const auto works = make(2);
  Permit first = works->Admit({}, start).permit;
  Permit second = works->Admit({}, start).permit;
  Waiter vital;
  (void)hangs->Admit({.criticality = Criticality::kVital}, vital, start);
  Waiter deferrable;
  (void)works->Admit({.criticality = Criticality::kDeferrable}, deferrable,
                     start);

  works->Finish(std::move(first), Outcome::kOk, start + Duration(1000));
  EXPECT_EQ(works->NextDecided(), nullptr) << "the place is the vital one's";
  Instant now = start;
  for (int i = 0; i < 10 && works->waiting() > 0; ++i) {
    now = works->NextWake();
    works->Tick(now);
  }
  ASSERT_EQ(works->NextDecided(), &deferrable);
  EXPECT_LE(now - start, std::chrono::milliseconds(10));
  works->Finish(deferrable.TakePermit(), Outcome::kOk, now);
  works->Finish(std::move(second), Outcome::kOk, now);
  hangs->Cancel(vital, now);
}

}  // namespace
}  // namespace weir::testing
