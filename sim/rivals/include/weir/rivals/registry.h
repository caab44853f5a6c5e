// All rivals by name, with the parameters their authors ship.

#ifndef WEIR_RIVALS_REGISTRY_H_
#define WEIR_RIVALS_REGISTRY_H_

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

// Where a controller has to stand to see what it needs.
enum class Seat : uint8_t {
  kFront,   // In front of the server, which may be opaque.
  kServer,  // In the server: it sees the server's own queue, or its machine.
  kCaller,  // One at each caller.
};

std::string_view Name(Seat seat);  // "front", "server", "caller"

// What an operator who tunes by hand would know of the service, for those that
// have no default that fits every service.
struct World {
  uint64_t seed = 0;
  int32_t workers = 16;
  Duration service = std::chrono::milliseconds(10);  // Mean, when alone.
  Duration deadline = std::chrono::milliseconds(500);
  int32_t clients = 1000;
  int32_t tuned_limit = 0;  // 0: a tenth more than the workers.
};

struct Entry {
  std::string_view name;  // "vendor-law", lower case.
  Seat seat;
  std::string_view summary;  // One line.
  Rival (*make)(const World& world);
};

// In the order of reports: baselines, limits, gates, mutants.
std::span<const Entry> Registry();

// The entry of that name, or those whose vendor it is ("envoy" stands for all
// of Envoy's), in the order of the registry.  Empty when there are none.
std::vector<const Entry*> FindRivals(std::string_view name);

// What it is called for, e.g. "limit, finish" or "arrival, start, order":
// the abilities in the order in which a request meets them.
std::string Needs(const Rival& rival);

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_REGISTRY_H_
