#include "weir/hunt/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <sstream>
#include <string_view>

namespace weir::hunt {
namespace {

// All of the goals for this; docs/hunt.md.
constexpr double kCarried = .99;
constexpr double kWithin = .005;
constexpr double kNear = .97;
constexpr double kRecovered = .98;

// The smallest value that at least `share` of them are at or below.
double Quantile(std::vector<double> values, double share, double none) {
  if (values.empty()) return none;
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>(
      std::ceil(share * static_cast<double>(values.size())));
  return values[std::clamp<size_t>(rank, 1, values.size()) - 1];
}

double ShareOf(const std::vector<double>& values, double least) {
  if (values.empty()) return 1;
  const auto count = std::count_if(values.begin(), values.end(),
                                   [=](double v) { return v >= least; });
  return static_cast<double>(count) / static_cast<double>(values.size());
}

double Best(const Played& played) {
  double best = 0;
  for (const Figures& figures : played.figures) {
    best = std::max(best, figures.score());
  }
  return best;
}

// A figure that some worlds have, as a share of the ideal or the best.
double OfPossible(const Played& played, size_t algorithm,
                  std::optional<double> Figures::*figure) {
  double best = 0;
  for (const Figures& figures : played.figures) {
    best = std::max(best, (figures.*figure).value_or(0));
  }
  const double possible = std::min(best, 1.);
  if (possible <= 0) return 1;
  return std::min(*(played.figures[algorithm].*figure) / possible, 1.);
}

bool Carried(const Played& played, size_t baseline) {
  return played.figures[baseline].score() >= kCarried;
}

// What is lost to doing nothing, of the ideal or of that if it is more.
double Lost(const Played& played, size_t algorithm, size_t baseline) {
  const double none = played.figures[baseline].score();
  return (none - played.figures[algorithm].score()) / std::max(none, 1.);
}

double OfBest(const Played& played, size_t algorithm) {
  const double best = Best(played);
  return best > 0 ? played.figures[algorithm].score() / best : 1;
}

std::string Ratio(double ratio) { return fmt::format("{:.3f}", ratio); }

// Columns as wide as their widest cell; the first one to the left.
std::string Align(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], row[c].size());
    }
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line = fmt::format("{:<{}}", row[0], widths[0]);
    for (size_t c = 1; c < row.size(); ++c) {
      line += fmt::format("  {:>{}}", row[c], widths[c]);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + "\n";
  }
  return out;
}

std::string ByAlgorithm(const std::vector<Played>& worlds,
                        const TableOptions& options) {
  std::vector<std::vector<std::string>> carried = {
      {"carried", "within .005", "95 % lose at most", "worst",
       "falsely shed: median", "p99"}};
  std::vector<std::vector<std::string>> overload = {{"overload, of the best",
                                                     ">= .97", "median", "mean",
                                                     "p5", "p1", "worst"}};
  std::vector<std::vector<std::string>> rest = {
      {"", "most critical: p1", "worst", "no hogs: p1", "worst", "recovered",
       "worst"}};
  for (size_t a = 0; a < options.algorithms.size(); ++a) {
    const std::string& name = options.algorithms[a];
    const Distribution d = Distribute(worlds, a, options.baseline);
    carried.push_back({name, Ratio(d.within), Ratio(d.lost_p95),
                       Ratio(d.lost_worst), Ratio(d.shed_median),
                       Ratio(d.shed_p99)});
    overload.push_back({name, Ratio(d.near), Ratio(d.median), Ratio(d.mean),
                        Ratio(d.p5), Ratio(d.p1), Ratio(d.worst)});
    rest.push_back({name, Ratio(d.vital_p1), Ratio(d.vital_worst),
                    Ratio(d.others_p1), Ratio(d.others_worst),
                    Ratio(d.recovered), Ratio(d.recovered_worst)});
  }
  const Distribution d = Distribute(worlds, 0, options.baseline);
  return fmt::format(
      "{} worlds: the service can carry {}, {} are overload; {} are "
      "disturbed, in {} the most critical class alone fits, in {} all "
      "but hogs\n\n{}\n{}\n{}",
      worlds.size(), d.carried, d.overload, d.disturbed, d.vital, d.others,
      Align(carried), Align(overload), Align(rest));
}

std::string ByTrait(const std::vector<Played>& worlds,
                    const TableOptions& options) {
  std::map<std::string, std::vector<Played>> groups;
  for (const Played& played : worlds) {
    for (const std::string& trait : played.world.traits) {
      // Descriptions are not needed, and long.
      Played& copy = groups[trait].emplace_back();
      copy.figures = played.figures;
    }
  }
  std::vector<std::vector<std::string>> rows = {
      {options.algorithms[0] + " by trait", "carried", "within .005", "worst",
       "overload", ">= .97", "mean", "p5", "worst", "recovered"}};
  for (const auto& [trait, group] : groups) {
    const Distribution d = Distribute(group, 0, options.baseline);
    const auto of = [](size_t count, double ratio) {
      return count > 0 ? Ratio(ratio) : "-";
    };
    rows.push_back({trait, std::to_string(d.carried), of(d.carried, d.within),
                    of(d.carried, d.lost_worst), std::to_string(d.overload),
                    of(d.overload, d.near), of(d.overload, d.mean),
                    of(d.overload, d.p5), of(d.overload, d.worst),
                    of(d.disturbed, d.recovered)});
  }
  return Align(rows);
}

std::string Worst(const std::vector<Played>& worlds,
                  const TableOptions& options, bool carried) {
  std::vector<const Played*> order;
  for (const Played& played : worlds) {
    if (Carried(played, options.baseline) == carried) order.push_back(&played);
  }
  std::stable_sort(
      order.begin(), order.end(), [&](const Played* a, const Played* b) {
        return Loss(*a, options.baseline) > Loss(*b, options.baseline);
      });
  order.resize(std::min(order.size(), options.worst));
  std::string out = carried ? "worst of the carried\n" : "worst in overload\n";
  for (const Played* played : order) {
    const auto best = static_cast<size_t>(
        std::max_element(played->figures.begin(), played->figures.end(),
                         [](const Figures& a, const Figures& b) {
                           return a.score() < b.score();
                         }) -
        played->figures.begin());
    const Figures& f = played->figures[0];
    out += fmt::format(
        "  {}: {} {:.3f} (requests {:.3f}, work {:.3f}, falsely shed {:.3f}), "
        "{} {:.3f}: {}\n",
        played->world.seed, options.algorithms[0], f.score(), f.goodput, f.work,
        f.false_shed, options.algorithms[best], played->figures[best].score(),
        Describe(played->world));
  }
  return out;
}

}  // namespace

Result<std::vector<std::string>> BrokenBounds(const Distribution& figures,
                                              const std::string& bounds) {
  struct Named {
    std::string_view name;
    double Distribution::*figure;
    bool most;
  };
  static constexpr Named kNames[] = {
      {"within", &Distribution::within, false},
      {"lost_p95", &Distribution::lost_p95, true},
      {"lost_worst", &Distribution::lost_worst, true},
      {"shed_median", &Distribution::shed_median, true},
      {"shed_p99", &Distribution::shed_p99, true},
      {"near", &Distribution::near, false},
      {"median", &Distribution::median, false},
      {"mean", &Distribution::mean, false},
      {"p5", &Distribution::p5, false},
      {"p1", &Distribution::p1, false},
      {"worst", &Distribution::worst, false},
      {"vital_p1", &Distribution::vital_p1, false},
      {"vital_worst", &Distribution::vital_worst, false},
      {"others_p1", &Distribution::others_p1, false},
      {"others_worst", &Distribution::others_worst, false},
      {"recovered", &Distribution::recovered, false},
      {"recovered_worst", &Distribution::recovered_worst, false}};
  std::vector<std::string> broken;
  std::stringstream list(bounds);
  for (std::string item; std::getline(list, item, ',');) {
    const size_t equals = item.find('=');
    const std::string name = item.substr(0, equals);
    const auto named =
        std::find_if(std::begin(kNames), std::end(kNames),
                     [&](const Named& known) { return known.name == name; });
    double bound = 0;
    const char* const end = item.data() + item.size();
    const char* const number =
        equals == std::string::npos ? end : item.data() + equals + 1;
    const auto read = std::from_chars(number, end, bound);
    if (named == std::end(kNames) || read.ec != std::errc() ||
        read.ptr != end) {
      std::string names;
      for (const Named& known : kNames) {
        names += (names.empty() ? "" : ", ") + std::string(known.name);
      }
      return Error{
          fmt::format("`{}` is no bound: write NAME=NUMBER, with a name of {}",
                      item, names)};
    }
    const double figure = figures.*named->figure;
    // Figures are shown, and bounds written, with three digits.
    if (named->most ? figure > bound + 5e-4 : figure < bound - 5e-4) {
      broken.push_back(fmt::format("{} is {:.3f}, {} {}", name, figure,
                                   named->most ? "above" : "below",
                                   item.substr(equals + 1)));
    }
  }
  return broken;
}

double Loss(const Played& played, size_t baseline) {
  if (Carried(played, baseline)) {
    return Lost(played, 0, baseline);
  }
  return 1 - OfBest(played, 0);
}

Distribution Distribute(const std::vector<Played>& worlds, size_t algorithm,
                        size_t baseline) {
  std::vector<double> lost;
  std::vector<double> shed;
  std::vector<double> of_best;
  std::vector<double> vital;
  std::vector<double> others;
  std::vector<double> after;
  for (const Played& played : worlds) {
    const Figures& figures = played.figures[algorithm];
    if (Carried(played, baseline)) {
      lost.push_back(Lost(played, algorithm, baseline));
      shed.push_back(figures.false_shed);
    } else {
      of_best.push_back(OfBest(played, algorithm));
    }
    if (figures.vital) {
      vital.push_back(OfPossible(played, algorithm, &Figures::vital));
    }
    if (figures.others) {
      others.push_back(OfPossible(played, algorithm, &Figures::others));
    }
    if (figures.after) {
      after.push_back(OfPossible(played, algorithm, &Figures::after));
    }
  }
  Distribution d;
  d.carried = lost.size();
  d.lost_p95 = Quantile(lost, .95, 0);
  d.lost_worst = Quantile(lost, 1, 0);
  if (!lost.empty()) {
    d.within = static_cast<double>(std::count_if(
                   lost.begin(), lost.end(),
                   [](double l) { return l <= kWithin + 1e-9; })) /
               static_cast<double>(lost.size());
  }
  d.shed_median = Quantile(shed, .5, 0);
  d.shed_p99 = Quantile(shed, .99, 0);
  d.overload = of_best.size();
  d.near = ShareOf(of_best, kNear);
  d.median = Quantile(of_best, .5, 1);
  if (!of_best.empty()) {
    d.mean = std::accumulate(of_best.begin(), of_best.end(), 0.) /
             static_cast<double>(of_best.size());
  }
  d.p5 = Quantile(of_best, .05, 1);
  d.p1 = Quantile(of_best, .01, 1);
  d.worst = Quantile(of_best, 0, 1);
  d.vital = vital.size();
  d.vital_p1 = Quantile(vital, .01, 1);
  d.vital_worst = Quantile(vital, 0, 1);
  d.others = others.size();
  d.others_p1 = Quantile(others, .01, 1);
  d.others_worst = Quantile(others, 0, 1);
  d.disturbed = after.size();
  d.recovered = ShareOf(after, kRecovered);
  d.recovered_worst = Quantile(after, 0, 1);
  return d;
}

std::string WorstText(const std::vector<Played>& worlds,
                      const TableOptions& options) {
  return Worst(worlds, options, true) + "\n" + Worst(worlds, options, false);
}

std::string Table(const std::vector<Played>& worlds,
                  const TableOptions& options) {
  return ByAlgorithm(worlds, options) + "\n" + ByTrait(worlds, options) + "\n" +
         WorstText(worlds, options);
}

}  // namespace weir::hunt
