#include "weir/hunt/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <stdexcept>
#include <utility>

#include "weir/config/units.h"
#include "weir/scenario/capacity.h"
#include "weir/scenario/random.h"
#include "weir/scenario/read.h"
#include "weir/scenario/write.h"

namespace weir::hunt {
namespace {

using scenario::Phase;
using scenario::Scenario;
using scenario::Span;
using scenario::Stage;

// Chosen: far from the streams of what is played under the same seed.
constexpr uint64_t kWorlds = uint64_t{1} << 40;

// Three digits, so that files can be read by people.
double Digits(double number) {
  if (number <= 0) return number;
  double unit = 1;
  while (number * unit < 100) unit *= 10;
  while (number * unit >= 1000) unit /= 10;
  return std::floor(number * unit + .5) / unit;
}

// What other shares left, without the noise of its last bits.
double Rest(double share) { return std::floor(share * 1e6 + .5) / 1e6; }

Duration Digits(Duration time) {
  int64_t unit = 1;
  while (time.count() / unit >= 1000) unit *= 10;
  return Duration((time.count() + unit / 2) / unit * unit);
}

Duration Seconds(double number) { return Digits(FromSeconds(number)); }

double Retried(const Scenario& s) { return 1 + .7 * s.retries.count; }

double ExpectedAttempts(const Scenario& s) {
  const double capacity = scenario::CapacityAt(s, {});
  double sum = 0;
  for (const Phase& phase : s.phases) {
    // In the middle, or the mean of peaks.
    double load = scenario::LoadAt(phase, phase.duration / 2);
    if (phase.shape == Phase::Shape::kSquare) {
      load = phase.load + (phase.to - phase.load) * ToSeconds(phase.peak_for) /
                              ToSeconds(phase.every);
    }
    sum += load * capacity * ToSeconds(phase.duration) *
           (load > .95 ? Retried(s) : 1);
  }
  for (const scenario::Hog& hog : s.clients.hogs) {
    sum += hog.load * capacity * ToSeconds(s.length() - hog.from) * Retried(s);
  }
  return sum;
}

class Drawer {
 public:
  explicit Drawer(uint64_t seed) : random_(seed, kWorlds) {}

  // A world that is neither too big nor too small to be played.
  World Draw(uint64_t seed) {
    for (;;) {
      world_ = World{};
      s_ = Scenario{};
      s_.name = fmt::format("world-{}", seed);
      s_.seed = seed;
      s_.routes = {{}};
      s_.tiers = {{}};
      DrawService();
      DrawBudgets();
      DrawCallers();
      DrawDemand();
      // What was asked for last is answered in it, by who is not ideal.
      Add({.name = std::string(kEnd), .duration = s_.deadline});
      if (Playable(s_)) break;
    }
    DrawGuard();
    Label();
    world_.seed = seed;
    world_.scenario = std::move(s_);
    if (!Finish(world_)) {
      // A generator that draws what no file may say is wrong.
      throw std::logic_error("no file may say this:\n" + world_.text);
    }
    return std::move(world_);
  }

 private:
  double Uniform(double from, double to) {
    return from + (to - from) * random_.Uniform();
  }
  double LogUniform(double from, double to) {
    return scenario::Exp(Uniform(scenario::Log(from), scenario::Log(to)));
  }
  bool Chance(double ratio) { return random_.Uniform() < ratio; }
  // The index of one of them, by their weights.
  size_t Pick(std::initializer_list<double> weights) {
    double sum = 0;
    for (const double weight : weights) sum += weight;
    double left = Uniform(0, sum);
    size_t index = 0;
    for (const double weight : weights) {
      if (left < weight || index + 1 == weights.size()) return index;
      left -= weight;
      ++index;
    }
    return index;
  }
  void Trait(std::string_view trait) { world_.traits.emplace_back(trait); }

  scenario::Tier& tier() { return s_.tiers[0]; }

  // Times around `mean` seconds.
  Span DrawSpan(double mean, bool label) {
    Span span;
    using enum Span::Distribution;
    std::string_view name;
    switch (Pick({.2, .3, .14, .2, .16})) {
      case 0:
        span = {.distribution = kConstant, .mean = Seconds(mean)};
        name = "constant";
        break;
      case 1:
        span = {.distribution = kExponential, .mean = Seconds(mean)};
        name = "exponential";
        break;
      case 2:
        span = {.distribution = kLognormal,
                .mean = Seconds(mean),
                .sigma = Digits(Uniform(.3, 1.1))};
        name = "lognormal";
        break;
      case 3: {
        // `slow` is so many times `fast`, and so rare, that the mean holds.
        const double ratio = Digits(LogUniform(.003, .5));
        const double apart = LogUniform(3, 300);
        const double fast = mean / (1 + ratio * (apart - 1));
        span = {.distribution = kBimodal,
                .fast = std::max(Seconds(fast), Duration(1000)),
                .slow = std::max(Seconds(fast * apart), Duration(2000)),
                .slow_ratio = ratio};
        name = "bimodal";
        break;
      }
      default:
        span = {.distribution = kLognormal,
                .mean = Seconds(mean),
                .sigma = Digits(Uniform(1.3, 2.2))};
        name = "heavy-tailed";
        break;
    }
    if (label) Trait(name);
    return span;
  }

  // What a request takes on average when nothing queues.
  double MeanLatency() {
    double sum = 0;
    for (const Stage& stage : tier().stages) {
      sum += stage.ratio * (stage.route ? s_.routes[*stage.route].share : 1) *
             scenario::MeanSeconds(stage.time);
    }
    return sum;
  }
  double Capacity() const { return scenario::CapacityAt(s_, {}); }

  void TwoRoutes(const char* rare, const char* usual, double share) {
    share = Digits(share);
    s_.routes = {{rare, share}, {usual, Rest(1 - share)}};
  }

  void DrawService() {
    tier().workers =
        Chance(.08) ? 1 : static_cast<int32_t>(LogUniform(1, 5000) + .5);
    // Chosen: more than this many answers a second fill no world that is long
    // enough to tell anything.
    constexpr double kMostPerSecond = 8000;
    const double mean =
        LogUniform(std::max(.001, tier().workers / kMostPerSecond), 10);
    if (Chance(.15)) {
      tier().discipline = scenario::Discipline::kSharing;
      Trait("sharing");
    }
    const auto work = [&](double seconds) {
      return Stage{.name = "work", .time = DrawSpan(seconds, true)};
    };
    const auto io = [&](double seconds) {
      Stage stage{.name = "wait",
                  .kind = Stage::Kind::kIo,
                  .time = DrawSpan(seconds, false)};
      if (Chance(.5)) stage.time = {.mean = Seconds(seconds)};
      return stage;
    };
    switch (Pick({.46, .2, .12, .1, .12})) {
      case 0:
        tier().stages = {work(mean)};
        Trait("one kind");
        break;
      case 1: {
        TwoRoutes("/waits", "/quick", LogUniform(.02, .7));
        Stage wait =
            io(LogUniform(std::max(4 * mean, .05), std::max(8 * mean, 20.)));
        wait.route = 0;
        tier().stages = {std::move(wait), work(mean)};
        Trait("a route waits");
        break;
      }
      case 2: {
        const double share = LogUniform(.01, .4);
        TwoRoutes("/heavy", "/light", share);
        const double apart = LogUniform(3, 100);
        const double light = mean / (1 + share * (apart - 1));
        Stage heavy{.name = "heavy", .time = DrawSpan(light * apart, false)};
        heavy.route = 0;
        Stage quick{.name = "work", .time = DrawSpan(light, true)};
        quick.route = 1;
        tier().stages = {std::move(heavy), std::move(quick)};
        Trait("a heavy route");
        break;
      }
      case 3: {
        TwoRoutes("/held", "/free", LogUniform(.03, .6));
        const double rate = tier().workers / mean * s_.routes[0].share;
        const double seconds = LogUniform(mean / 2, mean * 20);
        const double size = LogUniform(.1, 2) * rate * seconds;
        Stage held{.name = "held", .time = DrawSpan(seconds, false)};
        held.size = std::max(1, static_cast<int32_t>(size + .5));
        held.kind = held.size > 1 ? Stage::Kind::kPool : Stage::Kind::kLock;
        held.route = 0;
        if (held.kind == Stage::Kind::kLock) held.size = 1;
        tier().stages = {work(mean), std::move(held)};
        Trait("a pool or lock");
        break;
      }
      default:
        tier().stages = {work(mean), io(mean * LogUniform(.2, 20))};
        Trait("all wait");
        break;
    }
    if (Chance(.15)) tier().cancel_at_deadline = true;
    if (Chance(.1)) tier().reject_cost = Seconds(mean * Uniform(.01, .1));
  }

  void DrawBudgets() {
    double usual = MeanLatency();
    if (s_.routes[0].name == "/waits") {
      // Whether there is time for those that wait is chance.
      const double wait = scenario::MeanSeconds(tier().stages[0].time);
      usual -= s_.routes[0].share * wait;
      if (Chance(.5)) usual = std::max(usual, wait * Uniform(.7, 1.5));
    }
    for (const Stage& stage : tier().stages) {
      // The same of those that are slow.
      if (stage.time.distribution == Span::Distribution::kBimodal &&
          stage.kind != Stage::Kind::kIo && Chance(.6)) {
        usual = std::max(usual, ToSeconds(stage.time.slow) * Uniform(.7, 1));
      }
    }
    const double deadline = std::clamp(usual * LogUniform(1.5, 40), .02, 120.);
    s_.deadline = Seconds(deadline);
    s_.timeout = s_.deadline;
    if (Chance(.5)) {
      s_.timeout =
          std::max(s_.deadline, Seconds(std::min(deadline * LogUniform(1, 10),
                                                 std::max(deadline, 300.))));
      Trait("patient callers");
    }
  }

  void DrawCallers() {
    if (Chance(.4)) {
      const double vital = Digits(LogUniform(.02, .3));
      const double important = Digits(Uniform(.1, .3));
      const double deferrable = Digits((1 - vital - important) * .5);
      s_.classes = {{Criticality::kVital, vital, s_.deadline},
                    {Criticality::kImportant, important, s_.deadline},
                    {Criticality::kDeferrable, deferrable, s_.deadline},
                    {Criticality::kSheddable,
                     Rest(1 - vital - important - deferrable), s_.deadline}};
      Trait("classes");
    } else {
      s_.classes = {{.deadline = s_.deadline}};
    }
    if (Chance(.25)) {
      s_.retries.count = 1 + static_cast<int32_t>(random_.Below(3));
      s_.retries.backoff = Seconds(
          std::clamp(ToSeconds(s_.deadline) * LogUniform(.05, 1), .01, 5.));
      Trait("retries");
    }
    if (Chance(.5)) {
      s_.seat = scenario::Seat::kProxy;
      Trait("guard in a proxy");
      if (Chance(.3)) {
        s_.proxy_timeout = Seconds(ToSeconds(s_.deadline) * LogUniform(.3, 3));
        Trait("the proxy gives up");
      }
    }
    s_.clients.count = static_cast<int32_t>(LogUniform(1, 5000) + .5);
    if (Chance(.3)) s_.clients.zipf = Digits(Uniform(.5, 1.2));
    if (Chance(.15)) s_.arrivals = scenario::Spacing::kConstant;
  }

  // --- demand: phases, and what happens in them ---

  void Add(Phase phase) {
    phase.duration = Digits(phase.duration);
    s_.phases.push_back(std::move(phase));
  }
  void AddConstant(std::string name, double length, double load,
                   bool measured = true) {
    Add({.name = std::move(name),
         .duration = FromSeconds(length),
         .load = Digits(load),
         .measured = measured});
  }
  Duration Now() const { return s_.length(); }

  // A length of time in which the service does enough to be judged by, is
  // asked by callers for several of their deadlines, and answers each of its
  // workers' requests several times.
  double Length() {
    return std::max({3., 15 * MeanLatency(), 4 * ToSeconds(s_.deadline),
                     400 / Capacity()}) *
           LogUniform(1, 3);
  }
  // What the goals give a service to come back.
  double Settle() { return std::max(5., 40 * MeanLatency()); }
  // How many times capacity, such that the world is not too big.
  double Flood(double length) {
    const double most =
        std::min(100., kMostAttempts / (Capacity() * length * Retried()));
    return most <= 1.15 ? 1.15 : LogUniform(1.15, most);
  }
  double Retried() const { return hunt::Retried(s_); }

  void AddAfter(double load) {
    Add({.name = "settling",
         .duration = FromSeconds(Settle()),
         .load = Digits(load)});
    AddConstant(std::string(kAfter), Length(), load);
    Trait("disturbed");
  }

  void DrawDemand() {
    switch (Pick({.14, .1, .12, .06, .07, .09, .14, .14, .05, .25})) {
      case 0: {
        if (Chance(.5))
          AddConstant("before", Length() / 2, Uniform(.1, .9), false);
        const double length = Length();
        AddConstant("flood", length, Flood(length));
        Trait("flood");
        break;
      }
      case 1: {
        const double calm = Uniform(.1, .85);
        AddConstant("before", Length() / 2, calm, false);
        const double length = Length();
        AddConstant("spike", length, Flood(length));
        AddAfter(calm);
        Trait("spike");
        break;
      }
      case 2:
      case 3: {
        const double length = Length() * 2;
        const double every = LogUniform(.3, std::max(1., length / 3));
        const double peak = every * Uniform(.02, .6);
        const double low = Chance(.3) ? 0 : Uniform(.05, .9);
        const double high = low + Flood(length * peak / every) * Uniform(.5, 1);
        const bool regular = Chance(.65);
        Add({.name = "peaks",
             .duration = FromSeconds(length),
             .shape = regular ? Phase::Shape::kSquare : Phase::Shape::kBursts,
             .load = Digits(low),
             .to = Digits(high),
             .every = Seconds(every),
             .peak_for = Seconds(peak)});
        Trait(regular ? "square" : "bursts");
        break;
      }
      case 4: {
        const double low = Uniform(.05, .8);
        const double length = Length() * 2;
        const double high = std::max(low, Flood(length) * 1.5);
        for (const bool up : {true, false}) {
          Add({.name = up ? "rise" : "fall",
               .duration = FromSeconds(length / 2),
               .shape = Phase::Shape::kRamp,
               .load = Digits(up ? low : high),
               .to = Digits(up ? high : low)});
        }
        AddAfter(low);
        Trait("ramp");
        break;
      }
      case 5:
        AddConstant("steady", Length() * 2, Uniform(.05, .9));
        Trait("steady");
        break;
      case 6: {
        // Peaks that come back before they are forgotten, and fit into the
        // deadline: what waits is at most a part of it.
        const double mean = Uniform(.15, .85);
        const double waits = ToSeconds(s_.deadline) * Uniform(.05, .9);
        const double every = std::max(.02, waits / mean * Uniform(.7, 1));
        const double peak = every * LogUniform(.02, .5);
        Add({.name = "ticks",
             .duration = FromSeconds(std::max(Length() * 2, 6 * every)),
             .shape = Phase::Shape::kSquare,
             .load = 0,
             .to = Digits(mean * every / peak),
             .every = Seconds(every),
             .peak_for = Seconds(peak)});
        Trait("peaks that fit");
        break;
      }
      case 7:
        DrawIdle();
        break;
      case 8: {
        const double high = Uniform(.4, 2.5);
        const double low = high * Uniform(.05, .5);
        const double length = Length();
        for (int day = 1; day <= 2; ++day) {
          for (const bool up : {true, false}) {
            Add({.name = fmt::format("{}-{}", up ? "morning" : "evening", day),
                 .duration = FromSeconds(length),
                 .shape = Phase::Shape::kRamp,
                 .load = Digits(up ? low : high),
                 .to = Digits(up ? high : low)});
          }
        }
        Trait("days");
        break;
      }
      default:
        DrawDisturbance();
        break;
    }
    DrawHogs();
    if (tier().pauses.empty() && Chance(.1)) {
      const double length = LogUniform(.02, 1);
      tier().pauses = {{.length = Seconds(length),
                        .every = Seconds(length * LogUniform(5, 100)),
                        .first = Seconds(Uniform(.5, 5)),
                        .regular = Chance(.5)}};
      Trait("pauses");
    }
  }

  // Somebody who asks for more than all others, under one name or many.
  void DrawHogs() {
    const bool strangers = Chance(.04);
    if (!strangers && !Chance(.07)) return;
    const double most = kMostAttempts / (Capacity() * ToSeconds(s_.length()));
    if (most < .5) return;
    scenario::Hog hog{.count = strangers ? 100'000
                               : Chance(.6)
                                   ? 1
                                   : static_cast<int32_t>(LogUniform(2, 50)),
                      .load = Digits(LogUniform(.3, std::min(20., most)))};
    hog.cls = random_.Below(s_.classes.size());
    hog.from = Digits(s_.length() / 10);
    s_.clients.hogs = {hog};
    Trait(strangers ? "strangers" : "hogs");
  }

  // Nearly nobody comes for a long time; then somebody does.
  void DrawIdle() {
    const double idle = LogUniform(300, 4 * 3600);
    const double rate = std::min(LogUniform(1. / 60, 5), .05 * Capacity());
    AddConstant("idle", idle, rate / Capacity(), false);
    Stage& stage = tier().stages.back();
    const bool bimodal =
        stage.time.distribution == Span::Distribution::kBimodal;
    if (Chance(.5) && !bimodal) {
      // What little is asked for is quicker than the real thing.  The span
      // holds what is quick, and capacity follows from it.
      const Duration real = stage.time.mean;
      const double busy_capacity = Capacity();
      stage.time.mean = std::max(Seconds(ToSeconds(real) / LogUniform(3, 300)),
                                 Duration(100'000));
      tier().changes = {
          {.at = Now(), .stage = tier().stages.size() - 1, .time = real}};
      factor_ = busy_capacity / Capacity();
      s_.phases.back().load = Digits(s_.phases.back().load * factor_);
      Trait("quick while idle");
      const double length = IdleLength(busy_capacity, real);
      AddIdleEnd(length, busy_capacity);
      factor_ = 1;
    } else {
      AddIdleEnd(Length() * 1.5, Capacity());
    }
    Trait("idle first");
  }
  // As Length(), of the service as it will be.
  double IdleLength(double capacity, Duration real) {
    return std::max({3., 15 * (MeanLatency() + ToSeconds(real)),
                     4 * ToSeconds(s_.deadline), 400 / capacity}) *
           LogUniform(1, 3);
  }
  void AddIdleEnd(double length, double capacity) {
    double load = Uniform(.2, .9);
    if (Chance(.4)) {
      const double most =
          std::min(30., kMostAttempts / (capacity * length * Retried()));
      load = most <= 1.15 ? 1.15 : LogUniform(1.15, most);
    }
    AddConstant("busy", length, load * factor_);
  }

  void DrawDisturbance() {
    const double load = Chance(.75) ? Uniform(.2, .9) : Uniform(1.1, 2.5);
    AddConstant("before", Length(), load, false);
    const Duration from = Now();
    const double length = Length() * LogUniform(.3, 2);
    AddConstant("disturbed", length, load);
    const Duration until = Now();
    using scenario::Change;
    switch (Pick({.22, .1, .22, .16, .18, .12})) {
      case 0: {
        const double speed = Digits(LogUniform(.04, .8));
        const Duration over = Chance(.3) ? Seconds(length * .3) : Duration{};
        tier().changes = {{.at = from, .over = over, .speed = speed},
                          {.at = until, .speed = 1}};
        Trait("slow for a while");
        break;
      }
      case 1: {
        const auto left =
            static_cast<int32_t>(tier().workers * Uniform(.05, .8) + .5);
        tier().changes = {{.at = from, .workers = std::max(left, 1)},
                          {.at = until, .workers = tier().workers}};
        Trait("fewer workers");
        break;
      }
      case 2: {
        // A dependency that answers at once, then slowly or not at all.
        Stage dependency{.name = "dependency",
                         .kind = Stage::Kind::kIo,
                         .time = {.mean = Seconds(LogUniform(.0005, .01))}};
        if (Chance(.3)) dependency.ratio = Digits(Uniform(.1, .9));
        const double slow = LogUniform(.3 * ToSeconds(s_.deadline),
                                       20 * ToSeconds(s_.deadline));
        tier().changes = {
            {.at = from, .stage = tier().stages.size(), .time = Seconds(slow)},
            {.at = until,
             .stage = tier().stages.size(),
             .time = dependency.time.mean}};
        tier().stages.push_back(std::move(dependency));
        Trait("a dependency hangs");
        break;
      }
      case 3: {
        // Some fail: at once, late, or when all is done.
        scenario::Failure failure{
            .ratio = Chance(.4) ? 1 : Digits(Uniform(.05, .9)),
            .from = from,
            .until = until};
        switch (Pick({.4, .4, .2})) {
          case 0:
            failure.after = Seconds(LogUniform(.0002, .01));
            Trait("fails fast");
            break;
          case 1:
            failure.after =
                Seconds(ToSeconds(s_.deadline) * LogUniform(.3, 10));
            Trait("fails late");
            break;
          default:
            Trait("fails when done");
            break;
        }
        tier().failures = {failure};
        break;
      }
      case 4: {
        // Nothing moves, perhaps from the first moment.
        const double most = std::min(length, 40.);
        scenario::Pause pause{.length = Seconds(LogUniform(.1, 1) * most)};
        pause.first = Chance(.25) ? Duration{} : from;
        tier().pauses = {pause};
        Trait("stands still");
        break;
      }
      default: {
        // The mix or the cost moves, and stays.
        Trait("the mix moves");
        if (s_.routes.size() == 2 && Chance(.6)) {
          const double share = Digits(Uniform(.02, .95));
          s_.phases.back().mix = {share, Rest(1 - share)};
          AddAfter(load);
          for (Phase& phase : s_.phases) {
            if (&phase != &s_.phases[0]) phase.mix = s_.phases[1].mix;
          }
          return;
        }
        Stage& stage = tier().stages[0];
        if (stage.time.distribution == Span::Distribution::kBimodal) {
          tier().changes = {
              {.at = from, .slow_ratio = Digits(LogUniform(.003, .9))}};
        } else {
          tier().changes = {
              {.at = from,
               .time = Seconds(
                   ToSeconds(stage.time.mean) *
                   (Chance(.5) ? LogUniform(.1, .8) : LogUniform(1.2, 6)))}};
        }
        break;
      }
    }
    AddAfter(load);
  }

  void DrawGuard() {
    if (Chance(.4)) {
      // While anybody waits each worker looks at the shared line every few
      // milliseconds, which takes longer to play than all requests.
      // Chosen: a second for a run.
      constexpr double kMostWorkerSeconds = 3000;
      Duration busy = s_.length();
      for (const Phase& phase : s_.phases) {
        if (phase.name == "idle") busy -= phase.duration;
      }
      const double most = std::max(1., kMostWorkerSeconds / ToSeconds(busy));
      world_.guard_workers =
          static_cast<int>(std::min(LogUniform(2, 64) + .5, most));
    }
    world_.told_workers = Chance(.2);
  }

  void Label() {
    const int32_t workers = tier().workers;
    Trait(workers == 1     ? "workers 1"
          : workers <= 5   ? "workers 2-5"
          : workers <= 20  ? "workers 6-20"
          : workers <= 100 ? "workers 21-100"
          : workers <= 500 ? "workers 101-500"
                           : "workers 501-5000");
    Trait(world_.guard_workers == 1   ? "guards 1"
          : world_.guard_workers <= 8 ? "guards 2-8"
                                      : "guards 9-64");
    Trait(world_.told_workers ? "told the workers" : "told nothing");
    const double latency = MeanLatency();
    Trait(latency < .01  ? "latency < 10 ms"
          : latency < .1 ? "latency < 100 ms"
          : latency < 1  ? "latency < 1 s"
                         : "latency 1 s up");
  }

  scenario::Random random_;
  World world_;
  Scenario s_;
  double factor_ = 1;
};

std::string Time(Duration time) {
  const double seconds = ToSeconds(time);
  return seconds < 1    ? fmt::format("{:.3g} ms", seconds * 1e3)
         : seconds < 90 ? fmt::format("{:.3g} s", seconds)
                        : fmt::format("{:.3g} min", seconds / 60);
}

std::string Time(const Span& span) {
  using enum Span::Distribution;
  switch (span.distribution) {
    case kConstant:
      return Time(span.mean);
    case kExponential:
      return Time(span.mean) + " exponential";
    case kUniform:
      return Time(span.mean) + " uniform";
    case kLognormal:
      return fmt::format("{} lognormal {:.2g}", Time(span.mean), span.sigma);
    case kBimodal:
      return fmt::format("{} or ({:.3g}) {}", Time(span.fast), span.slow_ratio,
                         Time(span.slow));
  }
  return "";
}

std::string Load(const Phase& phase) {
  using enum Phase::Shape;
  switch (phase.shape) {
    case kConstant:
      return fmt::format("{:.3g}", phase.load);
    case kRamp:
      return fmt::format("{:.3g} to {:.3g}", phase.load, phase.to);
    case kSquare:
    case kBursts:
      return fmt::format("{:.3g}, {} of {:.3g} {} {}", phase.load,
                         Time(phase.peak_for), phase.to,
                         phase.shape == kSquare ? "each" : "about each",
                         Time(phase.every));
  }
  return "";
}

}  // namespace

bool Playable(const Scenario& scenario) {
  const double attempts = ExpectedAttempts(scenario);
  return attempts <= kMostAttempts && attempts >= kLeastAttempts;
}

bool Finish(World& world) {
  world.text = scenario::ToToml(world.scenario);
  auto read = scenario::ParseScenario(world.text, world.scenario.name);
  if (read) world.scenario = *std::move(read);
  return static_cast<bool>(read);
}

World DrawWorld(uint64_t seed) { return Drawer(seed).Draw(seed); }

std::string Describe(const World& world) {
  const Scenario& s = world.scenario;
  const scenario::Tier& tier = s.tiers[0];
  std::string out = fmt::format("{} x", tier.workers);
  for (const Stage& stage : tier.stages) {
    using enum Stage::Kind;
    out += &stage == &tier.stages[0] ? " " : " + ";
    if (stage.route) {
      out += fmt::format("({}, {:.2g}: ", s.routes[*stage.route].name,
                         s.routes[*stage.route].share);
    }
    if (stage.kind == kIo) out += "io ";
    if (stage.kind == kLock) out += "lock ";
    if (stage.kind == kPool) out += fmt::format("pool of {} ", stage.size);
    out += Time(stage.time);
    if (stage.route) out += ")";
  }
  if (tier.discipline == scenario::Discipline::kSharing) out += ", sharing";
  out += fmt::format("; deadline {}", Time(s.deadline));
  if (s.timeout > s.deadline)
    out += fmt::format(", timeout {}", Time(s.timeout));
  if (s.seat == scenario::Seat::kProxy) {
    out += s.proxy_timeout ? fmt::format(", proxy gives up after {}",
                                         Time(*s.proxy_timeout))
                           : ", in a proxy";
  }
  if (s.retries.count > 0) out += fmt::format(", {} retries", s.retries.count);
  out += ";";
  const char* between = "";
  for (const Phase& phase : s.phases) {
    if (phase.name == "settling" || phase.name == kEnd) continue;
    out += fmt::format("{} {} {} of {}", between, phase.name,
                       Time(phase.duration), Load(phase));
    if (!phase.mix.empty() && phase.name == "disturbed") {
      out += fmt::format(" with {} {:.2g}", s.routes[0].name, phase.mix[0]);
    }
    between = ",";
  }
  for (const scenario::Change& change : tier.changes) {
    out += fmt::format("; at {}:", Time(change.at));
    if (change.speed) out += fmt::format(" speed {:.3g}", *change.speed);
    if (change.workers) out += fmt::format(" {} workers", *change.workers);
    if (change.time) {
      out += fmt::format(" {} {}", tier.stages[change.stage].name,
                         Time(*change.time));
    }
    if (change.slow_ratio)
      out += fmt::format(" slow {:.3g}", *change.slow_ratio);
  }
  for (const scenario::Pause& pause : tier.pauses) {
    out += pause.every > Duration{}
               ? fmt::format("; pauses {} each {}", Time(pause.length),
                             Time(pause.every))
               : fmt::format("; stands still for {} at {}", Time(pause.length),
                             Time(pause.first));
  }
  for (const scenario::Failure& failure : tier.failures) {
    out += fmt::format(
        "; at {}: {:.3g} fail {}", Time(failure.from), failure.ratio,
        failure.after ? "after " + Time(*failure.after) : "when done");
  }
  for (const scenario::Hog& hog : s.clients.hogs) {
    out += fmt::format("; {} hogs of {:.3g}", hog.count, hog.load);
  }
  if (world.guard_workers > 1) {
    out += fmt::format("; {} guard workers", world.guard_workers);
  }
  if (world.told_workers) out += "; told";
  return out;
}

}  // namespace weir::hunt
