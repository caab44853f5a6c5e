#include "weir/sim/study.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace weir::sim {

std::vector<std::vector<Outcomes>> RunStudy(
    const scenario::Scenario& scenario,
    const std::vector<Algorithm>& algorithms, const StudyOptions& options) {
  const size_t seeds = options.seeds.size();
  const size_t runs = algorithms.size() * seeds;
  std::vector<std::vector<Outcomes>> results(algorithms.size(),
                                             std::vector<Outcomes>(seeds));
  std::atomic<size_t> next = 0;
  // Runs share nothing: each worker takes the next one and fills its place.
  const auto work = [&] {
    for (size_t i = next++; i < runs; i = next++) {
      const size_t algorithm = i / seeds;
      const size_t seed = i % seeds;
      RunOptions run{.seed = options.seeds[seed]};
      if (seed == 0) run.bin = options.bin;
      if (i == 0) run.log = options.log;
      results[algorithm][seed] = Simulate(scenario, algorithms[algorithm], run);
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
