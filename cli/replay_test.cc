#include "replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "weir/scenario/arrivals.h"
#include "weir/scenario/capacity.h"
#include "weir/scenario/read.h"
#include "weir/scenario/service_time.h"

namespace weir::cli {
namespace {

using scenario::Scenario;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

constexpr Duration kStart = seconds(1'714'564'800);

const LogFormat& Format() {
  static const LogFormat format = *LogFormat::Parse(kPlainLogFormat);
  return format;
}

LogEntry Entry(Duration ended, Duration time, std::string_view path,
               std::string_view client = "::1") {
  return {.ended = ended,
          .client = client,
          .method = "GET",
          .path = path,
          .status = 200,
          .request_time = time,
          .upstream_time = time};
}

Scenario Read(const ReplayedScenario& replayed) {
  auto read = scenario::ParseScenario(replayed.toml, "replayed.toml");
  EXPECT_TRUE(read) << (read ? "" : read.complaints().Print(""))
                    << replayed.toml;
  return *read;
}

TEST(ReplayTest, PathsBecomeRoutes) {
  const auto route = [](std::string_view path) {
    std::string out;
    RouteOfPath(path, out);
    return out;
  };
  EXPECT_EQ(route("/"), "/");
  EXPECT_EQ(route("/orders/4711/items"), "/orders/_/items");
  EXPECT_EQ(route("/u/3f2504e0-4f89-11d3-9a0c-0305e82c3301"), "/u/_");
  EXPECT_EQ(route("/feedface/deadbeef"), "/feedface/deadbeef");
  EXPECT_EQ(route("//a//b/"), "/a/b");
  EXPECT_EQ(route("/a b/\xff\"%20"), "/a_b/___20");
  EXPECT_EQ(route("/1/2/3/4/5/6"), "/_/_/_/_");
  // At 40 letters, but not within a character.
  EXPECT_EQ(route("/" + std::string(50, 'a')), "/" + std::string(40, 'a'));
  EXPECT_EQ(route("/" + std::string(35, 'a') + "%D0%BC"),
            "/" + std::string(35, 'a'));
  EXPECT_EQ(route("/" + std::string(34, 'a') + "%D0%BC%D0%BC"),
            "/" + std::string(34, 'a') + "_D0_BC");
  EXPECT_EQ(route("/" + std::string(37, 'a') + "\\xD0\\xBC"),
            "/" + std::string(37, 'a'));
}

TEST(ReplayTest, RulesMatchMethodAndPath) {
  const LogRule rule = *LogRule::Parse("POST /pay*=vital");
  LogEntry entry = Entry(kStart, {}, "/pay/now");
  EXPECT_FALSE(rule.Matches(entry));
  entry.method = "POST";
  EXPECT_TRUE(rule.Matches(entry));
  EXPECT_FALSE(LogRule::Parse("pay=vital"));
  EXPECT_FALSE(LogRule::Parse("/pay"));
}

TEST(ReplayTest, RequestsCountWhenTheyArrivedNotWhenTheyEnded) {
  LogProfile::Options options;
  LogProfile profile(Format(), options);
  profile.Add(Entry(kStart + seconds(30), seconds(30), "/"));
  profile.Add(Entry(kStart + seconds(10), milliseconds(10), "/"));
  EXPECT_EQ(profile.timeline().begin(), kStart);
  EXPECT_EQ(profile.counts().out_of_order, 1u);
  EXPECT_EQ(profile.counts().most_out_of_order, seconds(20));
}

TEST(ReplayTest, WhatTheServiceNeverSawIsLeftOutUnlessItWasRefused) {
  LogProfile::Options options;
  LogProfile profile(Format(), options);
  LogEntry entry = Entry(kStart, {}, "/logo.png");
  entry.upstream_time.reset();
  profile.Add(entry);  // A file.
  for (const int status : {429, 499, 502, 503, 504}) {
    entry.status = status;
    profile.Add(entry);
  }
  EXPECT_EQ(profile.counts().answered_by_nginx, 1u);
  EXPECT_EQ(profile.counts().requests, 5u);
  EXPECT_EQ(profile.counts().refused, 2u);
  EXPECT_EQ(profile.counts().failed, 3u);
  EXPECT_EQ(profile.counts().timed, 0u);
}

TEST(ReplayTest, ManyClientsAreSampledAndStillCounted) {
  ClientCounts counts;
  constexpr int kClients = 300'000;
  for (int i = 0; i < 2 * kClients; ++i) {
    counts.Add("10." + std::to_string(i % kClients));
  }
  EXPECT_TRUE(counts.sampled());
  EXPECT_NEAR(static_cast<double>(counts.clients()), kClients, .02 * kClients);
  EXPECT_NEAR(counts.Collision() * kClients, .5, .02);
}

// Goal: a scenario that was played, logged and replayed is the scenario that
// was played, but for chance.
TEST(ReplayTest, AReplayOfAScenarioIsThatScenario) {
  const Scenario played = *scenario::ParseScenario(R"(
name = "played"
classes = [{ name = "vital", share = 0.2 }, { name = "sheddable", share = 0.8 }]
routes = [{ name = "/a", share = 0.7 }, { name = "/b", share = 0.3 }]
phases = [
  { name = "calm", load = 0.5, duration = "20s" },
  { name = "burst", load = 3, duration = "700ms" },
  { name = "after", load = 0.5, duration = "20s" },
]
[clients]
count = 500
zipf = 1.1
[service]
workers = 10
stages = [
  { route = "/a", time = "5ms", distribution = "exponential" },
  { route = "/b", time = "20ms", distribution = "constant" },
]
)",
                                                   "played");
  LogProfile::Options options;
  LogProfile profile(Format(), options);
  scenario::Arrivals arrivals(played, 1);
  double offered = 0;
  while (const auto arrival = arrivals.Next()) {
    const auto& stage = played.tiers[0].stages[arrival->route];
    const Duration time =
        scenario::DrawFor(stage.time, 1, 0, arrival->route, arrival->number);
    const std::string client = std::to_string(arrival->client);
    LogEntry entry = Entry(kStart + arrival->at + time, time,
                           played.routes[arrival->route].name, client);
    entry.criticality = played.classes[arrival->cls].criticality;
    profile.Add(entry);
    ++offered;
  }
  const auto replayed = MakeReplay(profile, Format(), {.workers = 10});
  ASSERT_TRUE(replayed) << replayed.error().message;
  const Scenario again = Read(*replayed);

  ASSERT_EQ(again.routes.size(), 2u);
  EXPECT_EQ(again.routes[0].name, "/a");
  EXPECT_NEAR(again.routes[0].share, .7, .02);
  using enum scenario::Span::Distribution;
  EXPECT_EQ(again.tiers[0].stages[0].time.distribution, kExponential);
  EXPECT_EQ(again.tiers[0].stages[1].time.distribution, kConstant);
  EXPECT_NEAR(CapacityAt(again, {}), CapacityAt(played, {}),
              .03 * CapacityAt(played, {}));
  EXPECT_NEAR(again.clients.zipf, 1.1, .1);
  ASSERT_EQ(again.classes.size(), 2u);
  EXPECT_NEAR(again.classes[0].share, .2, .02);
  EXPECT_EQ(again.phases.size(), 3u);
  EXPECT_EQ(again.phases[1].duration, milliseconds(700));
  EXPECT_NEAR(ToSeconds(again.length()), ToSeconds(played.length()), .2);
}

// Goal: the rate over time is the log's within 2 %, and the reader accepts
// what is written.
// Method: logs of a rate that moves through four decades with bursts, classes
// and times of any kind; what OfferedAt() integrates to, step by step and over
// the whole, is what was counted.
TEST(ReplayTest, TheRateOverTimeIsTheLogsWithinTwoPercent) {
  constexpr std::string_view kPaths[] = {"/", "/a", "/b/7", "/c/d/e", "/\"x"};
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    scenario::Random random(seed);
    LogProfile::Options options;
    const bool with_classes = seed % 2 == 0;
    LogProfile profile(Format(), options);
    std::vector<Duration> arrived;
    Duration at = kStart + FromSeconds(random.Uniform());
    for (int part = 0; part < 8; ++part) {
      const double rate = 2 * std::pow(10, random.Uniform() * 3);
      const Duration end = at + FromSeconds(.3 + random.Exponential() * 4);
      for (; at < end; at += FromSeconds(random.Exponential() / rate)) {
        const Duration time = FromSeconds(std::pow(10, -4 * random.Uniform()));
        LogEntry entry =
            Entry(at + time, time, kPaths[random.Next() % 5],
                  random.Next() % 2 == 0 ? "10.0.0.1" : "10.0.0.2");
        if (with_classes) {
          entry.criticality = static_cast<Criticality>(random.Next() % 4);
        }
        if (random.Next() % 10 == 0) entry.status = 503;
        profile.Add(entry);
        arrived.push_back(at);
      }
    }
    const auto replayed = MakeReplay(profile, Format(), {});
    ASSERT_TRUE(replayed) << replayed.error().message;
    const Scenario scenario = Read(*replayed);

    const Duration begin = profile.timeline().begin();
    double whole = 0;
    for (size_t i = 0; i < scenario.phases.size(); ++i) {
      const Duration from = scenario.PhaseStart(i);
      const Duration length = scenario.phases[i].duration;
      const double expected = OfferedAt(scenario, from) * ToSeconds(length);
      double counted = 0;
      for (const Duration a : arrived) {
        counted += a - begin >= from && a - begin < from + length ? 1 : 0;
      }
      whole += expected;
      EXPECT_NEAR(expected, counted, .02 * counted) << scenario.phases[i].name;
    }
    EXPECT_NEAR(whole, static_cast<double>(arrived.size()), .001 * whole);
  }
}

TEST(ReplayTest, CapacityIsCalledAnAssumptionUnlessItWasGiven) {
  LogProfile::Options options;
  LogProfile profile(Format(), options);
  for (int i = 0; i < 3000; ++i) {
    profile.Add(Entry(kStart + i * milliseconds(10), milliseconds(45), "/"));
  }
  const auto assumed = MakeReplay(profile, Format(), {});
  ASSERT_TRUE(assumed);
  EXPECT_THAT(assumed->notes, Contains(HasSubstr("ASSUMED capacity")));
  // 100/s of 45 ms: 4.5 in progress.
  EXPECT_EQ(Read(*assumed).tiers[0].workers, 5);
  const auto given = MakeReplay(profile, Format(), {.workers = 7});
  ASSERT_TRUE(given);
  EXPECT_THAT(given->notes, testing::Not(Contains(HasSubstr("ASSUMED cap"))));
  EXPECT_EQ(Read(*given).tiers[0].workers, 7);
}

TEST(ReplayTest, TimesThatGrowWithTheLoadAreCalledWaiting) {
  LogProfile::Options options;
  LogProfile profile(Format(), options);
  for (int i = 0; i < 6000; ++i) {
    const bool busy = i > 5000;
    profile.Add(Entry(kStart + i * milliseconds(10),
                      milliseconds(busy ? 400 : 20), "/"));
  }
  const auto replayed = MakeReplay(profile, Format(), {});
  ASSERT_TRUE(replayed);
  EXPECT_THAT(replayed->notes, Contains(HasSubstr("BEWARE")));
}

TEST(ReplayTest, WhatCannotBecomeAScenarioSaysWhatToDo) {
  const auto why = [](const LogProfile& profile, const LogFormat& format) {
    const auto replayed = MakeReplay(profile, format, {});
    return replayed ? "" : replayed.error().message;
  };
  LogProfile::Options options;
  LogProfile days(Format(), options);
  days.Add(Entry(kStart, milliseconds(1), "/"));
  days.Add(Entry(kStart + std::chrono::hours(100), milliseconds(1), "/"));
  EXPECT_THAT(why(days, Format()),
              AllOf(HasSubstr("spans 100.0 hours"), HasSubstr("--from")));
  const LogFormat combined = *LogFormat::Parse(kCombinedLogFormat);
  LogProfile timeless(combined, options);
  timeless.Add({.ended = kStart, .path = "/", .status = 200});
  EXPECT_THAT(why(timeless, combined), HasSubstr("--time 20ms"));
  options.from = kStart + seconds(1);
  LogProfile early(Format(), options);
  early.Add(Entry(kStart, milliseconds(1), "/"));
  EXPECT_THAT(why(early, Format()), HasSubstr("1 outside --from"));
}

TEST(ReplayTest, RareRoutesAreOne) {
  LogProfile::Options options;
  LogProfile profile(Format(), options);
  for (int i = 0; i < 2000; ++i) {
    const std::string path = "/p-" + std::to_string(i % 50) + "x";
    profile.Add(Entry(kStart + i * milliseconds(10), milliseconds(5),
                      i % 2 == 0 ? "/hot" : path));
  }
  const auto replayed = MakeReplay(profile, Format(), {.most_routes = 3});
  ASSERT_TRUE(replayed);
  const Scenario scenario = Read(*replayed);
  ASSERT_EQ(scenario.routes.size(), 3u);
  EXPECT_EQ(scenario.routes[0].name, "/hot");
  EXPECT_EQ(scenario.routes[2].name, "/other");
}

}  // namespace
}  // namespace weir::cli
