// weir storm: offers a scenario's load to a service and tells how it fared.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "command.h"
#include "interrupt.h"
#include "storm_load.h"
#include "storm_run.h"
#include "terminal.h"
#include "weir/config/units.h"
#include "weir/scenario/capacity.h"
#include "weir/scenario/read.h"
#include "weir/scenario/report.h"

namespace weir::cli {
namespace {

using scenario::Report;
using scenario::Scenario;

struct Options {
  std::string scenario;
  std::optional<double> rate;
  std::string duration;
  std::string deadline;
  std::vector<std::string> paths;
  std::string criticality;
  std::string method = "GET";
  std::vector<std::string> headers;
  std::string body;
  std::string target;
  std::string compare;
  bool json = false;
  bool baggage = false;
  std::optional<bool> live;
  std::optional<uint64_t> seed;
  double scale = 1;
  std::optional<int> settle;
};

// Of a scenario, whose overload may have left much work; and of a load, which
// finds the service as it is.
constexpr int kSettle = 120;
constexpr int kSettleForLoad = 5;

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
    const std::string wide = fmt::format(
        "{} {:.0f}/{:.0f} s  {:<8} per second: offered {:6.0f}  in time "
        "{:6.0f}  late {:6.0f}  shed {:6.0f}  failed {:5.0f}",
        name_, ToSeconds(now), ToSeconds(scenario_.length()),
        scenario_.phases[phase].name, rate(&StormCalls::Counts::offered),
        rate(&StormCalls::Counts::good), rate(&StormCalls::Counts::late),
        rate(&StormCalls::Counts::shed), rate(&StormCalls::Counts::failed));
    const auto columns = static_cast<size_t>(TerminalSize(stderr).columns);
    fmt::print(stderr, "\r{}\x1b[K",
               wide.size() < columns
                   ? wide
                   : fmt::format("{:.0f}/{:.0f} s {:.0f}/s: {:.0f} good, "
                                 "{:.0f} shed",
                                 ToSeconds(now), ToSeconds(scenario_.length()),
                                 rate(&StormCalls::Counts::offered),
                                 rate(&StormCalls::Counts::good),
                                 rate(&StormCalls::Counts::shed))
                         .substr(0, columns - 1));
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
                     const HostPort& target, const Interrupt& interrupt) {
  const std::string name = target.text();
  if (const auto error = TryConnect(target, std::chrono::seconds(2))) {
    return Error{error->message +
                 "; start a service there, or name another --target"};
  }
  const int settle =
      options.settle.value_or(options.rate ? kSettleForLoad : kSettle);
  if (settle > 0 &&
      !WaitUntilIdle(target, scenario.routes[0].name, scenario.deadline,
                     std::chrono::seconds(settle))) {
    fmt::print(stderr,
               "weir: {} did not answer within the deadline for {} s; it "
               "begins with work from before\n",
               name, settle);
  }
  const bool live = options.live.value_or(IsTerminal(stderr));
  Progress progress(scenario, name, live);
  return RunStorm(scenario,
                  {.target = target,
                   .seed = options.seed.value_or(scenario.seed),
                   .baggage = options.baggage,
                   .method = options.method,
                   .headers = options.headers,
                   .body = options.body,
                   .progress =
                       [&](Duration now, const StormCalls::Counts& counts) {
                         progress.Show(now, counts);
                       },
                   .stop = [&] { return interrupt.asked(); }});
}

// A run that was stopped keeps no bounds, and breaks none.
int SayStopped(const Scenario& scenario, Duration after) {
  return Fail(kCouldNotRun,
              fmt::format("stopped after {:.1f} of {:.0f} s; the figures are "
                          "of what was played",
                          ToSeconds(after), ToSeconds(scenario.length())));
}

int Judge(const Scenario& scenario, const Report& report) {
  if (report.stopped) return SayStopped(scenario, *report.stopped);
  const auto broken = BrokenBounds(scenario, report);
  for (const std::string& bound : broken) {
    fmt::print(stderr, "weir: broken bound: {}\n", bound);
  }
  if (!report.invalid.empty()) {
    return Fail(kCouldNotRun, "invalid run: " + report.invalid);
  }
  return broken.empty() ? kFine : kCouldNotRun;
}

// The load that the options describe, all of them checked; the path is that of
// the target when none is given.
Result<Scenario> LoadOf(const Options& options, const std::string& path) {
  StormLoad load{.rate = *options.rate, .paths = options.paths};
  if (load.paths.empty()) load.paths.push_back(path.empty() ? "/" : path);
  for (const std::string& each : load.paths) {
    if (!IsPath(each)) {
      return Error{
          fmt::format("--path: `{}` is no path, as in /checkout?id=1", each)};
    }
  }
  for (const auto& [option, text, out] :
       {std::tuple("--duration", &options.duration, &load.length),
        std::tuple("--deadline", &options.deadline, &load.deadline)}) {
    if (text->empty()) continue;
    const auto duration = config::ParseDuration(*text);
    if (!duration || *duration < std::chrono::milliseconds(1) ||
        *duration > std::chrono::hours(1)) {
      return Error{
          fmt::format("{}: `{}` is no time from 1ms to 1h, as in 500ms or 10s",
                      option, *text)};
    }
    *out = *duration;
  }
  if (!options.criticality.empty()) {
    const auto criticality = ParseCriticality(options.criticality);
    if (!criticality) {
      return Error{
          fmt::format("--criticality: `{}` is none; write vital, "
                      "important, deferrable or sheddable",
                      options.criticality)};
    }
    load.criticality = *criticality;
  }
  return MakeLoad(load);
}

std::optional<Error> CheckRequest(const Options& options) {
  if (!IsMethod(options.method)) {
    return Error{
        fmt::format("--method: `{}` is none, as in POST", options.method)};
  }
  for (const std::string& header : options.headers) {
    if (!IsHeaderLine(header)) {
      return Error{fmt::format(
          "--header: `{}` is none, as in 'Authorization: Bearer x'", header)};
    }
  }
  return std::nullopt;
}

// Nothing after it has been said what is wrong.
std::optional<Scenario> ScenarioOf(const Options& options,
                                   const std::string& path) {
  if (options.rate) {
    auto load = LoadOf(options, path);
    if (load) return *std::move(load);
    Fail(kWrongInput, load.error().message);
    return std::nullopt;
  }
  auto scenario = scenario::LoadScenario(options.scenario);
  if (!scenario) {
    std::fputs(scenario.complaints().Print("nothing was started").c_str(),
               stderr);
    return std::nullopt;
  }
  if (const auto error = CannotOffer(*scenario)) {
    Fail(kWrongInput, error->message);
    return std::nullopt;
  }
  if (!path.empty()) {
    Fail(kWrongInput,
         fmt::format("--target: the scenario says which paths are asked for; "
                     "leave `{}` out, or use --rate instead of a scenario",
                     path));
    return std::nullopt;
  }
  if (options.scale != 1) scenario->Stretch(options.scale);
  return *std::move(scenario);
}

std::string TextOf(const Options& options, const Scenario& scenario,
                   const Report& report) {
  if (options.json) return ToJson(report) + "\n";
  return options.rate ? LoadText(report, scenario.deadline)
                      : ToText(report, scenario.timeout) + "\n";
}

int Run(const Options& options) {
  const auto target = ParseUrl(options.target);
  if (!target) {
    return Fail(kWrongInput, "--target: " + target.error().message);
  }
  std::optional<HostPort> compare;
  if (!options.compare.empty()) {
    const auto parsed = ParseHostPort(options.compare);
    if (!parsed) {
      return Fail(kWrongInput, "--compare: " + parsed.error().message);
    }
    compare = *parsed;
  }
  if (const auto error = CheckRequest(options)) {
    return Fail(kWrongInput, error->message);
  }
  const auto scenario = ScenarioOf(options, target->path);
  if (!scenario) return kWrongInput;

  const Interrupt interrupt;
  const auto report = Storm(*scenario, options, target->host, interrupt);
  if (!report) return Fail(kCouldNotRun, report.error().message);
  if (!compare || report->stopped) {
    fmt::print("{}", TextOf(options, *scenario, *report));
    return Judge(*scenario, *report);
  }
  const auto other = Storm(*scenario, options, *compare, interrupt);
  if (!other) return Fail(kCouldNotRun, other.error().message);
  if (options.json) {
    fmt::print("{{\"target\": {}, \"compare\": {}}}\n", ToJson(*report),
               ToJson(*other));
  } else if (options.rate) {
    fmt::print("target\n{}\ncompare\n{}", LoadText(*report, scenario->deadline),
               LoadText(*other, scenario->deadline));
  } else {
    fmt::print("{}\n",
               ToText(*report, "target", *other, "compare", scenario->timeout));
  }
  if (other->stopped) return SayStopped(*scenario, *other->stopped);
  // Bounds are for the target; what it is compared with may break them.
  return Judge(*scenario, *report);
}

}  // namespace

void AddStormCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "storm", "Offer a load to a service and tell how it fared");
  command
      ->add_option("scenario", options->scenario,
                   "Scenario file; or say --rate")
      ->type_name("FILE");
  command
      ->add_option("--target", options->target,
                   "Where to, as http://127.0.0.1:8000; with --rate a path "
                   "may follow")
      ->type_name("URL")
      ->required();
  CLI::Option* rate =
      command
          ->add_option("--rate", options->rate,
                       "Requests per second, without a scenario")
          ->check(CLI::Range(.01, 1e6))
          ->type_name("N");
  const auto of_load = [](CLI::Option* option) {
    return option->group("Without a scenario");
  };
  of_load(rate);
  of_load(command->add_option("--path", options->paths,
                              "Path to ask for; several: equally often"))
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("PATH");
  of_load(command->add_option("--duration", options->duration,
                              "How long; 10s when absent"))
      ->type_name("TIME");
  of_load(command->add_option("--deadline", options->deadline,
                              "When a caller gives up; 1s when absent"))
      ->type_name("TIME");
  of_load(command->add_option("--criticality", options->criticality,
                              "vital, important, deferrable or sheddable; "
                              "important when absent"))
      ->type_name("WORD");
  command->add_option("--method", options->method, "Method of the requests")
      ->type_name("WORD")
      ->capture_default_str();
  command
      ->add_option("--header", options->headers,
                   "A header to send, as 'Authorization: Bearer x'")
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("LINE");
  command->add_option("--body", options->body, "What each request brings along")
      ->type_name("TEXT");
  command
      ->add_option("--compare", options->compare,
                   "A second service that gets the same afterwards")
      ->type_name("HOST:PORT");
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
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--baggage", options->baggage,
                    "Send the criticality as W3C baggage");
  command
      ->add_option("--settle", options->settle,
                   "Wait at most this many seconds until the service is idle; "
                   "120 when absent, with --rate 5")
      ->type_name("N")
      ->check(CLI::Range(0, 3600));
  command->callback([&action, options] {
    if (options->scenario.empty() && !options->rate) {
      throw CLI::RequiredError("a scenario file, or --rate,");
    }
    if (!options->scenario.empty() && options->rate) {
      throw CLI::ValidationError(
          "--rate", "a scenario says how much is offered; leave one out");
    }
    if (!options->rate &&
        !(options->paths.empty() && options->duration.empty() &&
          options->deadline.empty() && options->criticality.empty())) {
      throw CLI::ValidationError(
          "--path, --duration, --deadline and --criticality",
          "a scenario has its own; they go with --rate");
    }
    action = [options] { return Run(*options); };
  });
}

}  // namespace weir::cli
