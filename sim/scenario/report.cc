#include "weir/scenario/report.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace weir::scenario {
namespace {

// Keys in the order in which they are written.
using Json = nlohmann::ordered_json;

double Milliseconds(Duration d) {
  return std::round(ToSeconds(d) * 1e6) / 1e3;  // To the microsecond.
}

double Rounded(double ratio) { return std::round(ratio * 1e6) / 1e6; }

Json Milliseconds(const std::optional<Duration>& d) {
  return d ? Json(Milliseconds(*d)) : Json(nullptr);
}

double PerOffered(uint64_t part, const Figures& figures) {
  if (figures.offered == 0) return 0;
  return static_cast<double>(part) / static_cast<double>(figures.offered);
}

struct NamedMetric {
  std::string_view name;
  std::optional<double> (*get)(const Figures&);
};

constexpr std::array kMetrics = {
    NamedMetric{"offered",
                [](const Figures& f) -> std::optional<double> {
                  return static_cast<double>(f.offered);
                }},
    NamedMetric{"good",
                [](const Figures& f) -> std::optional<double> {
                  return static_cast<double>(f.good);
                }},
    NamedMetric{"late",
                [](const Figures& f) -> std::optional<double> {
                  return static_cast<double>(f.late);
                }},
    NamedMetric{"shed",
                [](const Figures& f) -> std::optional<double> {
                  return static_cast<double>(f.shed);
                }},
    NamedMetric{"failed",
                [](const Figures& f) -> std::optional<double> {
                  return static_cast<double>(f.failed);
                }},
    NamedMetric{"good_ratio",
                [](const Figures& f) -> std::optional<double> {
                  return PerOffered(f.good, f);
                }},
    NamedMetric{"shed_ratio",
                [](const Figures& f) -> std::optional<double> {
                  return PerOffered(f.shed, f);
                }},
    NamedMetric{"goodput_ratio",
                [](const Figures& f) -> std::optional<double> {
                  return f.goodput_ratio;
                }},
    NamedMetric{
        "work_ratio",
        [](const Figures& f) -> std::optional<double> { return f.work_ratio; }},
    NamedMetric{"false_shed_ratio",
                [](const Figures& f) -> std::optional<double> {
                  return f.false_shed_ratio;
                }},
    NamedMetric{"latency_p50_ms",
                [](const Figures& f) -> std::optional<double> {
                  return Milliseconds(f.p50);
                }},
    NamedMetric{"latency_p99_ms",
                [](const Figures& f) -> std::optional<double> {
                  return Milliseconds(f.p99);
                }},
    NamedMetric{"latency_p999_ms",
                [](const Figures& f) -> std::optional<double> {
                  return Milliseconds(f.p999);
                }},
    NamedMetric{"converge_ms",
                [](const Figures& f) -> std::optional<double> {
                  if (!f.converge) return std::nullopt;
                  return Milliseconds(*f.converge);
                }},
    NamedMetric{"recover_ms",
                [](const Figures& f) -> std::optional<double> {
                  if (!f.recover) return std::nullopt;
                  return Milliseconds(*f.recover);
                }},
    NamedMetric{"amplification",
                [](const Figures& f) -> std::optional<double> {
                  return f.offered == 0 ? 1 : PerOffered(f.attempts, f);
                }},
};

const NamedMetric* FindMetric(std::string_view name) {
  for (const NamedMetric& metric : kMetrics) {
    if (metric.name == name) return &metric;
  }
  return nullptr;
}

struct NamedMetricOfRun {
  std::string_view name;
  std::optional<double> Report::*member;
};

constexpr std::array kMetricsOfRun = {
    NamedMetricOfRun{"wasted_ratio", &Report::wasted_ratio},
    NamedMetricOfRun{"fairness", &Report::fairness},
    NamedMetricOfRun{"others_good_ratio", &Report::others_good_ratio},
    NamedMetricOfRun{"inversions_per_1000", &Report::inversions_per_1000},
    NamedMetricOfRun{"unsteadiness", &Report::unsteadiness},
};

const NamedMetricOfRun* FindMetricOfRun(std::string_view name) {
  for (const NamedMetricOfRun& metric : kMetricsOfRun) {
    if (metric.name == name) return &metric;
  }
  return nullptr;
}

void AddCounts(Json& json, const Figures& figures) {
  json["offered"] = figures.offered;
  json["good"] = figures.good;
  json["late"] = figures.late;
  json["shed"] = figures.shed;
  json["failed"] = figures.failed;
  json["goodput_ratio"] = Rounded(figures.goodput_ratio);
}

void AddLatency(Json& json, const Figures& figures) {
  json["latency_ms"] = {{"p50", Milliseconds(figures.p50)},
                        {"p99", Milliseconds(figures.p99)},
                        {"p999", Milliseconds(figures.p999)}};
}

void AddFigures(Json& json, const Figures& figures) {
  AddCounts(json, figures);
  json["work_ratio"] = Rounded(figures.work_ratio);
  json["false_shed_ratio"] = Rounded(figures.false_shed_ratio);
  AddLatency(json, figures);
  json["converge_ms"] = Milliseconds(figures.converge);
  json["recover_ms"] = Milliseconds(figures.recover);
}

const Figures* FindFigures(const Report& report, const Bound& bound) {
  if (bound.scope == Bound::Scope::kAll) return &report.all;
  const auto& list =
      bound.scope == Bound::Scope::kPhase ? report.phases : report.classes;
  for (const Figures& figures : list) {
    if (figures.name == bound.of) return &figures;
  }
  return nullptr;
}

}  // namespace

double Report::amplification() const {
  return all.offered == 0 ? 1 : PerOffered(all.attempts, all);
}

bool IsMetric(std::string_view name) { return FindMetric(name) != nullptr; }

std::optional<double> Metric(const Figures& figures, std::string_view name) {
  const NamedMetric* metric = FindMetric(name);
  return metric != nullptr ? metric->get(figures) : std::nullopt;
}

bool IsMetricOfRun(std::string_view name) {
  return FindMetricOfRun(name) != nullptr;
}

std::optional<double> ValueOf(const Report& report, const Bound& bound) {
  if (const NamedMetricOfRun* metric = FindMetricOfRun(bound.metric)) {
    return report.*metric->member;
  }
  const Figures* figures = FindFigures(report, bound);
  return figures != nullptr ? Metric(*figures, bound.metric) : std::nullopt;
}

std::string NameOf(const Bound& bound) {
  return bound.scope == Bound::Scope::kAll
             ? bound.metric
             : fmt::format("{} of {}", bound.metric, bound.of);
}

std::vector<std::string> BrokenBounds(const Scenario& scenario,
                                      const Report& report) {
  std::vector<std::string> broken;
  for (const Bound& bound : scenario.bounds) {
    const std::optional<double> got = ValueOf(report, bound);
    const std::string where = NameOf(bound);
    if (!got) {
      broken.push_back(fmt::format("{} has no value in this run", where));
      continue;
    }
    const double value = *got;
    const auto expect = [&](std::string_view at, double edge) {
      broken.push_back(fmt::format("{} is {:.6g}, expected at {} {:.6g}", where,
                                   value, at, edge));
    };
    // Written so that NaN breaks them.
    if (bound.min && !(value >= *bound.min)) expect("least", *bound.min);
    if (bound.max && !(value <= *bound.max)) expect("most", *bound.max);
  }
  return broken;
}

std::string ToJson(const Report& report) {
  Json json;
  json["scenario"] = report.scenario;
  json["seed"] = report.seed;
  AddFigures(json, report.all);
  json["amplification"] = Rounded(report.amplification());
  if (report.wasted_ratio) json["wasted_ratio"] = Rounded(*report.wasted_ratio);
  json["classes"] = Json::array();
  for (const Figures& figures : report.classes) {
    Json cls = {{"name", figures.name}};
    AddCounts(cls, figures);
    cls["good_ratio"] = Rounded(PerOffered(figures.good, figures));
    AddLatency(cls, figures);
    json["classes"].push_back(std::move(cls));
  }
  json["phases"] = Json::array();
  for (const Figures& figures : report.phases) {
    Json phase = {{"name", figures.name}};
    AddFigures(phase, figures);
    phase["amplification"] = Rounded(*Metric(figures, "amplification"));
    json["phases"].push_back(std::move(phase));
  }
  if (report.send_lag) {
    json["send_lag_ms"] = {{"p99", Milliseconds(report.send_lag->p99)},
                           {"max", Milliseconds(report.send_lag->max)}};
  }
  if (!report.answers.empty()) {
    json["answers"] = Json::array();
    for (const Answers& answers : report.answers) {
      json["answers"].push_back({{"route", answers.route},
                                 {"answer", answers.answer},
                                 {"count", answers.count}});
    }
  }
  if (report.stopped) json["stopped_ms"] = Milliseconds(*report.stopped);
  json["valid"] = report.invalid.empty();
  if (!report.invalid.empty()) json["invalid"] = report.invalid;
  return json.dump();
}

}  // namespace weir::scenario
