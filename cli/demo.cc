#include "demo.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "command.h"
#include "loopback.h"
#include "storm_run.h"
#include "weir/result.h"
#include "weir/scenario/report.h"

namespace weir::cli {
namespace {

using scenario::Report;
using scenario::Scenario;

// How long it waits for a service that has just started.
constexpr std::chrono::seconds kIdleTimeout(20);

Result<Report> Play(const Scenario& scenario, uint64_t seed, uint16_t port,
                    std::string_view name) {
  const HostPort target = {.host = "127.0.0.1", .port = port};
  fmt::print(stderr, "{}: {} for {:.0f} s\n", name, scenario.name,
             ToSeconds(scenario.length()));
  if (!WaitUntilIdle(target, scenario.routes[0].name, scenario.deadline,
                     kIdleTimeout)) {
    return Error{fmt::format("http://{} does not answer", target.text())};
  }
  return RunStorm(scenario, {.target = target, .seed = seed, .progress = {}});
}

void Print(const Scenario& scenario, const Report& with,
           const std::optional<Report>& without, bool json) {
  fmt::print("{}\n", without ? ToText(with, "with weir", *without, "without",
                                      scenario.timeout)
                             : ToText(with, scenario.timeout));
  if (!json) return;
  fmt::print("{{\"protected\": {}{}}}\n", ToJson(with),
             without ? ", \"unprotected\": " + ToJson(*without) : "");
}

}  // namespace

int PlayDemo(const Scenario& scenario, const DemoOptions& options) {
  const Result<Report> with =
      Play(scenario, options.seed, options.guarded_port, "with weir");
  if (!with) return Fail(kCouldNotRun, with.error().message);
  std::optional<Report> without;
  if (options.unguarded_port != 0) {
    Result<Report> played =
        Play(scenario, options.seed, options.unguarded_port, "without");
    if (!played) return Fail(kCouldNotRun, played.error().message);
    without = *std::move(played);
  }
  Print(scenario, *with, without, options.json);
  if (!with->invalid.empty()) {
    return Fail(kCouldNotRun, "these figures mean nothing: " + with->invalid);
  }
  // Without weir every caller gives up and connects anew, so on a small machine
  // the generator cannot keep up.  The table says so; what was sent late was
  // less of a flood, and that the service fell over stands all the same.
  const std::vector<std::string> broken = BrokenBounds(scenario, *with);
  for (const std::string& bound : broken) Fail(kCouldNotRun, bound);
  return broken.empty() ? kFine : kCouldNotRun;
}

}  // namespace weir::cli
