// A load without a scenario file: so many requests a second for some paths of
// a service of which nothing else is known.

#ifndef WEIR_CLI_STORM_LOAD_H_
#define WEIR_CLI_STORM_LOAD_H_

#include <string>
#include <string_view>
#include <vector>

#include "loopback.h"
#include "storm_run.h"
#include "weir/request.h"
#include "weir/result.h"
#include "weir/scenario/report.h"
#include "weir/scenario/scenario.h"
#include "weir/time.h"

namespace weir::cli {

struct StormLoad {
  double rate = 0;  // Requests per second; > 0.
  Duration length = std::chrono::seconds(10);
  Duration deadline = std::chrono::seconds(1);  // Then callers give up, too.
  std::vector<std::string> paths{};             // Equally often; at least one.
  Criticality criticality = Criticality::kImportant;
};

// The load as a scenario whose ideal answers everything.
scenario::Scenario MakeLoad(const StormLoad& load);

// How it fared, within 40 columns but for long paths; without what only makes
// sense when the capacity is known.
std::string LoadText(const scenario::Report& report, Duration deadline);

// "http://host:port/path?query" in its two halves; the port is 80 when there is
// none, the path empty.
struct Url {
  HostPort host;
  std::string path;
};
Result<Url> ParseUrl(std::string_view text);

// Whether `text` may stand in a request as a header's line, as a method, as a
// path.
bool IsHeaderLine(std::string_view text);
bool IsMethod(std::string_view text);
bool IsPath(std::string_view text);

}  // namespace weir::cli

#endif  // WEIR_CLI_STORM_LOAD_H_
