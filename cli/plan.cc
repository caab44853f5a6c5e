// weir plan: how many instances, and what if some go.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "command.h"
#include "planning.h"
#include "weir/config/policy.h"
#include "weir/config/units.h"
#include "weir/scenario/capacity.h"
#include "weir/scenario/read.h"
#include "weir/scenario/report.h"
#include "weir/sim/algorithms.h"
#include "weir/sim/study.h"

namespace weir::cli {
namespace {

using scenario::Scenario;

struct Options {
  std::string scenario;
  std::string policy;
  std::string instances;
  std::string goal = "goodput>=0.99";
  int lose = 0;
  bool site_loss = false;
  int sites = 2;
  std::string lose_at;
  std::optional<int> retries;
  std::optional<int> layers;
  int seeds = 3;
  int threads = 0;
  bool json = false;
};

struct Range {
  int low = 1;
  int high = 1;
};

constexpr int kMostInstances = 1000;  // As scenarios have it.

// "8" or "2..12".
std::optional<Range> ParseRange(const std::string& text) {
  Range range;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%d..%d%c", &range.low, &range.high, &rest) !=
      2) {
    if (std::sscanf(text.c_str(), "%d%c", &range.low, &rest) != 1) {
      return std::nullopt;
    }
    range.high = range.low;
  }
  if (range.low < 1 || range.high < range.low || range.high > kMostInstances) {
    return std::nullopt;
  }
  return range;
}

std::string CommandOf(const Options& options) {
  std::string command = "weir plan " + options.scenario;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) command += fmt::format(" {} {}", name, value);
  };
  add("--policy", options.policy);
  add("--instances", options.instances);
  if (options.lose > 0) add("--lose", std::to_string(options.lose));
  if (options.site_loss) command += " --site-loss";
  if (options.site_loss && options.sites != 2) {
    add("--sites", std::to_string(options.sites));
  }
  add("--lose-at", options.lose_at);
  if (options.retries) add("--retries", std::to_string(*options.retries));
  if (options.layers) add("--layers", std::to_string(*options.layers));
  command +=
      fmt::format(" --goal '{}' --seeds {}", options.goal, options.seeds);
  return command;
}

class Planner {
 public:
  Planner(const Options& options, Scenario scenario,
          std::shared_ptr<const Policy> policy, std::vector<GoalBound> goal)
      : options_(options),
        scenario_(std::move(scenario)),
        policy_(std::move(policy)),
        goal_(std::move(goal)) {}

  int Run();

 private:
  std::optional<Error> Prepare();
  Trial Play(int instances, std::string_view algorithm) const;
  std::string Missed(const Trial& trial) const;
  std::string Value(const GoalBound& bound, double value) const;
  void PrintText(const Search& search, const std::vector<Trial>& without) const;
  void PrintRow(const Trial& trial, std::string_view guard) const;
  void PrintJson(const Search& search, const std::vector<Trial>& without) const;

  const Options& options_;
  Scenario scenario_;
  std::shared_ptr<const Policy> policy_;
  std::vector<GoalBound> goal_;
  Variant variant_;
  Range range_;
  double peak_ = 0;
  double capacity_ = 0;
  int arithmetic_ = 0;
};

std::optional<Error> Planner::Prepare() {
  variant_ = {.lose = options_.lose,
              .sites = options_.site_loss ? options_.sites : 0,
              .lose_at = UsualLoss(scenario_.length()),
              .retries = options_.retries,
              .layers = options_.layers};
  if (!options_.lose_at.empty()) {
    const auto at = config::ParseDuration(options_.lose_at);
    if (!at) {
      return Error{
          fmt::format("--lose-at {} {}", options_.lose_at, at.error().message)};
    }
    variant_.lose_at = *at;
  }
  for (const GoalBound& bound : goal_) {
    const bool known = bound.cls.empty() ||
                       std::any_of(scenario_.classes.begin(),
                                   scenario_.classes.end(), [&](const auto& c) {
                                     return Name(c.criticality) == bound.cls;
                                   });
    if (!known) {
      return Error{
          fmt::format("--goal: the scenario has no class `{}`", bound.cls)};
    }
  }
  peak_ = PeakOf(scenario_);
  capacity_ = CapacityOfOne(scenario_);
  arithmetic_ = variant_.sites > 0
                    ? InstancesForSites(peak_, capacity_, variant_.sites)
                    : InstancesFor(peak_, capacity_, variant_.lose);
  if (options_.instances.empty()) {
    // Twice what arithmetic says is for bursts and retries.
    const int fewest = variant_.sites > 0 ? 2 : 1 + variant_.lose;
    range_ = {fewest, std::clamp(2 * arithmetic_, fewest, kMostInstances)};
  } else if (const auto range = ParseRange(options_.instances)) {
    range_ = *range;
  } else {
    return Error{fmt::format(
        "--instances {}: write a number or a range up to {}, such as 2..12",
        options_.instances, kMostInstances)};
  }
  for (const int instances : {range_.low, range_.high}) {
    if (auto made = WithInstances(scenario_, instances, variant_); !made) {
      return made.error();
    }
  }
  return std::nullopt;
}

Trial Planner::Play(int instances, std::string_view algorithm) const {
  // Prepare() has tried both ends of the range; what lies between is no worse.
  const auto variant = WithInstances(scenario_, instances, variant_);
  const auto algorithms = sim::FindAlgorithms(algorithm, policy_);
  sim::StudyOptions study;
  study.seeds.clear();
  for (int i = 0; i < options_.seeds; ++i) {
    study.seeds.push_back(scenario_.seed + static_cast<uint64_t>(i));
  }
  study.threads =
      options_.threads > 0
          ? options_.threads
          : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return {instances, sim::RunStudy(*variant, *algorithms, study)[0]};
}

std::string Planner::Value(const GoalBound& bound, double value) const {
  return bound.metric.ends_with("_ms") ? fmt::format("{:.1f} ms", value)
                                       : fmt::format("{:.4f}", value);
}

// "`p99<=200ms` is missed: 512.0 ms".
std::string Planner::Missed(const Trial& trial) const {
  std::string text;
  for (const GoalBound& bound : goal_) {
    const auto worst = trial.Worst(bound);
    if (!worst ||
        (bound.at_least ? *worst >= bound.value : *worst <= bound.value)) {
      continue;
    }
    text += fmt::format("{}`{}` is missed: {}", text.empty() ? "" : ", ",
                        bound.text, Value(bound, *worst));
  }
  return text;
}

void Planner::PrintRow(const Trial& trial, std::string_view guard) const {
  const auto worst = [&](std::string_view metric, bool at_least) {
    return trial.Worst({.metric = std::string(metric), .at_least = at_least})
        .value_or(0);
  };
  fmt::print(
      "{:>9}  {:<5}  {:>7.4f}  {:>8.1f}  {:>8.1f}  {:>6.2f}  {:>9.2f}  {}\n",
      trial.instances, guard, worst("good_ratio", true),
      worst("latency_p50_ms", false), worst("latency_p99_ms", false),
      100 * worst("shed_ratio", false), worst("amplification", false),
      trial.Meets(goal_) ? "met" : "missed");
}

void Planner::PrintText(const Search& search,
                        const std::vector<Trial>& without) const {
  const std::string name = scenario_.tiers[0].name;
  if (search.answer) {
    fmt::print("You need {} instance{} of `{}`", *search.answer,
               *search.answer == 1 ? "" : "s", name);
    const auto below = std::find_if(
        search.trials.begin(), search.trials.end(), [&](const Trial& trial) {
          return trial.instances == *search.answer - 1;
        });
    fmt::print(
        "{}.\n",
        below == search.trials.end()
            ? (range_.low == *search.answer ? "; fewer were not tried" : "")
            : fmt::format("; with {} the goal {}", below->instances,
                          Missed(*below)));
  } else {
    const Trial& most = search.trials.back();
    fmt::print("Not even {} instance{} of `{}` do: the goal {}.\n",
               most.instances, most.instances == 1 ? "" : "s", name,
               Missed(most));
  }
  if (!search.monotone) {
    fmt::print(
        "BEWARE: a larger number was tried and missed the goal; the answer is "
        "near the edge of chance.  Try more --seeds.\n");
  }
  fmt::print(
      "\ninstances  guard  goodput    p50 ms    p99 ms  shed %  amplified  "
      "goal {}\n",
      options_.goal);
  for (const Trial& trial : search.trials) {
    PrintRow(trial, "weir");
    for (const Trial& other : without) {
      if (other.instances == trial.instances) PrintRow(other, "none");
    }
  }
  fmt::print("(the worst of {} seed{}, each figure by itself)\n\n",
             options_.seeds, options_.seeds == 1 ? "" : "s");
  const int lost = variant_.Lost(search.answer.value_or(range_.high));
  const std::string spare =
      variant_.sites > 0 ? fmt::format(", with one of {} sites away {}",
                                       variant_.sites, arithmetic_)
      : variant_.lose > 0
          ? fmt::format(", and {} to spare {}", variant_.lose, arithmetic_)
          : "";
  fmt::print("By arithmetic: {:.5g}/s at the peak, {:.5g}/s each: {}{}.\n",
             peak_, capacity_, InstancesFor(peak_, capacity_, 0), spare);
  if (lost > 0) {
    fmt::print("Lost: {} of {} at {}, for good.\n", lost,
               search.answer.value_or(range_.high),
               config::FormatDuration(variant_.lose_at));
  }
  const int retries = variant_.retries.value_or(scenario_.retries.count);
  const int layers = variant_.layers.value_or(scenario_.retries.layers);
  if (retries > 0) {
    fmt::print("Retries: {} at {} layer{}, up to {:.0f} attempts a request.\n",
               retries, layers, layers == 1 ? "" : "s",
               std::pow(1 + retries, layers));
  }
  fmt::print("Seeds: {} to {}.  Again: {}\n", scenario_.seed,
             scenario_.seed + static_cast<uint64_t>(options_.seeds) - 1,
             CommandOf(options_));
}

void Planner::PrintJson(const Search& search,
                        const std::vector<Trial>& without) const {
  nlohmann::ordered_json json;
  json["scenario"] = scenario_.name;
  json["goal"] = options_.goal;
  json["instances"] = search.answer ? nlohmann::ordered_json(*search.answer)
                                    : nlohmann::ordered_json();
  json["monotone"] = search.monotone;
  json["arithmetic"] = arithmetic_;
  json["peak_per_second"] = peak_;
  json["capacity_of_one_per_second"] = capacity_;
  json["command"] = CommandOf(options_) + " --json";
  json["trials"] = nlohmann::ordered_json::array();
  const auto add = [&](const Trial& trial, std::string_view guard) {
    nlohmann::ordered_json runs = nlohmann::ordered_json::array();
    for (const sim::Outcomes& run : trial.runs) {
      runs.push_back(nlohmann::ordered_json::parse(ToJson(run.report)));
    }
    json["trials"].push_back({{"instances", trial.instances},
                              {"guard", guard},
                              {"lost", variant_.Lost(trial.instances)},
                              {"met", trial.Meets(goal_)},
                              {"runs", std::move(runs)}});
  };
  for (const Trial& trial : search.trials) add(trial, "weir");
  for (const Trial& trial : without) add(trial, "none");
  fmt::print("{}\n", json.dump());
}

int Planner::Run() {
  if (const auto error = Prepare()) return Fail(kWrongInput, error->message);
  const Search search =
      FindFewest(range_.low, range_.high, goal_,
                 [this](int instances) { return Play(instances, "weir"); });
  std::vector<Trial> without;
  const int shown = search.answer.value_or(range_.high);
  for (const Trial& trial : search.trials) {
    if (std::abs(trial.instances - shown) <= 1) {
      without.push_back(Play(trial.instances, "none"));
    }
  }
  if (options_.json) {
    PrintJson(search, without);
  } else {
    PrintText(search, without);
  }
  return search.answer ? kFine : kCouldNotRun;
}

int Run(const Options& options) {
  constexpr std::string_view kUnchanged = "nothing was played";
  auto scenario = scenario::LoadScenario(options.scenario);
  if (!scenario) {
    std::fputs(scenario.complaints().Print(kUnchanged).c_str(), stderr);
    return kWrongInput;
  }
  std::shared_ptr<const Policy> policy;
  if (!options.policy.empty()) {
    const auto read = config::LoadPolicy(options.policy);
    if (!read) {
      std::fputs(read.complaints().Print(kUnchanged).c_str(), stderr);
      return kWrongInput;
    }
    policy = std::make_shared<const Policy>(*read);
  }
  auto goal = ParseGoal(options.goal);
  if (!goal) return Fail(kWrongInput, "--goal: " + goal.error().message);
  return Planner(options, *std::move(scenario), std::move(policy),
                 *std::move(goal))
      .Run();
}

}  // namespace

void AddPlanCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "plan", "Find how many instances a scenario needs, and what losses cost");
  command->add_option("scenario", options->scenario, "Scenario file")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--policy", options->policy,
                   "Policy of the guard; default: none but the scenario's")
      ->type_name("FILE");
  command
      ->add_option("--instances", options->instances,
                   "How many to try; up to twice what arithmetic says when "
                   "absent")
      ->type_name("N..M");
  command
      ->add_option("--goal", options->goal,
                   "Bounds of goodput, p50, p99, p999, a class or a figure of "
                   "[expect], separated by commas")
      ->capture_default_str();
  CLI::Option* lose = command
                          ->add_option("--lose", options->lose,
                                       "Instances that go away during the run")
                          ->check(CLI::Range(0, kMostInstances - 1));
  command
      ->add_flag("--site-loss", options->site_loss,
                 "All instances of one site go away during the run")
      ->excludes(lose);
  command->add_option("--sites", options->sites, "Equal sites there are")
      ->check(CLI::Range(2, 100))
      ->capture_default_str();
  command->add_option("--lose-at", options->lose_at,
                      "When they go; after a third of the run when absent");
  command
      ->add_option("--retries", options->retries,
                   "Retries of each caller, instead of the scenario's")
      ->check(CLI::Range(0, 20));
  command
      ->add_option("--layers", options->layers,
                   "Callers in a row that each retry")
      ->check(CLI::Range(1, 5));
  command
      ->add_option("--seeds", options->seeds,
                   "Runs of each, which all must meet the goal")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_option("--threads", options->threads,
                      "Runs at a time; one for each core when absent");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback(
      [&action, options] { action = [options] { return Run(*options); }; });
}

}  // namespace weir::cli
