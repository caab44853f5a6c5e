// Standings as JSON, and rivals out of it.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "weir/sim/standings.h"

namespace weir::sim_report {
namespace {

using Json = nlohmann::ordered_json;

Json SpreadJson(const std::optional<Spread>& spread) {
  if (!spread) return nullptr;
  return {{"median", spread->median},
          {"min", spread->least},
          {"max", spread->most}};
}

Json AlgorithmJson(const Study& study, size_t i, const Standing& standing) {
  const Algorithm& algorithm = study.algorithms[i];
  Json json = {{"algorithm", algorithm.name},
               {"rival", algorithm.rival},
               {"mutant", algorithm.mutant}};
  for (const auto& [figure, spread] : algorithm.figures) {
    json[figure] = SpreadJson(spread);
  }
  json["class_good_ratio"] = Json::object();
  for (size_t cls = 0; cls < study.classes.size(); ++cls) {
    json["class_good_ratio"][study.classes[cls]] =
        SpreadJson(algorithm.class_good_ratio[cls]);
  }
  json["rank"] = {{"work", standing.work},
                  {"vital", standing.vital},
                  {"p99", standing.p99}};
  json["top_group"] = standing.top;
  json["goals"] = Json::array();
  for (const auto& value : algorithm.at_goals) {
    json["goals"].push_back(SpreadJson(value));
  }
  json["goals_met"] = standing.goals_met;
  json["seeds_broken"] = algorithm.seeds_broken;
  return json;
}

std::optional<Spread> ReadSpread(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return Spread{json.at("median"), json.at("min"), json.at("max")};
}

Algorithm ReadAlgorithm(const Json& json, const Study& study) {
  Algorithm algorithm;
  algorithm.name = json.at("algorithm");
  for (const std::string_view figure : Figures()) {
    const auto found = json.find(figure);
    if (found == json.end()) continue;
    if (const auto spread = ReadSpread(*found)) {
      algorithm.figures.emplace(figure, *spread);
    }
  }
  for (const std::string& cls : study.classes) {
    algorithm.class_good_ratio.push_back(
        ReadSpread(json.at("class_good_ratio").at(cls)));
  }
  for (const Json& goal : json.at("goals")) {
    algorithm.at_goals.push_back(ReadSpread(goal));
  }
  algorithm.seeds_broken = json.at("seeds_broken");
  return algorithm;
}

// Whether a study of a file is about the same requests and figures.
bool SameStudy(const Json& json, const Study& study) {
  if (json.at("scenario") != study.name ||
      json.at("requests") != study.requests ||
      json.at("goals").size() != study.goals.size()) {
    return false;
  }
  for (size_t g = 0; g < study.goals.size(); ++g) {
    if (json.at("goals")[g].at("figure") != study.goals[g].name) return false;
  }
  return true;
}

void AddRivals(const Json& json, Page& page) {
  for (Study& study : page.studies) {
    const Json* same = nullptr;
    for (const Json& other : json.at("scenarios")) {
      if (SameStudy(other, study)) same = &other;
    }
    if (same == nullptr || json.at("seeds") != study.seeds) {
      throw std::runtime_error("it was made of other scenarios or seeds than " +
                               study.name);
    }
    for (const Json& algorithm : same->at("algorithms")) {
      if (!algorithm.at("rival").get<bool>()) continue;
      study.algorithms.push_back(ReadAlgorithm(algorithm, study));
    }
  }
}

}  // namespace

std::string AddRivalsFrom(const std::string& standings_json, Page& page) {
  try {
    AddRivals(Json::parse(standings_json), page);
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string StandingsJson(const Page& page) {
  const Standings standings = StandingsOf(page);
  Json json;
  json["command"] = page.command;
  json["seeds"] =
      page.studies.empty() ? std::vector<uint64_t>() : page.studies[0].seeds;
  json["scenarios"] = Json::array();
  for (size_t s = 0; s < page.studies.size(); ++s) {
    const Study& study = page.studies[s];
    Json one = {{"scenario", study.name},
                {"requests", study.requests},
                {"goals", Json::array()}};
    for (const Goal& goal : study.goals) {
      one["goals"].push_back(
          {{"figure", goal.name}, {goal.at_least ? "min" : "max", goal.value}});
    }
    one["algorithms"] = Json::array();
    for (size_t i = 0; i < study.algorithms.size(); ++i) {
      one["algorithms"].push_back(
          AlgorithmJson(study, i, standings.studies[s].algorithms[i]));
    }
    json["scenarios"].push_back(std::move(one));
  }
  json["places"] = Json::array();
  for (const Place& place : standings.places) {
    json["places"].push_back({{"algorithm", place.name},
                              {"mean_rank", place.mean_rank},
                              {"top_group", place.top},
                              {"scenarios", place.studies},
                              {"goals_met", place.goals_met},
                              {"goals", place.goals},
                              {"median_work_ratio", place.median_work},
                              {"least_work_ratio", place.least_work},
                              {"worst_scenario", place.worst_study}});
  }
  json["passing_mutants"] = PassingMutants(page);
  return json.dump();
}

}  // namespace weir::sim_report
