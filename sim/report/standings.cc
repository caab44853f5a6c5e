#include "weir/sim/standings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "figures.h"

namespace weir::sim_report {
namespace {

// The bar for being as good as the best.
// Chosen: what differences between seeds leave to tell apart.
constexpr double kTopWork = 0.99;
constexpr double kTopP99 = 1.1;

double Shown(double value, double scale) { return std::round(value * scale); }

// The higher the better, as it is shown: work and the most critical class to a
// tenth of a percent, p99 to a millisecond.
std::optional<double> ShownWork(const Algorithm& algorithm) {
  const auto work = FigureOf(algorithm, kWork);
  return work ? std::optional(Shown(work->median, 1000)) : std::nullopt;
}

std::optional<double> ShownVital(const Algorithm& algorithm) {
  const auto& ratios = algorithm.class_good_ratio;
  if (ratios.size() < 2 || !ratios[0]) return std::nullopt;
  return Shown(ratios[0]->median, 1000);
}

std::optional<double> ShownP99(const Algorithm& algorithm) {
  const auto p99 = FigureOf(algorithm, "latency_p99_ms");
  return p99 ? std::optional(-Shown(p99->median, 1)) : std::nullopt;
}

bool Competes(const Study& study, size_t i) {
  return i == 0 || study.algorithms[i].rival;
}

using Value = std::optional<double> (*)(const Algorithm&);

// One more than the competitors that are better; those that may not count come
// after all.
std::vector<size_t> Ranks(const Study& study, Value value,
                          const std::vector<bool>& eligible) {
  std::vector<size_t> ranks;
  for (size_t i = 0; i < study.algorithms.size(); ++i) {
    const auto own = value(study.algorithms[i]);
    size_t rank = own ? 1 : 0;
    for (size_t j = 0; own && j < study.algorithms.size(); ++j) {
      const auto other = value(study.algorithms[j]);
      if (j == i || !other || !eligible[j] || !Competes(study, j)) continue;
      if (!eligible[i] || *other > *own) ++rank;
    }
    ranks.push_back(rank);
  }
  return ranks;
}

std::optional<size_t> Best(const Study& study, Value value,
                           const std::vector<bool>& eligible) {
  std::optional<size_t> best;
  // The page's own comes last, so that an equal rival is named.
  for (size_t k = 0; k < study.algorithms.size(); ++k) {
    const size_t i = (k + 1) % study.algorithms.size();
    const auto own = value(study.algorithms[i]);
    if (!own || !eligible[i] || !Competes(study, i)) continue;
    if (!best || *own > *value(study.algorithms[*best])) best = i;
  }
  return best;
}

void MarkTop(const Study& study, StudyStandings& standings) {
  double most = 0;
  for (size_t i = 0; i < study.algorithms.size(); ++i) {
    if (Competes(study, i)) most = std::max(most, WorkOf(study.algorithms[i]));
  }
  const auto does_the_work = [&](size_t i) {
    return WorkOf(study.algorithms[i]) >= kTopWork * most;
  };
  std::optional<double> lowest;
  for (size_t i = 0; i < study.algorithms.size(); ++i) {
    const auto p99 = FigureOf(study.algorithms[i], "latency_p99_ms");
    if (!p99 || !Competes(study, i) || !does_the_work(i)) continue;
    lowest = std::min(lowest.value_or(p99->median), p99->median);
  }
  for (size_t i = 0; i < study.algorithms.size(); ++i) {
    const auto p99 = FigureOf(study.algorithms[i], "latency_p99_ms");
    standings.algorithms[i].top =
        lowest && p99 && does_the_work(i) && p99->median <= kTopP99 * *lowest;
  }
}

StudyStandings StandingsOf(const Study& study) {
  StudyStandings standings;
  const std::vector<bool> all(study.algorithms.size(), true);
  const std::vector<bool> did_the_work = DidTheWork(study.algorithms);
  const std::vector<size_t> work = Ranks(study, ShownWork, all);
  const std::vector<size_t> vital = Ranks(study, ShownVital, all);
  const std::vector<size_t> p99 = Ranks(study, ShownP99, did_the_work);
  for (size_t i = 0; i < study.algorithms.size(); ++i) {
    standings.competitors += Competes(study, i);
    Standing& standing = standings.algorithms.emplace_back();
    standing = {work[i], vital[i], p99[i], false, 0};
    const auto& at_goals = study.algorithms[i].at_goals;
    for (size_t g = 0; g < std::min(study.goals.size(), at_goals.size()); ++g) {
      standing.goals_met += Met(study.goals[g], at_goals[g]);
    }
  }
  MarkTop(study, standings);
  standings.most_work = Best(study, ShownWork, all);
  standings.lowest_p99 = Best(study, ShownP99, did_the_work);
  return standings;
}

Place& PlaceOf(std::vector<Place>& places, const Algorithm& algorithm) {
  for (Place& place : places) {
    if (place.name == algorithm.name) return place;
  }
  Place& place = places.emplace_back();
  place.name = algorithm.name;
  place.rival = algorithm.rival;
  place.mutant = algorithm.mutant;
  return place;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle]
                                : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

double Standing::mean() const {
  double sum = 0;
  double count = 0;
  for (const size_t rank : {work, vital, p99}) {
    if (rank == 0) continue;
    sum += static_cast<double>(rank);
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

bool Met(const Goal& goal, const std::optional<Spread>& value) {
  if (!value) return false;
  return goal.at_least ? value->median >= goal.value
                       : value->median <= goal.value;
}

Standings StandingsOf(const Page& page) {
  Standings standings;
  std::vector<std::vector<double>> works;
  for (const Study& study : page.studies) {
    const StudyStandings& own =
        standings.studies.emplace_back(StandingsOf(study));
    for (size_t i = 0; i < study.algorithms.size(); ++i) {
      const Algorithm& algorithm = study.algorithms[i];
      Place& place = PlaceOf(standings.places, algorithm);
      works.resize(standings.places.size());
      auto& work_of =
          works[static_cast<size_t>(&place - standings.places.data())];
      const double work = std::max(0., WorkOf(algorithm));
      if (work_of.empty() || work < place.least_work) {
        place.least_work = work;
        place.worst_study = study.name;
      }
      work_of.push_back(work);
      ++place.studies;
      place.mean_rank += own.algorithms[i].mean();
      place.top += own.algorithms[i].top;
      place.goals_met += own.algorithms[i].goals_met;
      place.goals += study.goals.size();
    }
  }
  for (size_t i = 0; i < standings.places.size(); ++i) {
    Place& place = standings.places[i];
    place.mean_rank /= static_cast<double>(place.studies);
    place.median_work = Median(works[i]);
  }
  std::stable_sort(
      standings.places.begin(), standings.places.end(),
      [](const Place& a, const Place& b) { return a.mean_rank < b.mean_rank; });
  return standings;
}

std::vector<std::string> PassingMutants(const Page& page) {
  std::vector<std::string> passing;
  for (const Study& study : page.studies) {
    for (const Algorithm& algorithm : study.algorithms) {
      if (!algorithm.mutant || algorithm.seeds_broken == study.seeds.size()) {
        continue;
      }
      passing.push_back(fmt::format(
          "{} in {}, under {} of {} seeds", algorithm.name, study.name,
          study.seeds.size() - algorithm.seeds_broken, study.seeds.size()));
    }
  }
  return passing;
}

}  // namespace weir::sim_report
