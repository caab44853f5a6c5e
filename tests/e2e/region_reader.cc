// Prints what a service's region says, as one JSON object.
//
//   region_reader SERVICE

#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "weir/shm/segment.h"
#include "weir/snapshot.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: region_reader SERVICE\n";
    return 2;
  }
  const auto region = weir::shm::ObservedRegion::Open(argv[1]);
  if (!region) {
    std::cerr << region.error().message << '\n';
    return 1;
  }
  const weir::Snapshot s = weir::Read(**region);
  nlohmann::json out;
  out["inflight"] = s.inflight;
  out["waiting"] =
      std::accumulate(s.waiting.begin(), s.waiting.end(), int64_t{});
  out["policy_version"] = s.policy_version;
  for (size_t i = 0; i < weir::kClassCounters; ++i) {
    out[std::string(weir::kClassCounterInfo[i].name)] = s.by_class[i];
  }
  for (size_t i = 0; i < weir::kCounters; ++i) {
    out[std::string(weir::kCounterInfo[i].name)] = s.counters[i];
  }
  for (size_t i = 0; i < weir::kGauges; ++i) {
    out[std::string(weir::kGaugeInfo[i].name)] = s.gauges[i];
  }
  out["workers"] = nlohmann::json::array();
  for (const auto& worker : s.workers) {
    out["workers"].push_back({{"shard", worker.shard},
                              {"pid", worker.owner.pid},
                              {"inflight", worker.inflight},
                              {"waiting", worker.waiting}});
  }
  std::cout << out << '\n';
}
