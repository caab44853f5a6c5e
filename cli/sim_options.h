// What the ways of playing in virtual time share: `weir sim` and its matrix.

#ifndef WEIR_CLI_SIM_OPTIONS_H_
#define WEIR_CLI_SIM_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command.h"
#include "weir/policy.h"
#include "weir/scenario/scenario.h"
#include "weir/time.h"

namespace weir::cli {

struct SimOptions {
  std::vector<std::string> scenarios;
  std::string policy;
  std::string algorithm = "weir";
  std::string against;
  std::string seeds;
  std::string trace;
  std::string report;
  std::string rivals_from;
  bool json = false;
  bool matrix = false;
  int threads = 0;
  int guard_workers = 1;
};

// "3", "1-10", "1,4,7-9"; nothing when it is something else.
std::optional<std::vector<uint64_t>> ParseSeeds(std::string_view text);
// Says that `text` is none.
int FailForSeeds(const std::string& text);

// As many as were asked for, else (0) one for each core.
int ThreadsOf(int asked);

// Those that say what is played against what, as they were given: " --policy
// P.toml --against fixed".
std::string OptionsOf(const SimOptions& options);

// Width of a bin of a scenario's series: some two hundred, of whole steps of
// 100 ms.
Duration BinFor(const scenario::Scenario& scenario);

// The policy of that file; null when there is no name.  False after every
// complaint was printed.
bool LoadPolicyOf(const std::string& path,
                  std::shared_ptr<const Policy>& policy);

// "7 s", "12 min", "3 h 20 min": what is left when `done` of `all` took
// `passed`; empty while nothing can be told.
std::string TimeLeft(std::chrono::seconds passed, size_t done, size_t all);

// Plays one scenario, as `weir sim` plays the file that the options name.
int PlayScenario(const SimOptions& options, scenario::Scenario scenario);

// Plays all scenarios, the evaluation matrix when none are named, under every
// known algorithm.
int RunMatrix(const SimOptions& options);

}  // namespace weir::cli

#endif  // WEIR_CLI_SIM_OPTIONS_H_
