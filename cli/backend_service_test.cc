#include "backend_service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "weir/scenario/service_time.h"

namespace weir::cli {
namespace {

using scenario::Scenario;
using scenario::Span;
using scenario::Stage;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart{seconds(1000)};

Scenario MakeScenario(int32_t workers, Span time) {
  Scenario scenario;
  scenario.phases = {{.name = "all", .duration = seconds(100), .load = 1}};
  scenario.classes = {{}};
  scenario.routes = {{}};
  scenario.tiers = {{.workers = workers, .stages = {{.time = time}}}};
  return scenario;
}

constexpr Span kConstant{.mean = milliseconds(20)};
constexpr Span kExponential{.distribution = Span::Distribution::kExponential,
                            .mean = milliseconds(20)};

// Offers `rate` per second for `length`, looking only every `look`; counts
// what is done by its end.
size_t Offer(BackendService& service, Instant from, double rate,
             Duration length, Duration look) {
  std::vector<BackendService::Done> done;
  Instant last_look = from;
  const Duration gap = FromSeconds(1 / rate);
  uint64_t number = 0;
  for (Duration at{}; at < length; at += gap) {
    while (last_look + look <= from + at) {
      last_look += look;
      service.Advance(last_look, done);
    }
    service.Arrive(from + at, number, 0, number);
    ++number;
  }
  service.Advance(from + length, done);
  return done.size();
}

TEST(BackendServiceTest, AloneEachRequestTakesItsServiceTime) {
  const Scenario scenario = MakeScenario(20, kExponential);
  BackendService service(scenario, 7, kStart);
  std::vector<BackendService::Done> done;
  service.Arrive(kStart, 3, 0, 99);
  const Duration drawn = scenario::DrawFor(kExponential, 7, 0, 0, 3);
  EXPECT_EQ(service.next(), kStart + drawn);
  service.Advance(kStart + drawn - Duration(1), done);
  EXPECT_TRUE(done.empty());
  service.Advance(kStart + drawn, done);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].token, 99u);
  EXPECT_EQ(done[0].at, kStart + drawn);
  EXPECT_EQ(done[0].service, drawn);
  EXPECT_EQ(service.next(), kNever);
}

TEST(BackendServiceTest, CapacityIsExactUnderFlood) {
  const Scenario scenario = MakeScenario(20, kConstant);
  BackendService service(scenario, 1, kStart);
  // 500 rounds of 20, the first one started within 2 ms.
  EXPECT_NEAR(static_cast<double>(
                  Offer(service, kStart, 10'000, seconds(10), milliseconds(1))),
              10'000, 20);
}

TEST(BackendServiceTest, CapacityDoesNotDependOnHowOftenSomebodyLooks) {
  const Scenario scenario = MakeScenario(20, kExponential);
  BackendService often(scenario, 1, kStart);
  BackendService seldom(scenario, 1, kStart);
  const size_t count =
      Offer(often, kStart, 10'000, seconds(10), microseconds(100));
  EXPECT_EQ(Offer(seldom, kStart, 10'000, seconds(10), milliseconds(300)),
            count);
  // Five deviations of the number of exponential times in 200 worker seconds.
  EXPECT_NEAR(static_cast<double>(count), 10'000, 5 * std::sqrt(10'000));
}

TEST(BackendServiceTest, TheQueueIsFirstComeFirstServed) {
  const Scenario scenario = MakeScenario(1, kConstant);
  BackendService service(scenario, 1, kStart);
  for (uint64_t i = 0; i < 100; ++i) {
    service.Arrive(kStart + microseconds(i), i, 0, i);
  }
  EXPECT_EQ(service.waiting(), 99u);
  std::vector<BackendService::Done> done;
  service.Advance(kStart + seconds(10), done);
  ASSERT_EQ(done.size(), 100u);
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(done[i].token, i);
    EXPECT_EQ(done[i].at, kStart + milliseconds(20) * (i + 1));
  }
}

TEST(BackendServiceTest, CapacityStepsOnTheScenariosSchedule) {
  Scenario scenario = MakeScenario(20, kConstant);
  scenario.tiers[0].changes = {{.at = seconds(1), .workers = 10},
                               {.at = seconds(2), .workers = 40}};
  BackendService service(scenario, 1, kStart);
  std::vector<BackendService::Done> done;
  for (uint64_t i = 0; i < 10'000; ++i) service.Arrive(kStart, i, 0, i);
  service.Advance(kStart + seconds(1), done);
  EXPECT_EQ(done.size(), 1000u);
  done.clear();
  service.Advance(kStart + seconds(2), done);
  EXPECT_EQ(done.size(), 500u);
  done.clear();
  service.Advance(kStart + seconds(3), done);
  EXPECT_EQ(done.size(), 2000u);
}

TEST(BackendServiceTest, AdminSettingsHoldUntilTheScenarioBegins) {
  Scenario scenario = MakeScenario(20, kConstant);
  BackendService service(scenario, 1, kStart);
  std::vector<BackendService::Done> done;
  for (uint64_t i = 0; i < 10'000; ++i) service.Arrive(kStart, i, 0, i);
  service.Advance(kStart + seconds(1), done);
  service.SetSpeed(kStart + seconds(1), .5);
  service.SetWorkers(kStart + seconds(1), 10);
  done.clear();
  service.Advance(kStart + seconds(2), done);
  // The 20 that ran at the change finish, then 10 at half the speed: a quarter
  // of the capacity but for the change itself.
  EXPECT_NEAR(static_cast<double>(done.size()), 250, 20);
  service.Begin(kStart + seconds(2), kStart + seconds(2));
  done.clear();
  service.Advance(kStart + seconds(3), done);
  EXPECT_NEAR(static_cast<double>(done.size()), 1000, 20);
  EXPECT_EQ(service.workers(), 20);
}

TEST(BackendServiceTest, AWorkerThatIsTakenAwayFinishesItsRequest) {
  const Scenario scenario = MakeScenario(2, kConstant);
  BackendService service(scenario, 1, kStart);
  service.Arrive(kStart, 0, 0, 0);
  service.Arrive(kStart, 1, 0, 1);
  service.Arrive(kStart, 2, 0, 2);
  service.SetWorkers(kStart, 1);
  std::vector<BackendService::Done> done;
  service.Advance(kStart + milliseconds(20), done);
  EXPECT_EQ(done.size(), 2u);
  service.Advance(kStart + milliseconds(40), done);
  EXPECT_EQ(done.size(), 3u);
}

TEST(BackendServiceTest, NothingMovesInAPause) {
  Scenario scenario = MakeScenario(1, kConstant);
  scenario.tiers[0].pauses = {{.length = milliseconds(300),
                               .every = seconds(5),
                               .first = milliseconds(10)}};
  BackendService service(scenario, 1, kStart);
  std::vector<BackendService::Done> done;
  service.Arrive(kStart, 0, 0, 0);
  service.Arrive(kStart + milliseconds(50), 1, 0, 1);
  service.Advance(kStart + seconds(1), done);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].at, kStart + milliseconds(320));
  EXPECT_EQ(done[1].at, kStart + milliseconds(340));
}

TEST(BackendServiceTest, StagesQueueEachOnItsOwn) {
  Scenario scenario = MakeScenario(10, kConstant);
  scenario.routes = {{.name = "/locked", .share = .5},
                     {.name = "/", .share = .5}};
  scenario.tiers[0].stages.push_back(
      {.kind = Stage::Kind::kIo, .time = {.mean = milliseconds(5)}});
  scenario.tiers[0].stages.push_back({.kind = Stage::Kind::kLock,
                                      .time = {.mean = milliseconds(7)},
                                      .route = 0});
  BackendService service(scenario, 1, kStart);
  std::vector<BackendService::Done> done;
  service.Arrive(kStart, 0, 0, 0);
  service.Arrive(kStart, 1, 0, 1);
  service.Arrive(kStart, 2, 1, 2);
  service.Advance(kStart + seconds(1), done);
  ASSERT_EQ(done.size(), 3u);
  EXPECT_EQ(done[0].token, 2u);
  EXPECT_EQ(done[0].at, kStart + milliseconds(25));
  EXPECT_EQ(done[1].at, kStart + milliseconds(32));
  EXPECT_EQ(done[2].at, kStart + milliseconds(39));
  EXPECT_EQ(done[2].service, milliseconds(32));
}

TEST(BackendServiceTest, ClearForgetsWhatWaitsAndFinishesWhatRuns) {
  const Scenario scenario = MakeScenario(1, kConstant);
  BackendService service(scenario, 1, kStart);
  for (uint64_t i = 0; i < 5; ++i) service.Arrive(kStart, i, 0, i);
  EXPECT_EQ(service.Clear(), (std::vector<uint64_t>{1, 2, 3, 4}));
  EXPECT_EQ(service.waiting(), 0u);
  std::vector<BackendService::Done> done;
  service.Advance(kStart + seconds(1), done);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].token, 0u);
}

TEST(NotPlayedTest, NamesEachThingThatOnlyTheSimulatorPlays) {
  const Scenario plain = MakeScenario(4, kConstant);
  EXPECT_EQ(NotPlayed(plain), "");
  const auto with = [&](const auto& change) {
    Scenario scenario = plain;
    change(scenario, scenario.tiers[0]);
    return NotPlayed(scenario);
  };
  using Tier = scenario::Tier;
  EXPECT_EQ(with([](Scenario& s, Tier&) { s.clients.closed.push_back({}); }),
            "clients.closed");
  EXPECT_EQ(with([](Scenario& s, Tier&) { s.tiers.push_back(s.tiers[0]); }),
            "tiers after the first");
  EXPECT_EQ(with([](Scenario&, Tier& t) { t.replicas = 2; }),
            "more than one replica");
  EXPECT_EQ(with([](Scenario&, Tier& t) {
              t.discipline = scenario::Discipline::kSharing;
            }),
            "discipline");
  EXPECT_EQ(with([](Scenario&, Tier& t) { t.cancel_at_deadline = true; }),
            "cancel_at_deadline");
  EXPECT_EQ(with([](Scenario&, Tier& t) { t.reject_cost = microseconds(1); }),
            "reject_cost");
  EXPECT_EQ(with([](Scenario&, Tier& t) { t.network = kConstant; }), "network");
  EXPECT_EQ(with([](Scenario&, Tier& t) { t.client_guard = true; }),
            "client_guard");
  EXPECT_EQ(with([](Scenario&, Tier& t) { t.failures.push_back({}); }),
            "failures");
  EXPECT_EQ(with([](Scenario& s, Tier&) { s.proxy_timeout = seconds(1); }),
            "proxy_timeout");
  EXPECT_EQ(with([](Scenario& s, Tier&) { s.phases.push_back({.mix = {1}}); }),
            "phases.mix");
  EXPECT_EQ(with([](Scenario& s, Tier& t) {
              t.client_guard = true;
              s.clients.closed.push_back({});
            }),
            "client_guard, clients.closed");
}

}  // namespace
}  // namespace weir::cli
