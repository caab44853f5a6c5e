// Made-up pages for tests.

#ifndef WEIR_SIM_REPORT_SAMPLE_PAGE_H_
#define WEIR_SIM_REPORT_SAMPLE_PAGE_H_

#include <cmath>
#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "weir/sim/html_report.h"

namespace weir::sim_report {

// A scenario of `bins` steps, the middle third of them an overload, with
// algorithms a0, a1, ... whose work falls with their number.
inline Study SampleStudy(const std::string& name, size_t algorithms,
                         size_t bins, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  // The distributions of the library differ between its makers.
  const auto noise = [&] {
    return static_cast<double>(random() % 1000) / 1000;
  };
  Study study;
  study.name = name;
  study.description = "calm, three times too much, calm";
  study.facts = {{"Deadline", "500 ms"}};
  study.command = "weir sim " + name + ".toml --seeds 1-3";
  study.seeds = {1, 2, 3};
  study.classes = {"vital", "sheddable"};
  const double length = static_cast<double>(bins);
  study.phases = {{"calm", 0}, {"flood", length / 3}, {"after", length / 1.5}};
  study.deadline_ms = 500;
  for (size_t i = 0; i < bins; ++i) {
    const bool flood = i >= bins / 3 && i < 2 * bins / 3;
    study.offered.push_back(flood ? 3000 : 800);
    study.ideal.push_back(flood ? 1000 : 800);
    study.best_limit.push_back(20);
  }
  for (size_t a = 0; a < algorithms; ++a) {
    Algorithm algorithm;
    algorithm.name = "a" + std::to_string(a);
    algorithm.rival = a > 0;
    const double work = 1 - .02 * static_cast<double>(a);
    algorithm.figures = {
        {"work_ratio", {work, work - .01, work + .001}},
        {"latency_p50_ms", {20, 19, 22}},
        {"latency_p99_ms", {100 + 9. * static_cast<double>(a), 90, 250}},
        {"false_shed_ratio", {0, 0, 0}},
        {"amplification", {1, 1, 1}}};
    algorithm.class_good_ratio = {Spread{work, work, work}, Spread{.2, .2, .2}};
    Series& series = algorithm.series;
    series.shed.resize(2);
    for (size_t i = 0; i < bins; ++i) {
      const bool flood = study.offered[i] > 1000;
      series.good.push_back(study.ideal[i] * (work - .1 * noise()));
      series.p99_ms.push_back(90 + 100 * noise());
      series.limit.push_back(20 + std::floor(30 * noise()));
      series.waiting.push_back(flood ? std::floor(40 * noise()) : 0);
      series.shed[0].push_back(flood ? 10 * static_cast<double>(a) : 0);
      series.shed[1].push_back(flood ? 1990 + 20 * noise() : 0);
    }
    study.algorithms.push_back(std::move(algorithm));
  }
  return study;
}

inline Page SamplePage(size_t studies, size_t algorithms, size_t bins) {
  Page page;
  page.title = "weir against its rivals";
  page.drawn = {"a2"};
  for (size_t s = 0; s < studies; ++s) {
    page.studies.push_back(
        SampleStudy("s" + std::to_string(s), algorithms, bins, s + 1));
  }
  return page;
}

}  // namespace weir::sim_report

#endif  // WEIR_SIM_REPORT_SAMPLE_PAGE_H_
