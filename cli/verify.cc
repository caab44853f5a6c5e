// weir verify: does the simulator say what happens?

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "agreement.h"
#include "backend_service.h"
#include "command.h"
#include "nginx_conf.h"
#include "process.h"
#include "scratch.h"
#include "up_policy.h"
#include "weir/config/policy.h"
#include "weir/scenario/read.h"
#include "weir/scenario/report.h"
#include "weir/sim/algorithms.h"
#include "weir/sim/world.h"

namespace weir::cli {
namespace {

using nlohmann::json;
using scenario::Scenario;

struct Options {
  std::string scenario;
  std::string policy;
  double scale = 1;
  int seeds = 1;
  int guard_workers = 0;
  Tolerance tolerance;
  bool json = false;
};

// Plays the scenario for real, as `weir up --demo` does, in a child of its own:
// what it starts ends with it.
class RealRuns {
 public:
  explicit RealRuns(const Options& options) : options_(options) {}

  std::optional<Error> Prepare(std::string_view policy);
  const std::string& policy() const { return policy_; }
  // The report of the run through nginx with weir.
  Result<json> Play(uint64_t seed);

 private:
  const Options& options_;
  std::optional<Scratch> scratch_;
  Supervisor children_;
  std::string policy_;
};

std::optional<Error> RealRuns::Prepare(std::string_view policy) {
  Result<Scratch> scratch = Scratch::Make("weir-verify-");
  if (!scratch) return scratch.error();
  scratch_ = *std::move(scratch);
  const Result<std::string> path = scratch_->Write("policy.toml", policy);
  if (!path) return path.error();
  policy_ = *path;
  return std::nullopt;
}

Result<json> RealRuns::Play(uint64_t seed) {
  std::error_code ignored;
  const std::string log = scratch_->Path(fmt::format("run-{}.log", seed));
  const Result<pid_t> pid = children_.Start(
      {.name = "weir up",
       .argv = {std::filesystem::read_symlink("/proc/self/exe", ignored), "up",
                "--demo", "--guarded-only", "--json", "--scenario",
                options_.scenario, "--policy", policy_, "--workers",
                std::to_string(options_.guard_workers), "--scale",
                fmt::format("{}", options_.scale), "--seed",
                std::to_string(seed)},
       .log = log});
  if (!pid) return pid.error();
  Supervisor::Event event;
  do {
    event = children_.Wait(std::chrono::hours(24));
    if (event.kind == Supervisor::Event::Kind::kStop) return Error{"stopped"};
  } while (event.kind != Supervisor::Event::Kind::kExit || event.pid != *pid);
  std::ifstream file(log, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  json report = ProtectedReport(text);
  // It ends with 1 when a bound of the scenario is broken, which is not what
  // is asked here; without a report there was no run.
  if (report.is_null()) return Error{children_.Obituary(event)};
  if (!report.value("valid", true)) {
    return Error{fmt::format(
        "the real run with seed {} is not to be trusted: {}; give it a machine "
        "of its own, or a scenario with less load",
        seed, report.value("invalid", ""))};
  }
  return report;
}

void PrintText(const Scenario& scenario, const Options& options,
               const std::vector<Agreement>& list) {
  size_t width = 5;
  for (const Agreement& a : list) width = std::max(width, a.name.size());
  fmt::print("{:<{}}  {:<8}  {:>10}  {:>10}  {:>10}\n", "phase", width,
             "figure", "simulated", "real", "difference");
  for (const Agreement& a : list) {
    const int digits = a.figure == "goodput" ? 4 : 1;
    fmt::print(
        "{:<{}}  {:<8}  {:>10.{}f}  {:>10.{}f}  {:>+9.1f} %{}\n", a.name, width,
        a.figure, a.simulated, digits, a.real, digits, 100 * a.difference,
        !a.judged    ? ""
        : a.agrees() ? "  agrees"
                     : fmt::format("  beyond {:.0f} %", 100 * a.allowed));
  }
  fmt::print(
      "\n{}: goodput is what was answered in time, of what was offered; "
      "seeds {} to {}{}\n",
      scenario.name, scenario.seed,
      scenario.seed + static_cast<uint64_t>(options.seeds) - 1,
      options.seeds > 1 ? ", medians" : "");
}

void PrintJson(const Scenario& scenario, const std::vector<Agreement>& list,
               const std::vector<json>& simulated,
               const std::vector<json>& real, bool agrees) {
  nlohmann::ordered_json out;
  out["scenario"] = scenario.name;
  out["agrees"] = agrees;
  out["figures"] = nlohmann::ordered_json::array();
  for (const Agreement& a : list) {
    nlohmann::ordered_json one = {{"phase", a.name},
                                  {"figure", a.figure},
                                  {"simulated", a.simulated},
                                  {"real", a.real},
                                  {"difference", a.difference}};
    if (a.judged) one["allowed"] = a.allowed;
    out["figures"].push_back(std::move(one));
  }
  out["simulated"] = simulated;
  out["real"] = real;
  fmt::print("{}\n", out.dump());
}

int Run(const Options& options) {
  constexpr std::string_view kUnchanged = "nothing was played";
  auto scenario = scenario::LoadScenario(options.scenario);
  if (!scenario) {
    std::fputs(scenario.complaints().Print(kUnchanged).c_str(), stderr);
    return kWrongInput;
  }
  if (const std::string list = NotPlayed(*scenario); !list.empty()) {
    return Fail(kWrongInput,
                fmt::format("{} has what only the simulator plays: {}",
                            options.scenario, list));
  }
  // One policy for both worlds.  Each process has its own, so that instances
  // do not share a limit.
  std::string text = DefaultPolicy(fmt::format("verify-{}", getpid()));
  if (!options.policy.empty()) {
    std::ifstream file(options.policy, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(file), {});
    if (!file) {
      return Fail(kWrongInput, fmt::format("cannot read {}", options.policy));
    }
  }
  const auto policy = config::ParsePolicy(
      text, options.policy.empty() ? "policy" : options.policy);
  if (!policy) {
    std::fputs(policy.complaints().Print(kUnchanged).c_str(), stderr);
    return kWrongInput;
  }
  if (options.scale != 1) scenario->Stretch(options.scale);

  RealRuns real_runs(options);
  if (const auto error = real_runs.Prepare(text)) {
    return Fail(kCouldNotRun, error->message);
  }
  const sim::Algorithm weir =
      sim::Weir("weir", std::make_shared<const Policy>(*policy), false,
                options.guard_workers);
  // What is played for real stands behind nginx.
  scenario->seat = scenario::Seat::kProxy;
  std::vector<json> simulated;
  std::vector<json> real;
  for (int i = 0; i < options.seeds; ++i) {
    const uint64_t seed = scenario->seed + static_cast<uint64_t>(i);
    simulated.push_back(json::parse(
        ToJson(sim::Simulate(*scenario, weir, {.seed = seed}).report)));
    fmt::print(stderr, "for real, seed {}: {:.0f} s\n", seed,
               ToSeconds(scenario->length()));
    auto report = real_runs.Play(seed);
    if (!report) return Fail(kCouldNotRun, report.error().message);
    real.push_back(*std::move(report));
  }
  const auto list = Compare(simulated, real, options.tolerance);
  const bool agrees = std::all_of(
      list.begin(), list.end(), [](const Agreement& a) { return a.agrees(); });
  if (options.json) {
    PrintJson(*scenario, list, simulated, real, agrees);
  } else {
    PrintText(*scenario, options, list);
  }
  return agrees ? kFine : kCouldNotRun;
}

}  // namespace

void AddVerifyCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  options->guard_workers = DefaultNginxWorkers();
  CLI::App* command = app.add_subcommand(
      "verify", "Play a scenario simulated and for real, and compare");
  command->add_option("scenario", options->scenario, "Scenario file")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--policy", options->policy,
                   "Policy in both worlds; that of `weir up` when absent")
      ->type_name("FILE");
  command
      ->add_option("--scale", options->scale,
                   "Multiply the lengths of phases, and when things change")
      ->check(CLI::Range(0.001, 1000.))
      ->capture_default_str();
  command
      ->add_option("--guard-workers", options->guard_workers,
                   "Workers of nginx, over which the guard is spread")
      ->check(CLI::Range(1, 32))
      ->capture_default_str();
  command->add_option("--seeds", options->seeds, "Runs, of which the median")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command
      ->add_option("--goodput-tolerance", options->tolerance.goodput,
                   "How far goodput may be off, as a ratio")
      ->check(CLI::Range(0., 10.))
      ->capture_default_str();
  command
      ->add_option("--latency-tolerance", options->tolerance.latency,
                   "The same for p50 and p99")
      ->check(CLI::Range(0., 10.))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback(
      [&action, options] { action = [options] { return Run(*options); }; });
}

}  // namespace weir::cli
