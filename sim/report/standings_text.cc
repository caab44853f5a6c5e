// Standings as text.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "figures.h"
#include "weir/sim/standings.h"

namespace weir::sim_report {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr std::string_view kNone = "-";

// The first column and those named in the head with a '<' to the left, the
// others to the right.
std::string Aligned(Rows rows) {
  std::vector<bool> left;
  std::vector<size_t> widths;
  for (size_t c = 0; c < rows[0].size(); ++c) {
    std::string& head = rows[0][c];
    left.push_back(c == 0 || head.starts_with('<'));
    if (head.starts_with('<')) head.erase(0, 1);
    size_t width = 0;
    for (const auto& row : rows) width = std::max(width, row[c].size());
    widths.push_back(width);
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      if (c > 0) line += "  ";
      line += left[c] ? fmt::format("{:<{}}", row[c], widths[c])
                      : fmt::format("{:>{}}", row[c], widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

// "99.4", with the worst seed behind it where it reads differently.
std::string Of(const std::optional<Spread>& value, double scale, int digits,
               bool more_is_better, bool worst) {
  if (!value) return std::string(kNone);
  const auto shown = [&](double x) {
    return fmt::format("{:.{}f}", x * scale, digits);
  };
  const std::string median = shown(value->median);
  const std::string least = shown(more_is_better ? value->least : value->most);
  return worst && least != median ? median + " (" + least + ")" : median;
}

std::optional<Spread> VitalOf(const Algorithm& algorithm) {
  const auto& ratios = algorithm.class_good_ratio;
  return ratios.size() < 2 ? std::nullopt : ratios[0];
}

std::string RankText(size_t rank) {
  return rank == 0 ? std::string(kNone) : std::to_string(rank);
}

std::string Starred(std::string text, bool best) {
  return best ? "*" + text : text;
}

std::string BestText(const Study& study, std::optional<size_t> best,
                     std::string_view figure, double scale, int digits,
                     bool more_is_better) {
  if (!best) return std::string(kNone);
  const Algorithm& algorithm = study.algorithms[*best];
  return fmt::format("{} {}",
                     Of(FigureOf(algorithm, figure), scale, digits,
                        more_is_better, /*worst=*/false),
                     algorithm.name);
}

std::string GoalsText(const Study& study, const Standing& standing) {
  return study.goals.empty()
             ? std::string(kNone)
             : fmt::format("{}/{}", standing.goals_met, study.goals.size());
}

// One row for each scenario.
std::string Summary(const Page& page, const Standings& standings) {
  Rows rows = {{"scenario", "work %", "rank", "<best", "vital %", "rank",
                "p99 ms", "rank", "<best", "false sheds %", "<top group",
                "goals"}};
  for (size_t s = 0; s < page.studies.size(); ++s) {
    const Study& study = page.studies[s];
    if (study.algorithms.empty()) continue;
    const StudyStandings& all = standings.studies[s];
    const Standing& own = all.algorithms[0];
    const Algorithm& ours = study.algorithms[0];
    rows.push_back(
        {study.name,
         Starred(Of(FigureOf(ours, kWork), 100, 1, true, true), own.work == 1),
         RankText(own.work),
         BestText(study, all.most_work, kWork, 100, 1, true),
         Starred(Of(VitalOf(ours), 100, 1, true, true), own.vital == 1),
         RankText(own.vital),
         Starred(Of(FigureOf(ours, "latency_p99_ms"), 1, 0, false, true),
                 own.p99 == 1),
         RankText(own.p99),
         BestText(study, all.lowest_p99, "latency_p99_ms", 1, 0, false),
         Of(FigureOf(ours, "false_shed_ratio"), 100, 2, false, true),
         own.top ? "yes" : "no", GoalsText(study, own)});
  }
  return Aligned(std::move(rows));
}

std::string Places(const Standings& standings) {
  Rows rows = {{"algorithm", "mean rank", "top group", "goals met",
                "median work %", "least work %", "<in"}};
  for (const Place& place : standings.places) {
    rows.push_back({place.name, fmt::format("{:.1f}", place.mean_rank),
                    fmt::format("{}/{}", place.top, place.studies),
                    fmt::format("{}/{}", place.goals_met, place.goals),
                    fmt::format("{:.1f}", place.median_work * 100),
                    fmt::format("{:.1f}", place.least_work * 100),
                    place.worst_study});
  }
  return Aligned(std::move(rows));
}

// The first, `most` others by work, and whatever a reader holds them against.
std::vector<size_t> Detailed(const Study& study, size_t most) {
  std::vector<size_t> shown;
  size_t others = 0;
  for (const size_t i : ByWork(study.algorithms)) {
    const Algorithm& algorithm = study.algorithms[i];
    const bool baseline = i == 0 || !algorithm.rival ||
                          algorithm.name == "none" || algorithm.name == "fixed";
    if (baseline || others++ < most) shown.push_back(i);
  }
  return shown;
}

std::string GoalLines(const Study& study) {
  std::string text;
  for (size_t g = 0; g < study.goals.size(); ++g) {
    const Goal& goal = study.goals[g];
    const auto& at_goals = study.algorithms[0].at_goals;
    const auto value = g < at_goals.size() ? at_goals[g] : std::nullopt;
    text += fmt::format(
        "  goal {} {} {:.6g}: {}{}\n", goal.name,
        goal.at_least ? ">=" : "<=", goal.value,
        value ? fmt::format("{:.4g} ({:.4g})", value->median,
                            goal.at_least ? value->least : value->most)
              : "no value",
        Met(goal, value) ? "" : ", missed");
  }
  return text;
}

std::string Detail(const Study& study, const StudyStandings& standings,
                   size_t most) {
  Rows rows(1);
  rows[0] = {"algorithm"};
  std::vector<const Column*> columns;
  for (const Column& column : Columns()) {
    if (std::any_of(study.algorithms.begin(), study.algorithms.end(),
                    [&](const Algorithm& algorithm) {
                      return FigureOf(algorithm, column.figure).has_value();
                    })) {
      columns.push_back(&column);
      rows[0].push_back(column.unit.empty()
                            ? std::string(column.title)
                            : fmt::format("{} {}", column.title, column.unit));
    }
  }
  rows[0].insert(rows[0].end(), {"vital %", "goals", "<bounds"});
  for (const size_t i : Detailed(study, most)) {
    const Algorithm& algorithm = study.algorithms[i];
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(algorithm.name);
    for (const Column* column : columns) {
      row.push_back(Of(FigureOf(algorithm, column->figure), column->scale,
                       column->digits, column->more_is_better, true));
    }
    row.push_back(Of(VitalOf(algorithm), 100, 1, true, true));
    row.push_back(GoalsText(study, standings.algorithms[i]));
    row.push_back(algorithm.seeds_broken == 0
                      ? "kept"
                      : fmt::format("broken under {} of {} seeds",
                                    algorithm.seeds_broken,
                                    study.seeds.size()));
  }
  return fmt::format("{}: {}\n", study.name, study.description) +
         Aligned(std::move(rows)) + GoalLines(study);
}

}  // namespace

std::string StandingsText(const Page& page, size_t most) {
  const Standings standings = StandingsOf(page);
  if (page.studies.empty() || page.studies[0].algorithms.empty()) return {};
  const Study& first = page.studies[0];
  std::string text = fmt::format(
      "{} scenario{}, {} and its competitors, {} of them; {} seed{}{}.\n"
      "A star marks what nobody did better; ranks are among the {}, by p99 "
      "among those that did nine tenths of the most work.\n\n",
      page.studies.size(), page.studies.size() == 1 ? "" : "s",
      first.algorithms[0].name, standings.studies[0].competitors - 1,
      first.seeds.size(), first.seeds.size() == 1 ? "" : "s",
      first.seeds.size() == 1 ? "" : ", medians (worst seed)",
      standings.studies[0].competitors);
  text += Summary(page, standings) + "\n" + Places(standings);
  for (size_t s = 0; s < page.studies.size(); ++s) {
    text += "\n" + Detail(page.studies[s], standings.studies[s], most);
  }
  return text;
}

}  // namespace weir::sim_report
