#include "ranking.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "figures.h"
#include "overview.h"
#include "text.h"
#include "weir/sim/standings.h"

namespace weir::sim_report {
namespace {

constexpr std::string_view kDash = "–";

std::string Head(std::string_view title, std::string_view cls = {}) {
  return fmt::format("<th scope=\"col\"{}>{}</th>",
                     cls.empty() ? "" : fmt::format(" class=\"{}\"", cls),
                     title);
}

// A rank; the first has a star.
std::string RankCell(size_t rank) {
  if (rank == 0) return fmt::format("<td>{}</td>", kDash);
  return fmt::format("<td{}>{}</td>", rank == 1 ? " class=\"best\"" : "", rank);
}

std::string ValueCell(const std::optional<Spread>& value, double scale,
                      int digits) {
  return fmt::format("<td class=\"gap\">{}</td>",
                     value ? Grouped(value->median * scale, digits) : "–");
}

std::string BestCell(const Study& study, std::optional<size_t> best,
                     std::string_view figure, double scale, int digits) {
  if (!best) return fmt::format("<td class=\"name\">{}</td>", kDash);
  const Algorithm& algorithm = study.algorithms[*best];
  const auto value = FigureOf(algorithm, figure);
  return fmt::format("<td class=\"name\">{} {}</td>",
                     value ? Grouped(value->median * scale, digits) : "–",
                     Escaped(algorithm.name));
}

std::optional<Spread> VitalOf(const Study& study) {
  if (study.algorithms.empty()) return std::nullopt;
  const auto& ratios = study.algorithms[0].class_good_ratio;
  return ratios.size() < 2 ? std::nullopt : ratios[0];
}

// What a table has columns for.
struct Shown {
  explicit Shown(const Page& page) {
    for (const Study& study : page.studies) {
      vital = vital || VitalOf(study);
      goals = goals || !study.goals.empty();
    }
  }
  bool vital = false;
  bool goals = false;
};

std::string GoalsCell(size_t met, size_t goals) {
  return fmt::format("<td>{}</td>", goals == 0
                                        ? std::string(kDash)
                                        : fmt::format("{}/{}", met, goals));
}

std::string StudyRow(const Study& study, const StudyStandings& standings,
                     const std::string& id, const Shown& shown) {
  const Algorithm& ours = study.algorithms[0];
  const Standing& own = standings.algorithms[0];
  std::string html =
      fmt::format("<tr><th scope=\"row\"><a href=\"#{}\">{}</a></th>", id,
                  Breakable(study.name)) +
      ValueCell(FigureOf(ours, kWork), 100, 1) + RankCell(own.work) +
      BestCell(study, standings.most_work, kWork, 100, 1);
  if (shown.vital) {
    html += ValueCell(VitalOf(study), 100, 1) + RankCell(own.vital);
  }
  html += ValueCell(FigureOf(ours, "latency_p99_ms"), 1, 0) +
          RankCell(own.p99) +
          BestCell(study, standings.lowest_p99, "latency_p99_ms", 1, 0) +
          fmt::format("<td class=\"gap\">{}</td>", own.top ? "yes" : "no");
  if (shown.goals) html += GoalsCell(own.goals_met, study.goals.size());
  return html + "</tr>\n";
}

std::string StudiesTable(const Page& page, const Standings& standings) {
  const std::string name = Escaped(page.studies[0].algorithms[0].name);
  std::string html = fmt::format(
      "<table><caption><span>How {} stands, among {}. By p99 whoever did less "
      "than nine tenths of the most work comes last. In the top group is who "
      "did within a hundredth of the most work, with a p99 within a tenth of "
      "the lowest of those.</span></caption>\n<thead><tr>",
      name, standings.studies[0].competitors);
  const Shown shown(page);
  html += Head("Scenario") + Head("work\u00a0%", "gap") + Head("rank") +
          Head("most work", "name");
  if (shown.vital) html += Head("first class\u00a0%", "gap") + Head("rank");
  html += Head("p99\u00a0ms", "gap") + Head("rank") +
          Head("lowest p99", "name") + Head("top group", "gap") +
          (shown.goals ? Head("goals met") : "") + "</tr></thead>\n<tbody>\n";
  for (size_t s = 0; s < page.studies.size(); ++s) {
    if (page.studies[s].algorithms.empty()) continue;
    html += StudyRow(page.studies[s], standings.studies[s], StudyId(s), shown);
  }
  return Scrolled("Ranks by scenario", html + "</tbody></table>");
}

std::string PlacesTable(const Page& page, const Standings& standings) {
  const std::string& first = page.studies[0].algorithms[0].name;
  const Shown shown(page);
  std::string html =
      "<table><caption><span>All of them over all scenarios, by the mean of "
      "their ranks.</span></caption>\n<thead><tr>" +
      Head("Algorithm") + Head("mean rank") + Head("top group") +
      (shown.goals ? Head("goals met") : "") + Head("median work\u00a0%") +
      Head("least work\u00a0%") + Head("in", "name") +
      "</tr></thead>\n<tbody>\n";
  for (const Place& place : standings.places) {
    html += fmt::format(
        "<tr{}><th scope=\"row\">{}</th><td>{:.1f}</td><td>{}/{}</td>{}"
        "<td>{}</td><td>{}</td><td class=\"name\">{}</td></tr>\n",
        place.name == first ? " class=\"ours\"" : "", Breakable(place.name),
        place.mean_rank, place.top, place.studies,
        shown.goals ? GoalsCell(place.goals_met, place.goals) : "",
        Grouped(place.median_work * 100, 1), Grouped(place.least_work * 100, 1),
        Escaped(place.worst_study));
  }
  return Scrolled("Ranks over all scenarios", html + "</tbody></table>");
}

}  // namespace

std::string Ranking(const Page& page) {
  if (page.studies.empty() || page.studies[0].algorithms.empty()) return {};
  const Standings standings = StandingsOf(page);
  return "<h2>Ranks</h2>\n" + StudiesTable(page, standings) +
         PlacesTable(page, standings);
}

}  // namespace weir::sim_report
