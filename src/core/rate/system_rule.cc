#include "weir/rate/system_rule.h"

#include <algorithm>
#include <utility>

namespace weir {
namespace {

using Cause = SystemRule::Cause;

// Source of all: [SENTINEL] at d75a668: SAMPLE_COUNT, INTERVAL and
// csp.sentinel.statistic.max.rt.
constexpr uint64_t kWindowHalves = 2;
constexpr double kHalvesPerSecond = 2;
constexpr uint64_t kMostLatencyMs = 5000;

// Fewer completions make no mean of a half second.  Chosen: one odd request of
// so many moves it little.
constexpr uint64_t kLeastSamples = 8;

template <typename Word>
uint64_t ValueIn(const Word& word, uint64_t number) {
  const auto reading = word.Read(number);
  return reading.window == (number & Word::kNumbers) ? reading.value : 0;
}

template <typename Word>
void Add(Word& word, uint64_t number, uint64_t n) {
  word.Update(number, [n](uint64_t sum) { return std::optional(sum + n); });
}

bool IsThreshold(double value) { return value >= 0; }  // No NaN.

}  // namespace

std::string_view Name(Cause cause) {
  constexpr std::array<std::string_view, 7> kNames = {
      "none", "qps", "threads", "latency", "load", "cpu", "executor_load"};
  return kNames[static_cast<size_t>(cause)];
}

std::optional<Error> SystemRule::Check(const Config& c) {
  if (IsThreshold(c.qps) && IsThreshold(c.threads) &&
      IsThreshold(c.executor_load) && IsThreshold(c.latency_ms) &&
      IsThreshold(c.load) && IsThreshold(c.cpu_ratio)) {
    return std::nullopt;
  }
  return Error{"the thresholds of `system` must be numbers of 0 or more"};
}

int64_t SystemRule::Passed(uint64_t number) const {
  uint64_t sum = 0;
  for (uint64_t age = 0; age < kWindowHalves; ++age) {
    sum += ValueIn(Half(number - age).passed, number - age);
  }
  return static_cast<int64_t>(sum);
}

double SystemRule::BestOriginal(uint64_t number) const {
  uint64_t best = 1;
  for (uint64_t age = 0; age < kWindowHalves; ++age) {
    best = std::max(best, ValueIn(Half(number - age).completed, number - age));
  }
  return static_cast<double>(best) * kHalvesPerSecond;
}

double SystemRule::LeastOriginal(uint64_t number) const {
  uint64_t under = 0;  // By how much it is under the most.
  for (uint64_t age = 0; age < kWindowHalves; ++age) {
    under = std::max(under, ValueIn(Half(number - age).least_ms, number - age));
  }
  return static_cast<double>(std::max<uint64_t>(kMostLatencyMs - under, 1));
}

double SystemRule::MeanLatencyMs(uint64_t number) const {
  uint64_t count = 0;
  uint64_t sum = 0;
  for (uint64_t age = 0; age < kWindowHalves; ++age) {
    const Tally& half = Half(number - age);
    count += ValueIn(half.completed, number - age);
    sum += ValueIn(half.latency_ms, number - age);
  }
  if (count == 0) return 0;
  return static_cast<double>(sum) / static_cast<double>(count);
}

// Of the halves that are over.
double SystemRule::BestRobust(uint64_t number) const {
  uint64_t best = 1;
  for (uint64_t age = 1; age <= kHalves; ++age) {
    best = std::max(best, ValueIn(Half(number - age).completed, number - age));
  }
  return static_cast<double>(best) * kHalvesPerSecond;
}

double SystemRule::LeastRobust(uint64_t number) const {
  double least = SystemRule::Config::kOff;
  for (uint64_t age = 1; age <= kHalves; ++age) {
    const Tally& half = Half(number - age);
    const uint64_t count = ValueIn(half.learned, number - age);
    if (count < kLeastSamples) continue;
    const uint64_t sum = ValueIn(half.learned_us, number - age);
    least = std::min(
        least, static_cast<double>(sum) / 1000 / static_cast<double>(count));
  }
  if (least < SystemRule::Config::kOff) return least;
  return static_cast<double>(base_us_.load(std::memory_order_relaxed)) / 1000;
}

double SystemRule::Capacity(bool robust, uint64_t number) const {
  const double least = robust ? LeastRobust(number) : LeastOriginal(number);
  if (least <= 0) return Config::kOff;
  const double best = robust ? BestRobust(number) : BestOriginal(number);
  return best * least / 1000;
}

bool SystemRule::IsArmed(const Config& config, const Signals& signals) {
  return signals.recent_load > config.load ||
         signals.cpu_ratio > config.cpu_ratio;
}

Cause SystemRule::Peek(const Config& config, const Signals& signals,
                       int64_t inflight, Instant now) const {
  Worker none;
  return Judge(config, signals, inflight, none, WindowNumber(now, kHalf));
}

Cause SystemRule::Judge(const Config& config, const Signals& signals,
                        int64_t inflight, Worker& worker,
                        uint64_t number) const {
  const auto running = static_cast<double>(inflight);
  if (config
          .qps<Config::kOff&& static_cast<double>(
                   static_cast<int64_t>(Passed(number))) +
               1>
              config.qps) {
    return Cause::kQps;
  }
  if (config.robust ? running >= config.threads : running > config.threads) {
    return Cause::kThreads;
  }
  if (signals.executor_load > config.executor_load) {
    return Cause::kExecutorLoad;
  }
  if (config.latency_ms < Config::kOff) {
    if (worker.mean_latency_ms == kUnknown) {
      worker.mean_latency_ms = MeanLatencyMs(number);
    }
    if (worker.mean_latency_ms > config.latency_ms) return Cause::kLatency;
  }
  const auto fits = [&] {
    if (inflight <= 1) return true;
    if (worker.capacity == kUnknown) {
      worker.capacity = Capacity(config.robust, number);
    }
    return running <= worker.capacity;
  };
  const double load = config.robust ? signals.recent_load : signals.load;
  if (load > config.load && !fits()) return Cause::kLoad;
  if (signals.cpu_ratio > config.cpu_ratio && !(config.robust && fits())) {
    return Cause::kCpu;
  }
  return Cause::kNone;
}

SystemRule::Answer SystemRule::Admit(const Config& config,
                                     const Signals& signals, int64_t inflight,
                                     Worker& worker, Instant now) {
  if (worker.completed > 0 && now >= worker.write_at) Write(worker, now);
  if (now >= worker.figures_until) {
    worker.figures_until = now + std::min(kTick, WindowLeft(now, kHalf));
    worker.mean_latency_ms = worker.capacity = kUnknown;
  }
  const uint64_t number = WindowNumber(now, kHalf);
  Answer answer{Judge(config, signals, inflight, worker, number),
                static_cast<uint32_t>(number)};
  if (!answer.admitted()) return answer;
  // Counted only while there is room in this half: of two that race for the
  // last one the second is refused.
  const uint64_t before = ValueIn(Half(number - 1).passed, number - 1);
  bool full = false;
  const auto reading = Half(number).passed.Update(
      number, [&](uint64_t passed) -> std::optional<uint64_t> {
        full = static_cast<double>(before + passed) + 1 > config.qps;
        if (full) return std::nullopt;
        return passed + 1;
      });
  if (full) answer.cause = Cause::kQps;
  answer.window = static_cast<uint32_t>(reading.window);
  return answer;
}

void SystemRule::Complete(const Config& config, const Signals& signals,
                          Duration latency, bool teaches, Worker& worker,
                          Instant now) {
  const uint64_t number = WindowNumber(now, kHalf);
  if (worker.completed > 0 && worker.number != number) Write(worker, now);
  worker.number = number;
  // A difference of whole milliseconds, not whole milliseconds of a difference.
  const auto ms = [](Instant at) {
    return at.time_since_epoch() / std::chrono::milliseconds(1);
  };
  const auto took =
      static_cast<uint64_t>(std::max<int64_t>(ms(now) - ms(now - latency), 0));
  ++worker.completed;
  worker.latency_ms += took;
  if (took < kMostLatencyMs) {
    worker.least_ms = std::max(worker.least_ms, kMostLatencyMs - took);
  }
  if (config.robust && teaches &&
      (base_us_.load(std::memory_order_relaxed) == 0 ||
       !IsArmed(config, signals))) {
    ++worker.learned;
    worker.learned_us +=
        static_cast<uint64_t>(std::max<int64_t>(latency.count(), 0)) / 1000;
  }
  if (now >= worker.write_at) Write(worker, now);
}

void SystemRule::Write(Worker& worker, Instant now) {
  const Worker done = std::exchange(worker, {});
  worker.figures_until = done.figures_until;
  worker.mean_latency_ms = done.mean_latency_ms;
  worker.capacity = done.capacity;
  worker.write_at = now + kTick;
  // Older than that, its place is another half's by now.
  const uint64_t number = done.number;
  if (WindowNumber(now, kHalf) - number > kHalves) return;
  Tally& half = Half(number);
  Add(half.completed, number, done.completed);
  Add(half.latency_ms, number, done.latency_ms);
  half.least_ms.Update(number, [&](uint64_t under) -> std::optional<uint64_t> {
    if (done.least_ms <= under) return std::nullopt;
    return done.least_ms;
  });
  if (done.learned == 0) return;
  Add(half.learned_us, number, done.learned_us);
  const auto learned = half.learned.Update(
      number, [&](uint64_t n) { return std::optional(n + done.learned); });
  // The first of a half keeps what the finished ones say, for when they have
  // all passed out of sight.
  if (learned.value == 0) {
    const double least = LeastRobust(number);
    if (least > 0) {
      base_us_.store(std::max<uint64_t>(static_cast<uint64_t>(least * 1000), 1),
                     std::memory_order_relaxed);
    }
  }
}

SystemRule::Figures SystemRule::Read(bool robust, Instant now) const {
  const uint64_t number = WindowNumber(now, kHalf);
  Figures figures;
  figures.passed_per_s = static_cast<double>(Passed(number));
  figures.mean_latency_ms = MeanLatencyMs(number);
  figures.best_per_s = robust ? BestRobust(number) : BestOriginal(number);
  figures.least_latency_ms =
      robust ? LeastRobust(number) : LeastOriginal(number);
  return figures;
}

}  // namespace weir
