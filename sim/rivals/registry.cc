#include "weir/rivals/registry.h"

#include <algorithm>
#include <utility>

#include "weir/rivals/adaptive_lifo.h"
#include "weir/rivals/aegis_bbr.h"
#include "weir/rivals/bouncer.h"
#include "weir/rivals/breakwater.h"
#include "weir/rivals/brpc_auto.h"
#include "weir/rivals/brpc_timeout.h"
#include "weir/rivals/cinnamon.h"
#include "weir/rivals/dagor.h"
#include "weir/rivals/envoy_admission.h"
#include "weir/rivals/envoy_gradient.h"
#include "weir/rivals/envoy_retry_budget.h"
#include "weir/rivals/failsafe_limiter.h"
#include "weir/rivals/failsafe_priority.h"
#include "weir/rivals/failsafe_throttler.h"
#include "weir/rivals/finagle_retry_budget.h"
#include "weir/rivals/fixed_limit.h"
#include "weir/rivals/folly_codel.h"
#include "weir/rivals/gozero_breaker.h"
#include "weir/rivals/gozero_shedder.h"
#include "weir/rivals/grpc_retry_throttle.h"
#include "weir/rivals/netflix_aimd.h"
#include "weir/rivals/netflix_gradient.h"
#include "weir/rivals/netflix_gradient2.h"
#include "weir/rivals/netflix_vegas.h"
#include "weir/rivals/netflix_windowed.h"
#include "weir/rivals/pie.h"
#include "weir/rivals/rfc_codel.h"
#include "weir/rivals/seda.h"
#include "weir/rivals/sentinel_system.h"
#include "weir/rivals/sre_throttle.h"
#include "weir/rivals/trpc_high_percentile.h"
#include "weir/rivals/userver_linear.h"
#include "weir/rivals/userver_rps.h"

namespace weir::rivals {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Chosen: far above every limit that any scenario needs.
constexpr int32_t kMaximum = 1'000'000;
// Source: [SENTINEL], its documentation: start with 2.5 per core.
constexpr double kLoadPerCore = 2.5;
// Chosen: where Kratos starts too.
constexpr double kSentinelCpu = 0.8;
// Source: [BREAKWATER-CODE], 500 us of target for 100 us of service, and a
// round trip of a tenth of it.
constexpr int32_t kBreakwaterTargetServices = 5;
constexpr int32_t kBreakwaterServiceTrips = 10;
// Chosen: long enough for every law to have moved from its start.
constexpr Duration kFrozenAfter = seconds(2);

int32_t TunedLimit(const World& world) {
  if (world.tuned_limit > 0) return world.tuned_limit;
  return world.workers + std::max(1, (world.workers + 9) / 10);
}

Rival MakeVegas(const World& world) {
  return MakeRival<NetflixVegas>(NetflixVegas::Config{.seed = world.seed});
}

Rival MakeGradient(const World& world) {
  return MakeRival<NetflixGradient>(
      NetflixGradient::Config{.seed = world.seed});
}

Rival MakeGradient2(const World&) {
  return MakeRival<NetflixGradient2>(NetflixGradient2::Config{});
}

Rival MakeAimd(const World&) {
  return MakeRival<NetflixAimd>(NetflixAimd::Config{});
}

template <Rival (*kInner)(const World&)>
Rival MakeWindowed(const World& world) {
  return MakeRival<NetflixWindowed>(NetflixWindowed::Config{}, kInner(world));
}

template <int kSeconds>
Rival MakeEnvoy(const World& world) {
  return MakeRival<EnvoyGradient>(EnvoyGradient::Config{
      .least_interval = seconds(kSeconds), .seed = world.seed});
}

Rival MakeBrpcAuto(const World& world) {
  BrpcAuto::Config config;
  config.seed = world.seed;
  return MakeRival<BrpcAuto>(config);
}

Rival MakeBrpcTimeout(const World& world) {
  BrpcTimeout::Config config;
  config.timeout = world.deadline;
  return MakeRival<BrpcTimeout>(config);
}

template <int kMilliseconds>
Rival MakeDagor(const World&) {
  return MakeRival<Dagor>(Dagor::Config{.window = milliseconds(kMilliseconds)});
}

Rival MakeBreakwater(const World& world) {
  return MakeRival<Breakwater>(Breakwater::Config{
      .target = kBreakwaterTargetServices * world.service,
      .round_trip = std::max<Duration>(world.service / kBreakwaterServiceTrips,
                                       std::chrono::microseconds(10)),
      .cores = world.workers,
      .clients = world.clients});
}

Rival MakeFrozen(const World& world) {
  return MakeRival<FrozenLimit>(MakeBrpcAuto(world), kFrozenAfter);
}

constexpr Entry kEntries[] = {
    {"none", Seat::kFront, "lets everything pass",
     [](const World&) { return Rival(); }},
    {"fixed", Seat::kFront, "a limit tuned by hand, workers and a tenth",
     [](const World& world) {
       return MakeRival<FixedLimit>(TunedLimit(world));
     }},

    {"netflix-vegas", Seat::kFront, "queue estimate from the least latency",
     MakeVegas},
    {"netflix-vegas-windowed", Seat::kFront,
     "netflix-vegas fed one mean a second", MakeWindowed<MakeVegas>},
    {"netflix-gradient", Seat::kFront,
     "least latency over latency, with probes", MakeGradient},
    {"netflix-gradient-windowed", Seat::kFront,
     "netflix-gradient fed one mean a second", MakeWindowed<MakeGradient>},
    {"netflix-gradient2", Seat::kFront, "long average over latency",
     MakeGradient2},
    {"netflix-gradient2-windowed", Seat::kFront,
     "netflix-gradient2 fed one mean a second", MakeWindowed<MakeGradient2>},
    {"netflix-aimd", Seat::kFront, "plus one, times .9 on timeouts", MakeAimd},
    {"netflix-aimd-windowed", Seat::kFront,
     "netflix-aimd fed one mean a second", MakeWindowed<MakeAimd>},
    {"envoy-gradient", Seat::kFront,
     "gradient on a least latency probed each minute", MakeEnvoy<60>},
    {"envoy-gradient-10s", Seat::kFront,
     "envoy-gradient probing each 10 seconds", MakeEnvoy<10>},
    {"brpc-auto", Seat::kFront, "least latency times best rate, exploring",
     MakeBrpcAuto},
    {"failsafe-limiter", Seat::kFront,
     "vegas on p90s, with throughput correlation",
     [](const World&) {
       return MakeRival<FailsafeLimiter>(FailsafeLimiter::Config{});
     }},
    {"failsafe-priority", Seat::kFront,
     "failsafe-limiter with a queue and a level of priority",
     [](const World&) {
       return MakeRival<FailsafePriority>(FailsafePriority::Config{});
     }},
    {"uber-cinnamon", Seat::kFront,
     "PI on the share to refuse, cut by recent priorities",
     [](const World&) { return MakeRival<Cinnamon>(Cinnamon::Config{}); }},
    {"userver-linear", Seat::kFront, "inflight limit, -5 % or +1 a second",
     [](const World&) {
       return MakeRival<UserverLinear>(UserverLinear::Config{});
     }},

    {"sentinel-load", Seat::kServer, "BBR check while load1 is high",
     [](const World& world) {
       return MakeRival<SentinelSystem>(
           SentinelSystem::Config{.load1 = kLoadPerCore * world.workers});
     }},
    {"sentinel-cpu", Seat::kServer, "refuses all while the CPU is high",
     [](const World&) {
       return MakeRival<SentinelSystem>(
           SentinelSystem::Config{.cpu_ratio = kSentinelCpu});
     }},
    {"sentinel-robust", Seat::kServer,
     "BBR check without its dangers while load or CPU are high",
     [](const World& world) {
       return MakeRival<SentinelSystem>(
           SentinelSystem::Config{.load1 = kLoadPerCore * world.workers,
                                  .cpu_ratio = kSentinelCpu,
                                  .robust = true});
     }},
    {"kratos-bbr", Seat::kServer, "BBR check while the CPU is high",
     [](const World&) { return MakeRival<AegisBbr>(AegisBbr::Config{}); }},
    {"gozero-shedder", Seat::kServer, "BBR check scaled by the CPU's headroom",
     [](const World&) {
       return MakeRival<GozeroShedder>(GozeroShedder::Config{});
     }},
    {"trpc-high-percentile", Seat::kServer,
     "limit by scheduling delay, fuzzy cut of priorities",
     [](const World&) {
       return MakeRival<TrpcHighPercentile>(TrpcHighPercentile::Config{});
     }},
    {"userver-rps", Seat::kServer, "rate limit by late starts, 2 % a second",
     [](const World&) { return MakeRival<UserverRps>(UserverRps::Config{}); }},
    {"brpc-timeout", Seat::kServer,
     "nothing new while the mean latency exceeds the timeout", MakeBrpcTimeout},
    {"envoy-admission", Seat::kServer, "refuses at random by the success rate",
     [](const World&) {
       return MakeRival<EnvoyAdmission>(EnvoyAdmission::Config{});
     }},
    {"failsafe-throttler", Seat::kServer,
     "refuses at random by the failures of a minute",
     [](const World&) {
       return MakeRival<FailsafeThrottler>(FailsafeThrottler::Config{});
     }},
    {"folly-codel", Seat::kServer, "sloughs old requests while delay stands",
     [](const World&) { return MakeRival<FollyCodel>(FollyCodel::Config{}); }},
    {"rfc-codel", Seat::kServer, "CoDel as published, ever faster refusals",
     [](const World&) { return MakeRival<RfcCodel>(RfcCodel::Config{}); }},
    {"rfc-pie", Seat::kServer, "refuses at random by queue delay, PI",
     [](const World&) { return MakeRival<Pie>(Pie::Config{}); }},
    {"facebook-adaptive-lifo", Seat::kServer,
     "newest first and short patience while a queue stands",
     [](const World&) {
       return MakeRival<AdaptiveLifo>(AdaptiveLifo::Config{});
     }},
    {"wechat-dagor-1s", Seat::kServer,
     "cut by business and user priority, moved each second", MakeDagor<1000>},
    {"wechat-dagor-100ms", Seat::kServer, "wechat-dagor-1s moved each 100 ms",
     MakeDagor<100>},
    {"breakwater", Seat::kServer, "credits by queue delay, server side only",
     MakeBreakwater},
    {"seda", Seat::kServer, "token bucket by p90 against a target",
     [](const World& world) {
       return MakeRival<Seda>(Seda::Config{.target = world.deadline / 2});
     }},
    {"linkedin-bouncer", Seat::kServer,
     "refuses what is predicted to miss its percentiles",
     [](const World& world) {
       return MakeRival<Bouncer>(
           Bouncer::Config{.processors = world.workers,
                           .slo_p50 = world.deadline / 4,
                           .slo_p90 = world.deadline / 2});
     }},

    {"google-sre-throttle", Seat::kCaller, "client side throttle, K = 2",
     [](const World&) {
       return MakeRival<SreThrottle>(SreThrottle::Config{});
     }},
    {"google-sre-throttle-k1.1", Seat::kCaller, "client side throttle, K = 1.1",
     [](const World&) {
       return MakeRival<SreThrottle>(SreThrottle::Config{.k = 1.1});
     }},
    {"kratos-breaker", Seat::kCaller,
     "client side throttle, K = 1.67 over 3 s, from 100 requests",
     [](const World&) {
       return MakeRival<SreThrottle>(SreThrottle::Config{.k = 1 / 0.6,
                                                         .least_requests = 100,
                                                         .window = seconds(3),
                                                         .slices = 10});
     }},
    {"gozero-breaker", Seat::kCaller,
     "client side throttle, K from 1.5 to 1.1 over 10 s",
     [](const World&) {
       return MakeRival<GoZeroBreaker>(GoZeroBreaker::Config{});
     }},
    {"grpc-retry-throttle", Seat::kCaller,
     "no retries while half of the tokens are gone",
     [](const World&) {
       return MakeRival<GrpcRetryThrottle>(GrpcRetryThrottle::Config{});
     }},
    {"finagle-retry-budget", Seat::kCaller,
     "retries up to a fifth of the requests of 10 s",
     [](const World&) {
       return MakeRival<FinagleRetryBudget>(FinagleRetryBudget::Config{});
     }},
    {"envoy-retry-budget", Seat::kCaller,
     "retries up to a fifth of what is in flight",
     [](const World&) {
       return MakeRival<EnvoyRetryBudget>(EnvoyRetryBudget::Config{});
     }},

    {"mutant-minimum", Seat::kFront, "always a limit of 1",
     [](const World&) { return MakeRival<FixedLimit>(1); }},
    {"mutant-maximum", Seat::kFront, "always a limit of a million",
     [](const World&) { return MakeRival<FixedLimit>(kMaximum); }},
    {"mutant-frozen", Seat::kFront, "brpc-auto that stops learning after 2 s",
     MakeFrozen},
};

}  // namespace

std::string_view Name(Seat seat) {
  switch (seat) {
    case Seat::kFront:
      return "front";
    case Seat::kServer:
      return "server";
    case Seat::kCaller:
      return "caller";
  }
  return "";
}

std::span<const Entry> Registry() { return kEntries; }

std::vector<const Entry*> FindRivals(std::string_view name) {
  std::vector<const Entry*> found;
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return {&entry};
    const bool vendor = entry.name.starts_with(name) &&
                        entry.name.substr(name.size()).starts_with('-');
    if (vendor && !name.empty()) found.push_back(&entry);
  }
  return found;
}

std::string Needs(const Rival& rival) {
  const std::pair<bool, std::string_view> abilities[] = {
      {rival.gates(), "arrival"},   {rival.limits(), "limit"},
      {rival.takes(), "start"},     {rival.learns(), "finish"},
      {rival.watches(), "signals"}, {rival.sorts(), "order"},
  };
  std::string needs;
  for (const auto& [able, name] : abilities) {
    if (!able) continue;
    if (!needs.empty()) needs += ", ";
    needs += name;
  }
  return needs;
}

}  // namespace weir::rivals
