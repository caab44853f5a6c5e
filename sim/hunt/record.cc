// Figures of earlier runs as JSON.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "weir/hunt/figures.h"

namespace weir::hunt {
namespace {

std::string Number(const std::optional<double>& number) {
  return number ? fmt::format("{}", *number) : "null";
}

std::optional<double> Maybe(const nlohmann::json& number) {
  if (number.is_null()) return std::nullopt;
  return number.get<double>();
}

}  // namespace

// A world is a line, so that files can be compared.
std::string ToJson(const Record& record) {
  std::string json = fmt::format(
      "{{\"generator\":{},\n\"figures\":[\"goodput\",\"work\",\"false_shed\","
      "\"after\",\"vital\",\"others\"],\n\"worlds\":{{",
      kGenerator);
  const char* between = "\n";
  for (const auto& [seed, algorithms] : record) {
    json += fmt::format("{}\"{}\":{{", between, seed);
    between = ",\n";
    const char* comma = "";
    for (const auto& [name, f] : algorithms) {
      json += fmt::format("{}\"{}\":[{},{},{},{},{},{}]", comma, name,
                          f.goodput, f.work, f.false_shed, Number(f.after),
                          Number(f.vital), Number(f.others));
      comma = ",";
    }
    json += "}";
  }
  return json + "\n}}\n";
}

Result<Record> ParseRecord(const std::string& json) {
  Record record;
  try {
    const auto root = nlohmann::json::parse(json);
    const int generator = root.at("generator").get<int>();
    if (generator != kGenerator) {
      return Error{fmt::format(
          "it is of generator {}, whose worlds are others; this is {}",
          generator, kGenerator)};
    }
    for (const auto& [seed, algorithms] : root.at("worlds").items()) {
      for (const auto& [name, f] : algorithms.items()) {
        record[std::stoull(seed)][name] = {.goodput = f.at(0).get<double>(),
                                           .work = f.at(1).get<double>(),
                                           .false_shed = f.at(2).get<double>(),
                                           .after = Maybe(f.at(3)),
                                           .vital = Maybe(f.at(4)),
                                           .others = Maybe(f.at(5))};
      }
    }
  } catch (const std::exception& error) {
    return Error{fmt::format("it is no record of a hunt: {}", error.what())};
  }
  return record;
}

}  // namespace weir::hunt
