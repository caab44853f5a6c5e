#include "overview.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "figures.h"
#include "ranking.h"
#include "text.h"

namespace weir::sim_report {
namespace {

// What a table of all algorithms and all scenarios shows.
struct Measure {
  std::string_view title;
  std::string_view caption;
  std::optional<double> (*of)(const Algorithm&);  // Median over the seeds.
  double scale;
  int digits;
  bool more_is_better;
};

std::optional<double> MedianWork(const Algorithm& algorithm) {
  const auto work = FigureOf(algorithm, kWork);
  return work ? std::optional(work->median) : std::nullopt;
}

std::optional<double> MedianVital(const Algorithm& algorithm) {
  const auto& ratios = algorithm.class_good_ratio;
  if (ratios.size() < 2 || !ratios[0]) return std::nullopt;
  return ratios[0]->median;
}

std::optional<double> MedianP99(const Algorithm& algorithm) {
  const auto p99 = FigureOf(algorithm, "latency_p99_ms");
  return p99 ? std::optional(p99->median) : std::nullopt;
}

constexpr Measure kWorkMeasure = {
    "Work done in time",
    "Service time of what was answered in time, % of the "
    "ideal.",
    MedianWork,
    100,
    1,
    true};
constexpr Measure kVitalMeasure = {
    "The most critical class",
    "Requests of the most critical class answered "
    "in time, % of all of them.",
    MedianVital,
    100,
    1,
    true};
constexpr Measure kP99Measure = {
    "Latency, p99",
    "Of what was admitted, ms. Shaded by how much work was "
    "done, as above: who does nothing is fast.",
    MedianP99,
    1,
    0,
    false};

// Ratios from which on a cell has the class q0, q1, ...; below all: the last.
constexpr std::array<double, 4> kSteps = {.99, .95, .8, .5};

// An algorithm and its values in each study, none where it was not played.
struct Row {
  std::string name;
  std::vector<const Algorithm*> studies;
  double median = 0;  // Of its work, over the scenarios.
  double least = 0;
  std::string worst_study;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle]
                                : (values[middle - 1] + values[middle]) / 2;
}

// False when it has no figure of work.
bool Sum(const Page& page, Row& row) {
  std::vector<double> values;
  for (size_t s = 0; s < row.studies.size(); ++s) {
    if (row.studies[s] == nullptr) continue;
    const std::optional<double> work = MedianWork(*row.studies[s]);
    if (!work) continue;
    if (values.empty() || *work < row.least) {
      row.least = *work;
      row.worst_study = page.studies[s].name;
    }
    values.push_back(*work);
  }
  if (values.empty()) return false;
  row.median = Median(std::move(values));
  return true;
}

// The one whose worst scenario is best comes first, as that is what overload
// control is for; medians hardly differ.
std::vector<Row> Rows(const Page& page) {
  std::vector<Row> rows;
  for (size_t s = 0; s < page.studies.size(); ++s) {
    for (const Algorithm& algorithm : page.studies[s].algorithms) {
      auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& other) {
        return other.name == algorithm.name;
      });
      if (row == rows.end()) {
        row = rows.insert(row, {algorithm.name, {}, 0, 0, {}});
        row->studies.resize(page.studies.size());
      }
      row->studies[s] = &algorithm;
    }
  }
  std::erase_if(rows, [&](Row& row) { return !Sum(page, row); });
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::pair(a.least, a.median) > std::pair(b.least, b.median);
  });
  return rows;
}

std::optional<double> ValueOf(const Row& row, size_t study,
                              const Measure& measure) {
  const Algorithm* const algorithm = row.studies[study];
  return algorithm != nullptr ? measure.of(*algorithm) : std::nullopt;
}

bool IsRival(const Page& page, const std::string& name) {
  for (const Study& study : page.studies) {
    for (size_t i = 0; i < study.algorithms.size(); ++i) {
      if (study.algorithms[i].name == name) {
        return i > 0 && study.algorithms[i].rival;
      }
    }
  }
  return true;
}

const std::string* FirstName(const Page& page) {
  if (page.studies.empty() || page.studies[0].algorithms.empty()) {
    return nullptr;
  }
  return &page.studies[0].algorithms[0].name;
}

std::string Link(size_t study, const std::string& name) {
  return fmt::format("<a href=\"#{}\">{}</a>", StudyId(study), Breakable(name));
}

size_t Shade(double ratio) {
  size_t shade = 0;
  // As it is shown, to a tenth of a percent.
  while (shade < kSteps.size() &&
         std::round(ratio * 1000) < kSteps[shade] * 1000) {
    ++shade;
  }
  return shade;
}

std::string MatrixCell(const Row& row, size_t study, const Measure& measure,
                       bool best) {
  const std::optional<double> value = ValueOf(row, study, measure);
  if (!value) return "<td>–</td>";
  const std::optional<double> shading =
      measure.more_is_better ? value : ValueOf(row, study, kWorkMeasure);
  return fmt::format("<td class=\"q{}{}\">{}{}</td>",
                     Shade(shading.value_or(1)), best ? " best" : "",
                     best ? "<span class=\"vh\">best: </span>" : "",
                     Grouped(*value * measure.scale, measure.digits));
}

// Which of a study's cells are best.
std::vector<bool> BestCells(const Study& study, size_t s,
                            const std::vector<Row>& rows,
                            const Measure& measure) {
  const std::vector<bool> did_the_work = DidTheWork(study.algorithms);
  std::vector<std::optional<double>> values;
  std::vector<bool> eligible;
  for (const Row& row : rows) {
    values.push_back(ValueOf(row, s, measure));
    const Algorithm* const algorithm = row.studies[s];
    eligible.push_back(
        algorithm != nullptr &&
        did_the_work[static_cast<size_t>(algorithm - study.algorithms.data())]);
  }
  return BestOf(values, eligible, measure.scale, measure.digits,
                measure.more_is_better);
}

std::string Key() {
  std::string html = "<p class=\"chips\">";
  for (size_t i = 0; i <= kSteps.size(); ++i) {
    const std::string text = i < kSteps.size()
                                 ? fmt::format("from {:.0f} %", kSteps[i] * 100)
                                 : "less";
    html += fmt::format("<span class=\"key q{}\">{}</span>", i, text);
  }
  return html +
         "<span>\u2605 the best of its column, of those that did nine tenths "
         "of the most work</span></p>\n";
}

std::string Matrix(const Page& page, const std::vector<Row>& rows,
                   const Measure& measure) {
  // A scenario without a value has no column.
  std::vector<size_t> studies;
  std::vector<std::vector<bool>> best;
  for (size_t s = 0; s < page.studies.size(); ++s) {
    if (std::none_of(rows.begin(), rows.end(), [&](const Row& row) {
          return ValueOf(row, s, measure).has_value();
        })) {
      continue;
    }
    studies.push_back(s);
    best.push_back(BestCells(page.studies[s], s, rows, measure));
  }
  if (studies.empty()) return {};
  const std::string* const first = FirstName(page);
  const bool sums = measure.of == MedianWork;
  std::string html = fmt::format(
      "<h3>{0}</h3>\n<table class=\"matrix\"><caption><span>{1}</span>"
      "</caption>\n<thead><tr><th scope=\"col\">Algorithm</th>{2}",
      measure.title, measure.caption,
      sums ? "<th scope=\"col\">least</th><th scope=\"col\">median</th>" : "");
  for (const size_t s : studies) {
    html += "<th scope=\"col\">" + Link(s, page.studies[s].name) + "</th>";
  }
  html += "</tr></thead>\n<tbody>\n";
  for (size_t r = 0; r < rows.size(); ++r) {
    const Row& row = rows[r];
    html += fmt::format(
        "<tr{}><th scope=\"row\">{}</th>",
        first != nullptr && row.name == *first ? " class=\"ours\"" : "",
        Breakable(row.name));
    if (sums) {
      html += fmt::format("<td>{}</td><td>{}</td>", Grouped(row.least * 100, 1),
                          Grouped(row.median * 100, 1));
    }
    for (size_t i = 0; i < studies.size(); ++i) {
      html += MatrixCell(row, studies[i], measure, best[i][r]);
    }
    html += "</tr>\n";
  }
  return Scrolled(measure.title, html + "</tbody></table>");
}

// Work and p99 of one algorithm, two cells.
std::string Pair(const Algorithm* algorithm) {
  if (algorithm == nullptr) return "<td class=\"gap\">–</td><td>–</td>";
  const auto work = FigureOf(*algorithm, kWork);
  const auto p99 = FigureOf(*algorithm, "latency_p99_ms");
  return fmt::format("<td>{}</td><td>{}</td>",
                     work ? Grouped(work->median * 100, 1) : "–",
                     p99 ? OfMilliseconds(p99->median) : "–");
}

const Algorithm* Find(const Study& study, const std::string& name) {
  for (const Algorithm& algorithm : study.algorithms) {
    if (algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

// Those of page.drawn that were played and have no columns yet.
std::vector<std::string> Wanted(const Page& page, const std::string* first) {
  std::vector<std::string> wanted;
  for (const std::string& name : page.drawn) {
    const bool played = std::any_of(
        page.studies.begin(), page.studies.end(),
        [&](const Study& study) { return Find(study, name) != nullptr; });
    if (played && (first == nullptr || name != *first)) wanted.push_back(name);
  }
  return wanted;
}

std::string Glance(const Page& page) {
  const std::string* const first = FirstName(page);
  std::string head;
  std::string under;
  const auto add_head = [&](const std::string& name) {
    head += fmt::format("<th scope=\"colgroup\" colspan=\"2\">{}</th>",
                        Escaped(name));
    under +=
        "<th scope=\"col\" class=\"gap\">work\u00a0%</th>"
        "<th scope=\"col\">p99</th>";
  };
  add_head(first != nullptr ? *first : "–");
  const bool rivals = std::any_of(
      page.studies.begin(), page.studies.end(), [](const Study& study) {
        return BestRival(study.algorithms).has_value();
      });
  if (rivals) {
    head += "<th scope=\"colgroup\" colspan=\"3\">best rival</th>";
    under +=
        "<th scope=\"col\" class=\"gap name\">name</th>"
        "<th scope=\"col\">work\u00a0%</th><th scope=\"col\">p99</th>";
  }
  const std::vector<std::string> wanted = Wanted(page, first);
  for (const std::string& name : wanted) add_head(name);
  std::string html = fmt::format(
      "<table class=\"glance\"><caption><span>Scenarios at a glance, medians "
      "over the seeds.{}</span></caption>\n"
      "<thead><tr><th scope=\"col\" rowspan=\"2\">Scenario</th>{}</tr>\n"
      "<tr>{}</tr></thead>\n<tbody>\n",
      rivals ? " The best rival is the one that did most work." : "", head,
      under);
  for (size_t s = 0; s < page.studies.size(); ++s) {
    const Study& study = page.studies[s];
    const auto rival = BestRival(study.algorithms);
    html += "<tr><th scope=\"row\">" + Link(s, study.name) + "</th>" +
            Pair(study.algorithms.empty() ? nullptr : &study.algorithms[0]);
    if (rivals) {
      html += "<td class=\"gap name\">" +
              (rival ? Escaped(study.algorithms[*rival].name) : "–") + "</td>" +
              Pair(rival ? &study.algorithms[*rival] : nullptr);
    }
    for (const std::string& name : wanted) html += Pair(Find(study, name));
    html += "</tr>\n";
  }
  return Scrolled("Scenarios at a glance", html + "</tbody></table>");
}

std::string Dots(const Page& page, const std::vector<Row>& rows,
                 const Looks& looks) {
  const std::string* const first = FirstName(page);
  std::vector<DotRow> strips;
  for (const Row& row : rows) {
    DotRow& strip = strips.emplace_back();
    strip.name = row.name;
    strip.strong = first != nullptr && row.name == *first;
    strip.style = looks.StyleOf(strip.strong ? row.name : "");
    for (size_t s = 0; s < page.studies.size(); ++s) {
      const auto work = ValueOf(row, s, kWorkMeasure);
      if (work) strip.values.push_back(*work);
    }
  }
  return "<figure class=\"strips\"><figcaption>Work done in time <span>a dot "
         "for each scenario</span></figcaption>" +
         DotStrips("Work done in time, as a share of the ideal",
                   "The table of all algorithms has the same figures.",
                   strips) +
         "</figure>\n";
}

}  // namespace

std::string StudyId(size_t i) { return fmt::format("study-{}", i + 1); }

std::string Lead(const Page& page) {
  const std::vector<Row> rows = Rows(page);
  const std::string* const first = FirstName(page);
  const auto ours = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
    return first != nullptr && row.name == *first;
  });
  if (ours == rows.end()) return {};
  const auto said = [&](const Row& row) {
    if (page.studies.size() == 1) return Percent(row.median);
    return fmt::format("{} in its worst, {}, and {} in the median",
                       Percent(row.least), Escaped(row.worst_study),
                       Percent(row.median));
  };
  std::string html = fmt::format(
      "<p class=\"lead\">Of the work that an ideal which knows the capacity of "
      "every instant would have done{}, <strong>{}</strong> did {}.",
      page.studies.size() > 1
          ? fmt::format(" in each of {} scenarios", page.studies.size())
          : "",
      Escaped(ours->name), said(*ours));
  const auto rival =
      std::find_if(rows.begin(), rows.end(),
                   [&](const Row& row) { return IsRival(page, row.name); });
  if (rival != rows.end()) {
    html += fmt::format(" Its best rival, {}, did {}.", Escaped(rival->name),
                        said(*rival));
  }
  return html + "</p>\n";
}

std::string Overview(const Page& page, const Looks& looks) {
  const std::vector<Row> rows = Rows(page);
  return "<h2>Overview</h2>\n" + Glance(page) + Ranking(page) +
         "<h2>Every algorithm, every scenario</h2>\n" +
         "<p class=\"dim\">Medians over the seeds. The algorithm whose worst "
         "scenario is best comes first.</p>\n" +
         Key() + Matrix(page, rows, kWorkMeasure) +
         Matrix(page, rows, kVitalMeasure) + Matrix(page, rows, kP99Measure) +
         Dots(page, rows, looks);
}

}  // namespace weir::sim_report
