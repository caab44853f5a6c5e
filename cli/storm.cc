// weir storm: offers a scenario's load to a service and tells how it fared.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "command.h"
#include "storm_run.h"
#include "terminal.h"
#include "weir/scenario/capacity.h"
#include "weir/scenario/read.h"
#include "weir/scenario/report.h"

namespace weir::cli {
namespace {

using scenario::Report;
using scenario::Scenario;

struct Options {
  std::string scenario;
  std::string target;
  std::string compare;
  bool json = false;
  bool baggage = false;
  std::optional<bool> live;
  std::optional<uint64_t> seed;
  double scale = 1;
  int settle = 120;
};

// One line on the terminal that is written over and over.
class Progress {
 public:
  Progress(const Scenario& scenario, std::string_view name, bool on)
      : scenario_(scenario), name_(name), on_(on) {}
  ~Progress() {
    if (on_) std::fputs("\r\x1b[K", stderr);
  }

  void Show(Duration now, const StormCalls::Counts& counts) {
    if (!on_ || now <= last_) return;
    const double seconds = ToSeconds(now - last_);
    const auto rate = [&](uint64_t StormCalls::Counts::*count) {
      return static_cast<double>(counts.*count - before_.*count) / seconds;
    };
    size_t phase = 0;
    while (phase + 1 < scenario_.phases.size() &&
           scenario_.PhaseStart(phase + 1) <= now) {
      ++phase;
    }
    fmt::print(stderr,
               "\r{} {:.0f}/{:.0f} s  {:<8} per second: offered {:6.0f}  in "
               "time {:6.0f}  late {:6.0f}  shed {:6.0f}  failed {:5.0f}\x1b[K",
               name_, ToSeconds(now), ToSeconds(scenario_.length()),
               scenario_.phases[phase].name, rate(&StormCalls::Counts::offered),
               rate(&StormCalls::Counts::good), rate(&StormCalls::Counts::late),
               rate(&StormCalls::Counts::shed),
               rate(&StormCalls::Counts::failed));
    std::fflush(stderr);
    last_ = now;
    before_ = counts;
  }

 private:
  const Scenario& scenario_;
  std::string_view name_;
  bool on_;
  Duration last_{};
  StormCalls::Counts before_;
};

Result<Report> Storm(const Scenario& scenario, const Options& options,
                     const HostPort& target) {
  const std::string name = target.text();
  if (const auto error = TryConnect(target, std::chrono::seconds(2))) {
    return Error{error->message +
                 "; start a service there, or name another --target"};
  }
  if (options.settle > 0 &&
      !WaitUntilIdle(target, scenario.routes[0].name, scenario.deadline,
                     std::chrono::seconds(options.settle))) {
    fmt::print(stderr,
               "weir: {} did not answer within the deadline for {} s; it "
               "begins with work from before\n",
               name, options.settle);
  }
  const bool live = options.live.value_or(IsTerminal(stderr));
  Progress progress(scenario, name, live);
  return RunStorm(scenario, {.target = target,
                             .seed = options.seed.value_or(scenario.seed),
                             .baggage = options.baggage,
                             .progress = [&](Duration now,
                                             const StormCalls::Counts& counts) {
                               progress.Show(now, counts);
                             }});
}

int Judge(const Scenario& scenario, const Report& report) {
  const auto broken = BrokenBounds(scenario, report);
  for (const std::string& bound : broken) {
    fmt::print(stderr, "weir: broken bound: {}\n", bound);
  }
  if (!report.invalid.empty()) {
    return Fail(kCouldNotRun, "invalid run: " + report.invalid);
  }
  return broken.empty() ? kFine : kCouldNotRun;
}

int Run(const Options& options) {
  auto scenario = scenario::LoadScenario(options.scenario);
  if (!scenario) {
    std::fputs(scenario.complaints().Print("nothing was started").c_str(),
               stderr);
    return kWrongInput;
  }
  if (const auto error = CannotOffer(*scenario)) {
    return Fail(kWrongInput, error->message);
  }
  const auto target = ParseHostPort(options.target);
  if (!target) return Fail(kWrongInput, target.error().message);
  std::optional<HostPort> compare;
  if (!options.compare.empty()) {
    const auto parsed = ParseHostPort(options.compare);
    if (!parsed) return Fail(kWrongInput, parsed.error().message);
    compare = *parsed;
  }
  if (options.scale != 1) scenario->Stretch(options.scale);

  const auto report = Storm(*scenario, options, *target);
  if (!report) return Fail(kCouldNotRun, report.error().message);
  if (!compare) {
    fmt::print("{}\n", options.json ? ToJson(*report)
                                    : ToText(*report, scenario->timeout));
    return Judge(*scenario, *report);
  }
  const auto other = Storm(*scenario, options, *compare);
  if (!other) return Fail(kCouldNotRun, other.error().message);
  fmt::print("{}\n", options.json
                         ? fmt::format("{{\"target\": {}, \"compare\": {}}}",
                                       ToJson(*report), ToJson(*other))
                         : ToText(*report, "target", *other, "compare",
                                  scenario->timeout));
  // Bounds are for the target; what it is compared with may break them.
  return Judge(*scenario, *report);
}

}  // namespace

void AddStormCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "storm", "Offer a scenario's load to a service and tell how it fared");
  command->add_option("scenario", options->scenario, "Scenario file")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--target", options->target,
                   "Where to, as http://127.0.0.1:8000")
      ->required();
  command->add_option("--compare", options->compare,
                      "A second service that gets the same afterwards");
  command->add_flag("--json", options->json,
                    "Print one JSON object (docs/scenarios.md)");
  command->add_flag("--live,!--no-live", options->live,
                    "Show progress; by itself on a terminal");
  command->add_option("--seed", options->seed,
                      "Instead of the scenario's seed");
  command
      ->add_option("--scale", options->scale,
                   "Multiply the lengths of phases, and when things change; "
                   "loads stay")
      ->check(CLI::Range(0.001, 1000.))
      ->capture_default_str();
  command->add_flag("--baggage", options->baggage,
                    "Send the criticality as W3C baggage");
  command
      ->add_option("--settle", options->settle,
                   "Wait at most this many seconds until the service is idle")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  command->callback(
      [&action, options] { action = [options] { return Run(*options); }; });
}

}  // namespace weir::cli
