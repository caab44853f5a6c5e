#include "weir/sim/study.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "script.h"

namespace weir::sim {

namespace {

// The script of one seed, while runs under that seed are still to come.
class SharedScript {
 public:
  explicit SharedScript(size_t runs) : left_(runs) {}

  // For one run: to read, to write, or (while another one writes it) nothing.
  std::shared_ptr<Script> Take() {
    const std::lock_guard lock(mutex_);
    if (complete_) return script_;
    if (taken_ || left_ < 2) return nullptr;
    taken_ = true;
    return script_ = std::make_shared<Script>();
  }

  // The run that took `script` is over; the last one drops it.
  void Return(const Script* script) {
    const std::lock_guard lock(mutex_);
    complete_ = complete_ || (script != nullptr && script->complete());
    if (--left_ == 0) script_.reset();
  }

 private:
  std::mutex mutex_;
  size_t left_;
  bool taken_ = false;
  bool complete_ = false;
  std::shared_ptr<Script> script_;
};

}  // namespace

std::vector<std::vector<Outcomes>> RunStudy(
    const scenario::Scenario& scenario,
    const std::vector<Algorithm>& algorithms, const StudyOptions& options) {
  const size_t seeds = options.seeds.size();
  const size_t runs = algorithms.size() * seeds;
  std::vector<std::vector<Outcomes>> results(algorithms.size(),
                                             std::vector<Outcomes>(seeds));
  std::deque<SharedScript> scripts;
  for (size_t i = 0; i < seeds; ++i) scripts.emplace_back(algorithms.size());
  std::atomic<size_t> next = 0;
  // Each worker takes the next run and fills its place; runs under one seed
  // come together, so that few scripts are kept at a time.
  const auto work = [&] {
    for (size_t i = next++; i < runs; i = next++) {
      const size_t algorithm = i % algorithms.size();
      const size_t seed = i / algorithms.size();
      const std::shared_ptr<Script> script = scripts[seed].Take();
      RunOptions run{.seed = options.seeds[seed], .script = script.get()};
      if (seed == 0) run.bin = options.bin;
      if (i == 0) run.log = options.log;
      results[algorithm][seed] = Simulate(scenario, algorithms[algorithm], run);
      scripts[seed].Return(script.get());
      if (options.on_run) options.on_run();
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < options.threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return results;
}

std::optional<double> MetricOf(const Outcomes& run, std::string_view metric) {
  if (metric == "fairness") return run.fairness;
  if (metric == "inversions_per_1000") return run.inversions_per_1000;
  if (metric == "unsteadiness") return run.unsteadiness;
  if (metric == "wasted_ratio") return run.report.wasted_ratio;
  if (metric == "others_good_ratio") return run.others_good_ratio;
  return scenario::Metric(run.report.all, metric);
}

std::optional<Spread> SpreadOf(const std::vector<Outcomes>& runs,
                               std::string_view metric) {
  std::vector<double> values;
  for (const Outcomes& run : runs) {
    if (const auto value = MetricOf(run, metric)) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1
                            ? values[middle]
                            : (values[middle - 1] + values[middle]) / 2;
  return Spread{median, values.front(), values.back()};
}

}  // namespace weir::sim
