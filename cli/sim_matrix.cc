// weir sim --matrix: all scenarios of the evaluation, under all algorithms.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "matrix_scenarios.h"
#include "scratch.h"
#include "sim_options.h"
#include "terminal.h"
#include "weir/scenario/read.h"
#include "weir/scenario/report.h"
#include "weir/sim/algorithms.h"
#include "weir/sim/describe.h"
#include "weir/sim/html_report.h"
#include "weir/sim/standings.h"
#include "weir/sim/study.h"

namespace weir::cli {
namespace {

using sim::Algorithm;
using std::chrono::steady_clock;

// Everybody there is: refusing at once, and behind the same queue.
constexpr std::string_view kEverybody = "weir-known,all,all+queue";
// Controllers that do not control.  One that keeps all bounds of a scenario
// shows that the scenario proves nothing.
constexpr std::string_view kMutants =
    "mutant-minimum,mutant-maximum,mutant-frozen";
// Lines that a scenario's charts can show, besides those that all show; rows
// that its table has on a terminal.
// Chosen: more make the page too big to mail, and no reader follows them.
constexpr size_t kMostLines = 8;
constexpr size_t kMostRows = 10;

// Says on the standard error how far it is: on a terminal in one line that
// changes, else in one line for each scenario.
class Progress {
 public:
  explicit Progress(size_t runs) : runs_(runs) {}

  void Begin(const std::string& scenario) {
    const std::lock_guard lock(mutex_);
    scenario_ = scenario;
    if (!terminal_) Print("\n");
  }

  void OnRun() {
    const std::lock_guard lock(mutex_);
    ++done_;
    const auto now = steady_clock::now();
    if (!terminal_ || now - printed_ < std::chrono::milliseconds(200)) return;
    printed_ = now;
    Print("\033[K\r");
  }

  void End() {
    const std::lock_guard lock(mutex_);
    scenario_ = "done";
    Print(terminal_ ? "\033[K\n" : "\n");
  }

 private:
  void Print(std::string_view end) {
    const auto passed = std::chrono::duration_cast<std::chrono::seconds>(
        steady_clock::now() - started_);
    const std::string left = TimeLeft(passed, done_, runs_);
    fmt::print(stderr, "{}/{} runs, {} min {:02} s{}: {}{}", done_, runs_,
               passed.count() / 60, passed.count() % 60,
               left.empty() ? "" : fmt::format(", {} left", left), scenario_,
               end);
    std::fflush(stderr);
  }

  const size_t runs_;
  const bool terminal_ = IsTerminal(stderr);
  const steady_clock::time_point started_ = steady_clock::now();
  std::mutex mutex_;
  std::string scenario_;
  size_t done_ = 0;
  steady_clock::time_point printed_{};
};

// Those that are named, else the matrix.  Fewer than asked for after every
// complaint was printed.
std::vector<scenario::Scenario> Load(const std::vector<std::string>& paths) {
  std::vector<scenario::Scenario> scenarios;
  const auto add = [&](config::Checked<scenario::Scenario> read) {
    if (!read) {
      std::fputs(read.complaints().Print("nothing was played").c_str(), stderr);
    } else {
      scenarios.push_back(std::move(*read));
    }
  };
  for (const std::string& path : paths) add(scenario::LoadScenario(path));
  if (!paths.empty()) return scenarios;
  for (const ScenarioText& file : MatrixScenarios()) {
    add(scenario::ParseScenario(std::string(file.text),
                                std::string(file.name)));
  }
  return scenarios;
}

std::string CommandOf(const SimOptions& options, const std::string& seeds) {
  std::string command = "weir sim --matrix";
  for (const std::string& path : options.scenarios) command += " " + path;
  return command + OptionsOf(options) + " --seeds " + seeds;
}

// Charts keep the lines of the first, of those that all charts show, and of
// the ones that did most work.
void ThinSeries(const std::vector<std::string>& drawn,
                sim_report::Study& study) {
  std::vector<std::pair<double, size_t>> by_work;
  for (size_t i = 1; i < study.algorithms.size(); ++i) {
    const auto work = study.algorithms[i].figures.find("work_ratio");
    if (!study.algorithms[i].rival || work == study.algorithms[i].figures.end())
      continue;
    by_work.emplace_back(-work->second.median, i);
  }
  std::sort(by_work.begin(), by_work.end());
  by_work.resize(std::min(by_work.size(), kMostLines));
  for (size_t i = 1; i < study.algorithms.size(); ++i) {
    const bool kept =
        std::count(drawn.begin(), drawn.end(), study.algorithms[i].name) > 0 ||
        std::any_of(by_work.begin(), by_work.end(),
                    [i](const auto& pair) { return pair.second == i; });
    if (!kept) study.algorithms[i].series = {};
  }
}

// The bounds that hold for weir, and must not for mutants.
bool Judge(const sim_report::Page& page) {
  bool fine = true;
  for (const sim_report::Study& study : page.studies) {
    for (const std::string& broken : study.algorithms[0].broken) {
      fmt::print(stderr, "weir: {} under {}, {}\n", study.name,
                 study.algorithms[0].name, broken);
      fine = false;
    }
  }
  for (const std::string& passing : sim_report::PassingMutants(page)) {
    fmt::print(stderr, "weir: no bound is broken by {}: it proves nothing\n",
               passing);
    fine = false;
  }
  return fine;
}

}  // namespace

int RunMatrix(const SimOptions& options) {
  const std::vector<scenario::Scenario> scenarios = Load(options.scenarios);
  const size_t wanted = options.scenarios.empty() ? MatrixScenarios().size()
                                                  : options.scenarios.size();
  if (scenarios.size() != wanted) return kWrongInput;
  std::shared_ptr<const Policy> policy;
  if (!LoadPolicyOf(options.policy, policy)) return kWrongInput;
  std::string list = options.algorithm;
  if (!options.against.empty()) {
    list += "," + options.against;
  } else if (options.rivals_from.empty()) {
    list += fmt::format(",{}", kEverybody);
  }
  const auto algorithms = sim::FindAlgorithms(
      fmt::format("{},{}", list, kMutants), policy, options.guard_workers);
  if (!algorithms) return Fail(kWrongInput, algorithms.error().message);
  const std::string seeds = options.seeds.empty() ? "1-10" : options.seeds;
  const auto parsed = ParseSeeds(seeds);
  if (!parsed) return FailForSeeds(seeds);

  if (const auto error = CheckWritable(options.report)) {
    return Fail(kCouldNotRun, error->message);
  }
  std::string earlier;
  if (!options.rivals_from.empty()) {
    std::ifstream file(options.rivals_from, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    earlier = text.str();
    if (!file || !nlohmann::json::accept(earlier)) {
      return Fail(
          kWrongInput,
          fmt::format("cannot take rivals from {}: {}", options.rivals_from,
                      file ? "it is no JSON" : "it cannot be read"));
    }
  }

  std::vector<std::string> names;
  for (const Algorithm& algorithm : *algorithms) {
    names.push_back(algorithm.name);
  }
  sim_report::Page page;
  page.title = "weir sim --matrix";
  page.command = CommandOf(options, seeds);
  Progress progress(scenarios.size() * names.size() * parsed->size());
  sim::StudyOptions study{.seeds = *parsed,
                          .threads = ThreadsOf(options.threads),
                          .on_run = [&progress] { progress.OnRun(); }};
  for (const scenario::Scenario& scenario : scenarios) {
    progress.Begin(scenario.name);
    if (!options.report.empty()) study.bin = BinFor(scenario);
    page.studies.push_back(
        sim_report::Describe(scenario, names, study.seeds,
                             sim::RunStudy(scenario, *algorithms, study), ""));
    ThinSeries(page.drawn, page.studies.back());
  }
  progress.End();
  if (!options.rivals_from.empty()) {
    const std::string wrong = sim_report::AddRivalsFrom(earlier, page);
    if (!wrong.empty()) {
      return Fail(kWrongInput, fmt::format("cannot take rivals from {}: {}",
                                           options.rivals_from, wrong));
    }
  }

  fmt::print("{}", options.json ? sim_report::StandingsJson(page) + "\n"
                                : sim_report::StandingsText(page, kMostRows));
  if (!options.report.empty()) {
    std::ofstream file(options.report, std::ios::binary);
    file << sim_report::HtmlReport(page);
    if (!file.flush()) {
      return Fail(kCouldNotRun, fmt::format("cannot write {}", options.report));
    }
  }
  return Judge(page) ? kFine : kCouldNotRun;
}

}  // namespace weir::cli
