#include "weir/sim/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "chart.h"
#include "weir/sim/study.h"

namespace weir::sim {

namespace {

// More lines than these cannot be told apart.
constexpr size_t kMostLines = 6;
constexpr size_t kIdealStyle = 7;

// Colours: Okabe and Ito, which those who cannot tell red from green can.
constexpr std::string_view kHead = R"(<!doctype html>
<html lang=en><meta charset=utf-8>
<meta name=viewport content="width=device-width,initial-scale=1">
<title>weir sim</title>
<style>
:root{color-scheme:light dark;--bg:#fff;--fg:#1a1a1a;--dim:#5c5c5c;--grid:#e2e2e2;
--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#a6528a;--c4:#b07800;--c5:#3f8fc4;--c6:#444;--c7:#8a8a8a}
@media(prefers-color-scheme:dark){:root{--bg:#16181b;--fg:#e8e8e8;--dim:#a0a0a0;--grid:#33363a;
--c0:#56b4e9;--c1:#f08a3c;--c2:#2fc79a;--c3:#e29ac4;--c4:#e69f00;--c5:#8ec8f0;--c6:#ccc;--c7:#8f8f8f}}
body{margin:0 auto;padding:1rem;max-width:64rem;background:var(--bg);color:var(--fg);
font:16px/1.45 system-ui,sans-serif}
h1{font-size:1.5rem}h2{font-size:1.2rem;margin:2.2rem 0 .2rem}p{margin:.3rem 0}
code{font-size:.85em;overflow-wrap:anywhere}.dim{color:var(--dim)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:.8rem 1.2rem}
figure{margin:.4rem 0;break-inside:avoid}figcaption{font-weight:600}
figcaption span{font-weight:400;color:var(--dim);margin-left:.5em}
figure>svg{width:100%;height:auto;display:block}
svg text{font:11px system-ui,sans-serif;fill:var(--dim)}.y{text-anchor:end}.x{text-anchor:middle}
.grid{stroke:var(--grid);fill:none}.mark{stroke:var(--dim);stroke-dasharray:1 3;fill:none}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round}
.l0{stroke:var(--c0);stroke-width:2.4}.l1{stroke:var(--c1);stroke-dasharray:7 3}
.l2{stroke:var(--c2);stroke-dasharray:2 2}.l3{stroke:var(--c3);stroke-dasharray:9 3 2 3}
.l4{stroke:var(--c4);stroke-dasharray:4 2}.l5{stroke:var(--c5);stroke-dasharray:12 3}
.l6{stroke:var(--c6);stroke-dasharray:1 3}.l7{stroke:var(--c7);stroke-width:1.2}
.legend{font-size:.85rem;display:flex;flex-wrap:wrap;gap:.1rem .9rem}
.legend svg{width:28px;height:8px;margin-right:.35em;vertical-align:middle}
.table{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}
th,td{padding:.25rem .6rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--grid)}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:var(--bg)}
td.best{font-weight:700}td.best::before{content:"\2605\00a0"}small{color:var(--dim)}
@media print{body{max-width:none;font-size:11px}h2{break-after:avoid}section{break-before:page}
.charts{grid-template-columns:1fr 1fr}:root{--bg:#fff;--fg:#000}}
</style>
)";

struct Column {
  std::string_view title;
  std::string_view metric;
  double scale;
  int digits;
  bool more_is_better;
};
constexpr Column kColumns[] = {
    {"goodput", "work_ratio", 1, 3, true},
    {"p50 ms", "latency_p50_ms", 1, 1, false},
    {"p99 ms", "latency_p99_ms", 1, 0, false},
    {"p99.9 ms", "latency_p999_ms", 1, 0, false},
    {"false shed %", "false_shed_ratio", 100, 2, false},
    {"converge ms", "converge_ms", 1, 0, false},
    {"recover ms", "recover_ms", 1, 0, false},
    {"wasted %", "wasted_ratio", 100, 1, false},
    {"amplified", "amplification", 1, 2, false},
    {"fairness", "fairness", 1, 3, true},
    {"inversions /1000", "inversions_per_1000", 1, 1, false},
    {"unsteady", "unsteadiness", 1, 3, false},
};

// A latency is only good if the work was done: who does nothing is fast.
constexpr double kDidTheWork = 0.9;

std::string Table(const ReportedStudy& study) {
  const auto& results = *study.results;
  std::string html = "<div class=table><table><tr><th>algorithm";
  for (const Column& column : kColumns) {
    html += fmt::format("<th>{}", column.title);
  }
  std::vector<double> goodput;
  for (const auto& runs : results) {
    goodput.push_back(SpreadOf(runs, "work_ratio").value_or(Spread{}).median);
  }
  std::vector<std::string> shown(results.size());
  for (size_t a = 0; a < results.size(); ++a) {
    shown[a] = "<tr><td>" + Escaped(study.algorithms[a]);
  }
  for (const Column& column : kColumns) {
    std::vector<std::optional<Spread>> cells;
    double best = column.more_is_better
                      ? -std::numeric_limits<double>::infinity()
                      : std::numeric_limits<double>::infinity();
    const auto rounded = [&](double value) {
      const double unit = std::pow(10, column.digits);
      return std::round(value * column.scale * unit);
    };
    for (size_t a = 0; a < results.size(); ++a) {
      cells.push_back(SpreadOf(results[a], column.metric));
      if (!cells[a] || goodput[a] < kDidTheWork) continue;
      best = column.more_is_better ? std::max(best, rounded(cells[a]->median))
                                   : std::min(best, rounded(cells[a]->median));
    }
    for (size_t a = 0; a < results.size(); ++a) {
      if (!cells[a]) {
        shown[a] += "<td>–";
        continue;
      }
      const Spread& cell = *cells[a];
      const bool is_best =
          goodput[a] >= kDidTheWork && rounded(cell.median) == best;
      const double worst = column.more_is_better ? cell.least : cell.most;
      shown[a] += fmt::format("<td{}>{:.{}f}", is_best ? " class=best" : "",
                              cell.median * column.scale, column.digits);
      if (rounded(worst) != rounded(cell.median)) {
        shown[a] += fmt::format(" <small>{:.{}f}</small>", worst * column.scale,
                                column.digits);
      }
    }
  }
  for (const std::string& row : shown) html += row;
  return html + "</table></div>\n";
}

double Milliseconds(Duration d) {
  return d == Duration{} ? std::numeric_limits<double>::quiet_NaN()
                         : ToSeconds(d) * 1e3;
}

Chart EmptyChart(const ReportedStudy& study) {
  Chart chart;
  for (const Bin& bin : (*study.results)[0][0].series) {
    chart.seconds.push_back(ToSeconds(bin.at));
  }
  for (size_t i = 0; i < study.scenario->phases.size(); ++i) {
    chart.marks.emplace_back(ToSeconds(study.scenario->PhaseStart(i)),
                             study.scenario->phases[i].name);
  }
  return chart;
}

void AddLine(Chart& chart, std::string name, size_t style,
             const std::vector<Bin>& series,
             const std::function<double(const Bin&)>& value) {
  ChartLine& line = chart.lines.emplace_back();
  line.name = std::move(name);
  line.style = style;
  for (const Bin& bin : series) line.values.push_back(value(bin));
}

void AddAlgorithms(Chart& chart, const ReportedStudy& study,
                   const std::function<double(const Bin&)>& value) {
  for (size_t a = 0; a < std::min(study.algorithms.size(), kMostLines); ++a) {
    AddLine(chart, study.algorithms[a], a, (*study.results)[a][0].series,
            value);
  }
}

std::string Charts(const ReportedStudy& study) {
  const std::vector<Bin>& first = (*study.results)[0][0].series;
  if (first.empty()) return {};
  double most_ideal = 0;
  double most_best = 0;
  for (const Bin& bin : first) {
    most_ideal = std::max(most_ideal, bin.ideal);
    most_best = std::max(most_best, bin.best_limit);
  }
  std::string html = "<div class=charts>";

  Chart goodput = EmptyChart(study);
  goodput.title = "Answered in time";
  goodput.unit = "requests/s; what is offered beyond is cut off";
  goodput.ceiling = 1.5 * most_ideal;
  AddAlgorithms(goodput, study, [](const Bin& bin) { return bin.good; });
  AddLine(goodput, "offered", 6, first,
          [](const Bin& bin) { return bin.offered; });
  AddLine(goodput, "ideal", kIdealStyle, first,
          [](const Bin& bin) { return bin.ideal; });
  html += ToSvg(goodput);

  Chart latency = EmptyChart(study);
  latency.title = "Latency, p99";
  latency.unit = "ms";
  latency.logarithmic = true;
  AddAlgorithms(latency, study,
                [](const Bin& bin) { return Milliseconds(bin.p99); });
  html += ToSvg(latency);

  Chart limit = EmptyChart(study);
  limit.title = "Limit";
  limit.unit = "requests running at once";
  limit.ceiling = 8 * most_best;
  AddAlgorithms(limit, study, [](const Bin& bin) {
    return bin.limit > 0 && bin.limit < 1e9
               ? bin.limit
               : std::numeric_limits<double>::quiet_NaN();
  });
  AddLine(limit, "needed", kIdealStyle, first,
          [](const Bin& bin) { return bin.best_limit; });
  html += ToSvg(limit);

  Chart waiting = EmptyChart(study);
  waiting.title = "Waiting before the service";
  waiting.unit = "requests";
  AddAlgorithms(waiting, study, [](const Bin& bin) {
    return static_cast<double>(bin.waiting);
  });
  html += ToSvg(waiting);

  Chart shed = EmptyChart(study);
  shed.title = "Shed by " + study.algorithms[0] + ", by class";
  shed.unit = "attempts/s";
  for (size_t cls = 0; cls < study.scenario->classes.size(); ++cls) {
    AddLine(shed, std::string(Name(study.scenario->classes[cls].criticality)),
            cls, first, [cls](const Bin& bin) { return bin.shed[cls]; });
  }
  html += ToSvg(shed);
  return html + "</div>\n";
}

}  // namespace

std::string HtmlReport(const std::vector<ReportedStudy>& studies) {
  std::string html(kHead);
  html +=
      "<h1>weir sim</h1>\n<p class=dim>Medians over the seeds, the worst "
      "beside them in small where it differs. Goodput is work done in "
      "time, as a share of what an oracle could have done. A star marks "
      "the best of those that did nine tenths of the work. Charts show "
      "the first seed.</p>\n";
  for (const ReportedStudy& study : studies) {
    const std::vector<Outcomes>& runs = study.results->front();
    html += fmt::format(
        "<section><h2>{}</h2><p>{}</p><p class=dim>{} seed{} from {}; "
        "<code>{}</code></p>\n",
        Escaped(study.scenario->name), Escaped(study.scenario->description),
        runs.size(), runs.size() == 1 ? "" : "s", runs.front().report.seed,
        Escaped(study.command));
    html += Table(study);
    html += Charts(study);
    html += "</section>\n";
  }
  return html + "</html>\n";
}

}  // namespace weir::sim
