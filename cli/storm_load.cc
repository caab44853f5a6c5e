#include "storm_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "weir/scenario/capacity.h"

namespace weir::cli {
namespace {

using scenario::Answers;
using scenario::Report;
using scenario::Scenario;

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > 32 && c < 127 &&
           std::string_view("\"(),/:;<=>?@[\\]{}").find(c) ==
               std::string_view::npos;
  });
}

std::string Milliseconds(Duration d, Duration deadline, uint64_t answered) {
  if (answered == 0) return "-";
  // A bucket's middle may lie a little below what was counted in it.
  if (d >= deadline - deadline / 100) {
    return fmt::format(">{:.0f} ms", ToSeconds(deadline) * 1e3);
  }
  const double ms = ToSeconds(d) * 1e3;
  return fmt::format("{:.{}f} ms", ms, ms < 10 ? 2 : ms < 100 ? 1 : 0);
}

}  // namespace

Scenario MakeLoad(const StormLoad& load) {
  Scenario made;
  made.name = "load";
  made.deadline = made.timeout = load.deadline;
  made.classes = {{.criticality = load.criticality, .deadline = load.deadline}};
  for (const std::string& path : load.paths) {
    made.routes.push_back(
        {.name = path, .share = 1 / static_cast<double>(load.paths.size())});
  }
  // Twice what is offered, so that nothing is an overload by itself.
  made.tiers = {{.workers = static_cast<int32_t>(std::ceil(load.rate * 2)),
                 .stages = {{.time = {.mean = std::chrono::seconds(1)}}}}};
  const double capacity = scenario::CapacityAt(made, {});
  made.phases = {{.name = "load",
                  .duration = load.length,
                  .load = load.rate / capacity,
                  .shares = {1}}};
  return made;
}

std::string LoadText(const Report& report, Duration deadline) {
  const scenario::Figures& all = report.all;
  const auto share = [&](uint64_t count) {
    return all.offered == 0 ? 0.
                            : 100. * static_cast<double>(count) /
                                  static_cast<double>(all.offered);
  };
  std::string text = fmt::format("{:<9}{:>9}\n", "offered", all.offered);
  for (const auto& [name, count] :
       {std::pair("in time", all.good), std::pair("late", all.late),
        std::pair("refused", all.shed), std::pair("failed", all.failed)}) {
    text += fmt::format("{:<9}{:>9}{:>8.1f} %\n", name, count, share(count));
  }
  const uint64_t answered = all.good + all.late;
  text += fmt::format("latency  p50 {}, p99 {}\n\nanswers\n",
                      Milliseconds(all.p50, deadline, answered),
                      Milliseconds(all.p99, deadline, answered));
  const bool routes =
      std::any_of(report.answers.begin(), report.answers.end(),
                  [&](const Answers& answers) {
                    return answers.route != report.answers.front().route;
                  });
  for (const Answers& answers : report.answers) {
    text += fmt::format("  {:<14}{:>9}{}\n", answers.answer, answers.count,
                        routes ? "  " + answers.route : "");
  }
  if (!report.invalid.empty()) text += "\nINVALID: " + report.invalid + "\n";
  return text;
}

Result<Url> ParseUrl(std::string_view text) {
  std::string_view rest = text;
  if (rest.starts_with("https://")) {
    return Error{fmt::format(
        "`{}`: weir storm speaks plain HTTP; name a port of the service "
        "without TLS, or what stands before it",
        text)};
  }
  const bool scheme = rest.starts_with("http://");
  if (scheme) rest.remove_prefix(7);
  const size_t slash = rest.find('/');
  Url url;
  if (slash != std::string_view::npos) {
    if (rest.substr(slash) != "/") url.path = rest.substr(slash);
    rest = rest.substr(0, slash);
  }
  std::string host(rest);
  const size_t colon = host.rfind(':');
  if (scheme && (colon == std::string::npos || host.ends_with(']'))) {
    host += ":80";
  }
  auto parsed = ParseHostPort(host);
  if (!parsed) {
    return Error{fmt::format(
        "`{}` is no address of a service, as in http://127.0.0.1:8000", text)};
  }
  if (!url.path.empty() && !IsPath(url.path)) {
    return Error{
        fmt::format("`{}` is not a path as it stands in a request: "
                    "write blanks and other letters as %20",
                    url.path)};
  }
  url.host = *std::move(parsed);
  return url;
}

bool IsHeaderLine(std::string_view text) {
  const size_t colon = text.find(':');
  return colon != std::string_view::npos && IsToken(text.substr(0, colon)) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) >= 32 || c == '\t';
         });
}

bool IsMethod(std::string_view text) { return IsToken(text); }

bool IsPath(std::string_view text) {
  return text.starts_with('/') &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c > 32 && c < 127; });
}

}  // namespace weir::cli
