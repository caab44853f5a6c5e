// Holds a simulated run against a real one of the same scenario.

#ifndef WEIR_CLI_AGREEMENT_H_
#define WEIR_CLI_AGREEMENT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace weir::cli {

// How far apart the two may be, relative to the real one.
// Chosen: what runs with different seeds differ by at most, in scenarios of a
// minute and longer.
struct Tolerance {
  double goodput = 0.03;
  double latency = 0.15;
};

// A figure of the whole run or of one phase in both worlds; medians over the
// seeds.
struct Agreement {
  std::string name;    // Of the phase; "all".
  std::string figure;  // "goodput", "p50 ms", "p99 ms".
  double simulated = 0;
  double real = 0;
  double difference = 0;  // (simulated - real) / real; 0 when both are 0.
  double allowed = 0;
  bool judged = false;  // Phases are shown and not judged.

  bool agrees() const;
};

// `simulated` and `real`: reports as scenario::ToJson() writes them, one a
// seed, none empty.  Goodput is the share of what was offered that was answered
// in time.
std::vector<Agreement> Compare(const std::vector<nlohmann::json>& simulated,
                               const std::vector<nlohmann::json>& real,
                               const Tolerance& tolerance);

// The last line of `text` that is a JSON object with the key `protected`, and
// what stands there; null when there is none.
nlohmann::json ProtectedReport(std::string_view text);

}  // namespace weir::cli

#endif  // WEIR_CLI_AGREEMENT_H_
