#include "study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "figures.h"
#include "study_charts.h"
#include "style.h"
#include "text.h"
#include "weir/sim/standings.h"

namespace weir::sim_report {
namespace {

// Chosen: more lines than this cannot be followed.
constexpr size_t kMostDrawn = 6;
// The first, its best rival, and those that are wanted.
std::vector<size_t> Drawn(const Study& study,
                          const std::vector<std::string>& wanted) {
  std::vector<size_t> drawn;
  const auto add = [&](size_t i) {
    if (drawn.size() < kMostDrawn &&
        std::find(drawn.begin(), drawn.end(), i) == drawn.end()) {
      drawn.push_back(i);
    }
  };
  const auto& algorithms = study.algorithms;
  if (algorithms.empty()) return drawn;
  add(0);
  if (const auto rival = BestRival(algorithms)) add(*rival);
  for (const std::string& name : wanted) {
    for (size_t i = 0; i < algorithms.size(); ++i) {
      if (algorithms[i].name == name) add(i);
    }
  }
  if (algorithms.size() <= kMostDrawn) {
    for (size_t i = 0; i < algorithms.size(); ++i) add(i);
  }
  return drawn;
}

std::string CheckBox(const Algorithm& algorithm, const Look& look) {
  return fmt::format(
      "<label><input type=\"checkbox\" class=\"t{}\" autocomplete=\"off\"{}>"
      "{}{}</label>\n",
      look.index, look.drawn ? " checked" : "", Swatch(look.style),
      Escaped(algorithm.name));
}

// Which lines to draw.
std::string Picker(const Study& study, const std::vector<Look>& looks) {
  std::string drawn;
  std::string others;
  size_t count = 0;
  for (const size_t i : InOrder(looks)) {
    if (study.algorithms[i].series.good.empty()) continue;  // Has no line.
    (looks[i].drawn ? drawn : others) +=
        CheckBox(study.algorithms[i], looks[i]);
    count += !looks[i].drawn;
  }
  std::string html =
      "<fieldset class=\"pick\"><legend class=\"vh\">Drawn in the charts"
      "</legend>\n" +
      drawn;
  if (count > 0) {
    html += fmt::format(
        "<details><summary>{} more to draw</summary><div>\n{}</div>"
        "</details>\n",
        count, others);
  }
  return html + "</fieldset>\n";
}

std::string Facts(const Study& study) {
  std::string html;
  const auto add = [&](std::string_view name, const std::string& value) {
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", Escaped(name), value);
  };
  for (const auto& [name, value] : study.facts) add(name, Escaped(value));
  add(study.seeds.size() == 1 ? "Seed" : "Seeds", Ranges(study.seeds));
  if (!study.command.empty()) {
    add("To repeat", "<pre><code>" + Escaped(study.command) + "</code></pre>");
  }
  return "<dl>\n" + html + "</dl>\n";
}

std::string Goals(const Study& study) {
  if (study.goals.empty() || study.algorithms.empty()) return {};
  std::string html;
  const auto& at_goals = study.algorithms[0].at_goals;
  for (size_t g = 0; g < study.goals.size(); ++g) {
    const Goal& goal = study.goals[g];
    const auto value = g < at_goals.size() ? at_goals[g] : std::nullopt;
    html += fmt::format(
        "<li>{}, {} {:.6g}: {}, <strong>{}</strong></li>\n", Escaped(goal.name),
        goal.at_least ? "at least" : "at most", goal.value,
        value ? fmt::format("{:.4g}", value->median) : "no value",
        Met(goal, value) ? "met" : "missed");
  }
  return fmt::format(
      "<details class=\"goals\"><summary>Goals of {}</summary>"
      "<ul>\n{}</ul></details>\n",
      Escaped(study.algorithms[0].name), html);
}

std::string Broken(const Study& study) {
  std::string html;
  for (const Algorithm& algorithm : study.algorithms) {
    for (const std::string& bound : algorithm.broken) {
      html += fmt::format("<li>{}: {}</li>\n", Escaped(algorithm.name),
                          Escaped(bound));
    }
  }
  if (html.empty()) return html;
  return "<p><strong>Bounds of the scenario that were broken</strong></p>\n"
         "<ul>\n" +
         html + "</ul>\n";
}

// "weir 99.4 %, p99 62 ms".
std::string Result(const Algorithm& algorithm) {
  const std::optional<Spread> p99 = FigureOf(algorithm, "latency_p99_ms");
  const std::optional<Spread> work = FigureOf(algorithm, kWork);
  std::string html = Escaped(algorithm.name) + " " +
                     Percent(work ? std::optional(work->median) : std::nullopt);
  if (p99) {
    html +=
        ", p99 <span class=\"num\">" + OfMilliseconds(p99->median) + "</span>";
  }
  return html;
}

}  // namespace

Looks::Looks(const Page& page) : wanted_(page.drawn) {
  // The names that are drawn most come first: they get the plainest styles.
  std::map<std::string, size_t> drawn;
  std::vector<std::string> names;
  for (const Study& study : page.studies) {
    for (const Algorithm& algorithm : study.algorithms) {
      if (drawn.try_emplace(algorithm.name, 0).second) {
        names.push_back(algorithm.name);
      }
    }
    for (const size_t i : Drawn(study, wanted_)) {
      ++drawn[study.algorithms[i].name];
    }
  }
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string& a, const std::string& b) {
                     return drawn[a] > drawn[b];
                   });
  // What the page is about comes first whatever else is drawn as often.
  if (!page.studies.empty() && !page.studies[0].algorithms.empty()) {
    const auto first = std::find(names.begin(), names.end(),
                                 page.studies[0].algorithms[0].name);
    std::rotate(names.begin(), first, first + 1);
  }
  for (size_t i = 0; i < names.size(); ++i) {
    by_name_[names[i]] = {.index = i, .style = i % kStyles};
  }
}

std::vector<Look> Looks::Of(const Study& study) const {
  std::vector<Look> looks;
  for (const Algorithm& algorithm : study.algorithms) {
    looks.push_back(by_name_.at(algorithm.name));
  }
  for (const size_t i : Drawn(study, wanted_)) looks[i].drawn = true;
  return looks;
}

size_t Looks::StyleOf(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? kPlainStyle : found->second.style;
}

std::string Verdict(const Study& study) {
  if (study.algorithms.empty()) return {};
  std::string html = Result(study.algorithms[0]);
  if (const auto rival = BestRival(study.algorithms)) {
    html += "; best rival " + Result(study.algorithms[*rival]);
  }
  return html;
}

std::string StudySection(const Study& study, const Looks& looks,
                         const std::string& id, bool only) {
  const std::vector<Look> own = looks.Of(study);
  std::string html =
      only ? fmt::format("<section class=\"study only\" id=\"{}\">\n", id)
           : fmt::format(
                 "<details class=\"study\" id=\"{}\">\n<summary><h2>{}</h2>"
                 "<p class=\"dim\">{}</p></summary>\n",
                 id, Escaped(study.name), Verdict(study));
  html += "<div class=\"body\">\n";
  if (!study.description.empty()) {
    html += fmt::format("<p>{}</p>\n", Escaped(study.description));
  }
  html += Facts(study) + FiguresTable(study) + Goals(study) + Broken(study);
  const StudyCharts charts(study, own);
  if (!charts.empty()) {
    html += "<h3>Over time</h3>\n";
    html += fmt::format(
        "<p class=\"dim\">Under seed {}. Dotted lines: where phases begin."
        "</p>\n",
        study.seeds.empty() ? 0 : study.seeds[0]);
    html += Picker(study, own) + "<div class=\"charts\">\n" + charts.Offered() +
            charts.Goodput() + charts.Latency() + charts.Limit() +
            charts.Waiting() + charts.Sheds() + "</div>\n" +
            charts.WithoutSheds();
  }
  return html + (only ? "</div></section>\n" : "</div></details>\n");
}

}  // namespace weir::sim_report
