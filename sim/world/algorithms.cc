#include "weir/sim/algorithms.h"

#include <string>

namespace weir::sim {

namespace {

Algorithm NoControl() {
  return {"none", [](const GateContext&) { return std::unique_ptr<Gate>(); }};
}

}  // namespace

Result<std::vector<Algorithm>> FindAlgorithms(
    std::string_view list, std::shared_ptr<const Policy> policy) {
  std::vector<Algorithm> found;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view name = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (name == "none") {
      found.push_back(NoControl());
    } else if (name == "weir" || name == "weir-known") {
      found.push_back(Weir(std::string(name), policy, name == "weir-known"));
    } else {
      return Error{"unknown algorithm `" + std::string(name) + "`"};
    }
  }
  return found;
}

}  // namespace weir::sim
