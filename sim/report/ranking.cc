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

std::string StudyRow(const Study& study, const StudyStandings& standings,
                     const std::string& id) {
  const Algorithm& ours = study.algorithms[0];
  const Standing& own = standings.algorithms[0];
  const std::optional<Spread> vital = ours.class_good_ratio.size() < 2
                                          ? std::nullopt
                                          : ours.class_good_ratio[0];
  return fmt::format("<tr><th scope=\"row\"><a href=\"#{}\">{}</a></th>", id,
                     Escaped(study.name)) +
         ValueCell(FigureOf(ours, kWork), 100, 1) + RankCell(own.work) +
         BestCell(study, standings.most_work, kWork, 100, 1) +
         ValueCell(vital, 100, 1) + RankCell(own.vital) +
         ValueCell(FigureOf(ours, "latency_p99_ms"), 1, 0) + RankCell(own.p99) +
         BestCell(study, standings.lowest_p99, "latency_p99_ms", 1, 0) +
         fmt::format("<td class=\"gap\">{}</td><td>{}</td></tr>\n",
                     own.top ? "yes" : "no",
                     study.goals.empty() ? std::string(kDash)
                                         : fmt::format("{}/{}", own.goals_met,
                                                       study.goals.size()));
}

std::string StudiesTable(const Page& page, const Standings& standings) {
  const std::string name = Escaped(page.studies[0].algorithms[0].name);
  std::string html = fmt::format(
      "<table><caption><span>How {} stands, among {}. By p99 whoever did less "
      "than nine tenths of the most work comes last. In the top group is who "
      "did within a hundredth of the most work, with a p99 within a tenth of "
      "the lowest of those.</span></caption>\n<thead><tr>",
      name, standings.studies[0].competitors);
  html += Head("Scenario") + Head("work %", "gap") + Head("rank") +
          Head("most work", "name") +
          Head(page.studies[0].classes.empty()
                   ? "first class %"
                   : Escaped(page.studies[0].classes[0]) + " %",
               "gap") +
          Head("rank") + Head("p99 ms", "gap") + Head("rank") +
          Head("lowest p99", "name") + Head("top group", "gap") +
          Head("goals met") + "</tr></thead>\n<tbody>\n";
  for (size_t s = 0; s < page.studies.size(); ++s) {
    if (page.studies[s].algorithms.empty()) continue;
    html += StudyRow(page.studies[s], standings.studies[s], StudyId(s));
  }
  return Scrolled("Ranks by scenario", html + "</tbody></table>");
}

std::string PlacesTable(const Page& page, const Standings& standings) {
  const std::string& first = page.studies[0].algorithms[0].name;
  std::string html =
      "<table><caption><span>All of them over all scenarios, by the mean of "
      "their ranks.</span></caption>\n<thead><tr>" +
      Head("Algorithm") + Head("mean rank") + Head("top group") +
      Head("goals met") + Head("median work %") + Head("least work %") +
      Head("in", "name") + "</tr></thead>\n<tbody>\n";
  for (const Place& place : standings.places) {
    html += fmt::format(
        "<tr{}><th scope=\"row\">{}</th><td>{:.1f}</td><td>{}/{}</td>"
        "<td>{}/{}</td><td>{}</td><td>{}</td><td class=\"name\">{}</td></tr>\n",
        place.name == first ? " class=\"ours\"" : "", Escaped(place.name),
        place.mean_rank, place.top, place.studies, place.goals_met, place.goals,
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
