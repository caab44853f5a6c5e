// The report as tables.

#include <fmt/format.h>

#include <algorithm>

#include "weir/scenario/report.h"

namespace weir::scenario {
namespace {

// 1234567 as "1 234 567".
std::string Grouped(uint64_t value) {
  std::string digits = std::to_string(value);
  for (size_t i = digits.size(); i > 3;) {
    i -= 3;
    digits.insert(i, " ");
  }
  return digits;
}

// Three significant digits; ">" where it is a lower bound.
std::string Latency(const Figures& figures, Duration value, Duration timeout) {
  if (figures.good + figures.late == 0) return "-";
  // A bucket's middle may lie a little below what was counted in it.
  const bool open = value >= timeout - timeout / 100;
  const double ms = ToSeconds(open ? timeout : value) * 1e3;
  const int digits = ms < 10 ? 2 : ms < 100 ? 1 : 0;
  return fmt::format("{}{:.{}f}", open ? ">" : "", ms, digits);
}

std::string Seconds(const std::optional<Duration>& span) {
  if (!span) return "-";
  return fmt::format("{:.2f} s", ToSeconds(*span));
}

std::string Ratio(const Figures& figures) {
  if (figures.offered == 0) return "-";
  return fmt::format("{:.3f}", figures.goodput_ratio);
}

std::string Row(const Figures& f, Duration timeout) {
  return fmt::format("{:<12}{:>10}{:>10}{:>9}{:>10}{:>8}{:>9}{:>9}{:>9}\n",
                     f.name, Grouped(f.offered), Grouped(f.good),
                     Grouped(f.late), Grouped(f.shed), Grouped(f.failed),
                     Ratio(f), Latency(f, f.p50, timeout),
                     Latency(f, f.p99, timeout));
}

std::string Head(std::string_view what) {
  return fmt::format("{:<12}{:>10}{:>10}{:>9}{:>10}{:>8}{:>9}{:>9}{:>9}\n",
                     what, "offered", "in time", "late", "shed", "failed",
                     "/ ideal", "p50 ms", "p99 ms");
}

std::string Pair(std::string left, std::string right) {
  return fmt::format("{:>11}{:>11}", left, right);
}

std::string PairRow(const Figures& l, const Figures& r, Duration timeout) {
  return fmt::format("{:<12}{:>9}", l.name, Grouped(l.offered)) +
         Pair(Grouped(l.good), Grouped(r.good)) + Pair(Ratio(l), Ratio(r)) +
         Pair(Latency(l, l.p99, timeout), Latency(r, r.p99, timeout)) + "\n";
}

// "answers: 200 1 234, 503 level 56"; of all routes together, in lines that
// fit.
std::string AnswersText(const Report& report) {
  std::vector<Answers> sums;
  for (const Answers& one : report.answers) {
    const auto same = std::find_if(
        sums.begin(), sums.end(),
        [&](const Answers& sum) { return sum.answer == one.answer; });
    if (same == sums.end()) {
      sums.push_back(one);
    } else {
      same->count += one.count;
    }
  }
  constexpr size_t kWidest = 80;
  std::string text = "answers:";
  size_t column = text.size();
  for (const Answers& sum : sums) {
    const std::string part =
        fmt::format(" {} {}{}", sum.answer, Grouped(sum.count),
                    &sum == &sums.back() ? "" : ",");
    if (column + part.size() > kWidest) {
      text += "\n        ";
      column = 8;
    }
    text += part;
    column += part.size();
  }
  return text + "\n";
}

std::string Notes(const Report& report) {
  std::string text;
  if (report.amplification() > 1) {
    text +=
        fmt::format("attempts per request {:.2f}\n", report.amplification());
  }
  if (!report.answers.empty()) text += AnswersText(report);
  if (report.send_lag) {
    text +=
        fmt::format("sent behind schedule: p99 {:.2f} ms, at most {:.1f} ms\n",
                    ToSeconds(report.send_lag->p99) * 1e3,
                    ToSeconds(report.send_lag->max) * 1e3);
  }
  if (!report.invalid.empty()) text += "INVALID: " + report.invalid + "\n";
  return text;
}

}  // namespace

std::string ToText(const Report& report, Duration timeout) {
  std::string text =
      fmt::format("{}, seed {}\n\n", report.scenario, report.seed);
  text += Head("phase");
  for (const Figures& phase : report.phases) text += Row(phase, timeout);
  text += Row(report.all, timeout);
  text += "\n" + Head("class");
  for (const Figures& cls : report.classes) text += Row(cls, timeout);
  text += fmt::format(
      "\nfalse sheds {:.5f}   converged after {}   recovered after {}\n",
      report.all.false_shed_ratio, Seconds(report.all.converge),
      Seconds(report.all.recover));
  return text + Notes(report);
}

std::string ToText(const Report& left, std::string_view left_name,
                   const Report& right, std::string_view right_name,
                   Duration timeout) {
  const std::string names = Pair(std::string(left_name.substr(0, 10)),
                                 std::string(right_name.substr(0, 10)));
  std::string text = fmt::format("{}, seed {}\n\n", left.scenario, left.seed);
  text += fmt::format("{:<21}{:>22}{:>22}{:>22}\n", "", "in time", "/ ideal",
                      "p99 ms");
  const auto head = [&](std::string_view what) {
    return fmt::format("{:<12}{:>9}", what, "offered") + names + names + names +
           "\n";
  };
  text += head("phase");
  for (size_t i = 0; i < left.phases.size(); ++i) {
    text += PairRow(left.phases[i], right.phases[i], timeout);
  }
  text += PairRow(left.all, right.all, timeout) + "\n" + head("class");
  for (size_t i = 0; i < left.classes.size(); ++i) {
    text += PairRow(left.classes[i], right.classes[i], timeout);
  }
  for (const auto& [name, report] :
       {std::pair(left_name, &left), std::pair(right_name, &right)}) {
    text += fmt::format(
        "\n{}: false sheds {:.5f}, converged after {}, recovered after {}\n",
        name, report->all.false_shed_ratio, Seconds(report->all.converge),
        Seconds(report->all.recover));
    text += Notes(*report);
  }
  return text;
}

}  // namespace weir::scenario
