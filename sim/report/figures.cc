#include "figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "text.h"

namespace weir::sim_report {
namespace {

constexpr Column kColumns[] = {
    {"work_ratio", "Work", "% of ideal", 100, 1, true,
     "service time of the requests answered within their deadline, as a share "
     "of what an ideal that knows the capacity of every instant would have "
     "answered"},
    {"latency_p50_ms", "p50", "ms", 1, 1, false,
     "latency of what was admitted, from the intended start: the median"},
    {"latency_p99_ms", "p99", "ms", 1, 0, false, "of a hundred, the slowest"},
    {"latency_p999_ms", "p99.9", "ms", 1, 0, false,
     "of a thousand, the slowest"},
    {"false_shed_ratio", "False sheds", "%", 100, 2, false,
     "refused while the ideal refused nothing"},
    {"converge_ms", "Converge", "ms", 1, 0, false,
     "from the start of an overload until 95 % of the ideal's work is done in "
     "every second"},
    {"recover_ms", "Recover", "ms", 1, 0, false,
     "from the end of an overload until nothing is refused, late or failed any "
     "more"},
    {"wasted_ratio", "Wasted", "%", 100, 1, false,
     "service time spent on requests that were not answered in time"},
    {"amplification", "Attempts", "per request", 1, 2, false,
     "tries that reached the service for each request, retries included"},
    {"fairness", "Fairness", "0 to 1", 1, 3, true,
     "Jain's index over what the clients of a class got of their dues; of the "
     "classes the least"},
    {"others_good_ratio", "Others", "%", 100, 1, true,
     "answered in time for the clients that do not ask for too much"},
    {"inversions_per_1000", "Inversions", "per 1000", 1, 1, false,
     "admitted while a more critical request was refused in the same 50 ms"},
    {"unsteadiness", "Unsteady", "", 1, 3, false,
     "deviation over mean of the goodput of steps of 100 ms"},
};

constexpr double kDidTheWork = 0.9;
constexpr std::string_view kDash = "–";

double Rounded(double value, double scale, int digits) {
  return std::round(value * scale * std::pow(10, digits));
}

// A cell: the median, below it the worst seed where it reads differently.
std::string Cell(const std::optional<Spread>& value, const Column& column,
                 bool best) {
  if (!value) return fmt::format("<td>{}", kDash);
  const auto shown = [&](double x) {
    return Grouped(x * column.scale, column.digits);
  };
  std::string html =
      best ? "<td class=\"best\"><span class=\"vh\">best: </span>" : "<td>";
  html += shown(value->median);
  const std::string worst =
      shown(column.more_is_better ? value->least : value->most);
  if (worst != shown(value->median)) {
    html += fmt::format("<small>{}</small>", worst);
  }
  return html;
}

std::string Head(std::string_view title, std::string_view unit) {
  std::string html = fmt::format("<th scope=\"col\">{}", Escaped(title));
  if (!unit.empty()) html += fmt::format("<small>{}</small>", Escaped(unit));
  return html + "</th>";
}

// A column of the table: its head, and a cell for each algorithm.
struct Cells {
  std::string head;
  std::vector<std::string> cells;
};

Cells Fill(const Study& study, const Column& column,
           const std::vector<std::optional<Spread>>& values) {
  std::vector<std::optional<double>> medians;
  for (const auto& value : values) {
    medians.push_back(value ? std::optional(value->median) : std::nullopt);
  }
  const std::vector<bool> best =
      BestOf(medians, DidTheWork(study.algorithms), column.scale, column.digits,
             column.more_is_better);
  Cells filled{Head(column.title, column.unit), {}};
  for (size_t i = 0; i < values.size(); ++i) {
    filled.cells.push_back(Cell(values[i], column, best[i]) + "</td>");
  }
  return filled;
}

// Whether a figure says something: where nobody retries, the number of
// attempts does not.
bool Speaks(const Column& column,
            const std::vector<std::optional<Spread>>& values) {
  return std::any_of(values.begin(), values.end(), [&](const auto& value) {
    return value && !(column.figure == "amplification" && value->most <= 1);
  });
}

std::vector<std::optional<Spread>> ValuesOf(const Study& study,
                                            const Column& column) {
  std::vector<std::optional<Spread>> values;
  for (const Algorithm& algorithm : study.algorithms) {
    values.push_back(FigureOf(algorithm, column.figure));
  }
  return values;
}

std::vector<Cells> AllCells(const Study& study) {
  std::vector<Cells> columns;
  const auto add = [&](const Column& column,
                       const std::vector<std::optional<Spread>>& values) {
    if (Speaks(column, values)) columns.push_back(Fill(study, column, values));
  };
  for (const Column& column : kColumns) {
    add(column, ValuesOf(study, column));
    if (column.figure != kWork || study.classes.size() < 2) continue;
    // Next to the work done: what became of those that matter most.
    const Column vital = {"", study.classes[0], "% in time", 100, 1, true, ""};
    std::vector<std::optional<Spread>> values;
    for (const Algorithm& algorithm : study.algorithms) {
      values.push_back(algorithm.class_good_ratio.empty()
                           ? std::nullopt
                           : algorithm.class_good_ratio[0]);
    }
    add(vital, values);
  }
  return columns;
}

}  // namespace

std::span<const Column> Columns() { return kColumns; }

std::vector<std::string_view> Figures() {
  std::vector<std::string_view> names;
  for (const Column& column : kColumns) names.push_back(column.figure);
  return names;
}

std::optional<Spread> FigureOf(const Algorithm& algorithm,
                               std::string_view figure) {
  const auto found = algorithm.figures.find(figure);
  if (found == algorithm.figures.end() ||
      !std::isfinite(found->second.median)) {
    return std::nullopt;
  }
  return found->second;
}

double WorkOf(const Algorithm& algorithm) {
  const std::optional<Spread> work = FigureOf(algorithm, kWork);
  return work ? work->median : -1;
}

std::string Percent(std::optional<double> ratio) {
  if (!ratio || !std::isfinite(*ratio)) return std::string(kDash);
  return "<span class=\"num\">" + Grouped(*ratio * 100, 1) + " %</span>";
}

std::vector<bool> BestOf(const std::vector<std::optional<double>>& values,
                         const std::vector<bool>& eligible, double scale,
                         int digits, bool more_is_better) {
  std::optional<double> best;
  std::optional<double> worst;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) continue;
    const double value =
        Rounded(*values[i], more_is_better ? scale : -scale, digits);
    if (!worst || value < *worst) worst = value;
    if (eligible[i] && (!best || value > *best)) best = value;
  }
  std::vector<bool> marked(values.size());
  if (!best || *best == *worst) return marked;
  for (size_t i = 0; i < values.size(); ++i) {
    marked[i] =
        values[i] && eligible[i] &&
        Rounded(*values[i], more_is_better ? scale : -scale, digits) == *best;
  }
  return marked;
}

std::vector<bool> DidTheWork(const std::vector<Algorithm>& algorithms) {
  double most = 0;
  for (const Algorithm& algorithm : algorithms) {
    most = std::max(most, WorkOf(algorithm));
  }
  std::vector<bool> did;
  for (const Algorithm& algorithm : algorithms) {
    did.push_back(WorkOf(algorithm) >= kDidTheWork * most);
  }
  return did;
}

std::vector<size_t> ByWork(const std::vector<Algorithm>& algorithms) {
  std::vector<size_t> order(algorithms.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return WorkOf(algorithms[a]) > WorkOf(algorithms[b]);
  });
  return order;
}

std::optional<size_t> BestRival(const std::vector<Algorithm>& algorithms) {
  for (const size_t i : ByWork(algorithms)) {
    if (i > 0 && algorithms[i].rival) return i;
  }
  return std::nullopt;
}

std::string FiguresTable(const Study& study) {
  const std::vector<Cells> columns = AllCells(study);
  std::string html = fmt::format(
      "<table><caption><span>Medians over {} seed{}{}. A star marks the best "
      "of "
      "those "
      "that did nine tenths of the most work.</span></caption>\n"
      "<thead><tr><th scope=\"col\">Algorithm</th>",
      study.seeds.size(), study.seeds.size() == 1 ? "" : "s",
      study.seeds.size() == 1 ? "" : ", below them the worst seed");
  for (const Cells& column : columns) html += column.head;
  html += "</tr></thead>\n<tbody>\n";
  for (const size_t i : ByWork(study.algorithms)) {
    html += fmt::format("<tr{}><th scope=\"row\">{}</th>",
                        i == 0 ? " class=\"ours\"" : "",
                        Breakable(study.algorithms[i].name));
    for (const Cells& column : columns) html += column.cells[i];
    html += "</tr>\n";
  }
  return Scrolled("Figures of " + study.name, html + "</tbody></table>");
}

std::string Meanings(const Page& page) {
  std::string html;
  for (const Column& column : kColumns) {
    const bool shown = std::any_of(
        page.studies.begin(), page.studies.end(), [&](const Study& study) {
          return Speaks(column, ValuesOf(study, column));
        });
    if (!shown) continue;
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", Escaped(column.title),
                        Escaped(column.meaning));
  }
  return "<dl>" + html + "</dl>\n";
}

std::string Scrolled(std::string_view name, const std::string& table) {
  return fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" "
      "aria-label=\"{}\">{}</div>\n",
      Escaped(name), table);
}

}  // namespace weir::sim_report
