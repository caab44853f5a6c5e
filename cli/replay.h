// Makes a scenario of what was learnt from an access log.

#ifndef WEIR_CLI_REPLAY_H_
#define WEIR_CLI_REPLAY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "access_log.h"
#include "log_profile.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir::cli {

struct ReplayOptions {
  std::string name = "replay";
  std::optional<Duration> deadline{};
  std::optional<int> workers{};
  // Service time of requests where the log has none.
  std::optional<Duration> time{};
  size_t most_routes = 10;
  // Chosen: what a person can still read through, and twelve a minute of a
  // spike of twenty minutes.
  size_t most_steps = 240;
};

struct ReplayedScenario {
  std::string toml;  // The reader accepts it.
  // What was found, assumed and lost; they stand in the file as well.
  std::vector<std::string> notes;
};

// An error when the log holds too little (no request, no time) or too much
// (over a day) for a scenario; it says what to do.
Result<ReplayedScenario> MakeReplay(const LogProfile& profile,
                                    const LogFormat& format,
                                    const ReplayOptions& options);

}  // namespace weir::cli

#endif  // WEIR_CLI_REPLAY_H_
