// weir sim: what a policy makes of a scenario, and what others would.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "command.h"
#include "scratch.h"
#include "sim_options.h"
#include "weir/config/policy.h"
#include "weir/scenario/read.h"
#include "weir/scenario/report.h"
#include "weir/sim/algorithms.h"
#include "weir/sim/describe.h"
#include "weir/sim/html_report.h"
#include "weir/sim/study.h"
#include "weir/sim/world.h"

namespace weir::cli {
namespace {

using sim::Algorithm;
using sim::Outcomes;
using sim::Spread;

constexpr std::string_view kUnchanged = "nothing was played";

// Writes each decision as four little-endian 64-bit words: time in ns, number
// of the request (attempt in the upper 16 bits), tier and replica, verdict and
// reason.
class TraceFile final : public sim::DecisionLog {
 public:
  explicit TraceFile(const std::string& path)
      : file_(std::fopen(path.c_str(), "wb")) {}
  ~TraceFile() { Close(); }

  bool is_open() const { return file_ != nullptr; }
  // False when something could not be written.
  bool Close() {
    if (file_ == nullptr) return true;
    const bool fine = std::ferror(file_) == 0;
    return std::fclose(std::exchange(file_, nullptr)) == 0 && fine;
  }

  void Add(const sim::DecisionRecord& record) override {
    const uint64_t words[] = {
        static_cast<uint64_t>(record.at_ns), record.number,
        uint64_t{record.tier} | uint64_t{record.replica} << 16,
        static_cast<uint64_t>(record.verdict) |
            static_cast<uint64_t>(record.reason) << 8};
    for (const uint64_t word : words) {
      for (int byte = 0; byte < 8; ++byte) {
        std::fputc(static_cast<int>(word >> (8 * byte) & 0xff), file_);
      }
    }
  }

 private:
  std::FILE* file_;
};

struct Column {
  std::string_view title;
  std::string_view metric;
  double scale;
  int digits;
  bool more_is_better;
};
constexpr Column kColumns[] = {
    {"goodput", "work_ratio", 1, 3, true},
    {"p50 ms", "latency_p50_ms", 1, 1, false},
    {"p99 ms", "latency_p99_ms", 1, 0, false},
    {"false shed %", "false_shed_ratio", 100, 2, false},
    {"converge ms", "converge_ms", 1, 0, false},
    {"recover ms", "recover_ms", 1, 0, false},
    {"wasted %", "wasted_ratio", 100, 1, false},
    {"amplified", "amplification", 1, 2, false},
};

// The median, and the worst when seeds differ in what is shown.
std::string Cell(const std::vector<Outcomes>& runs, const Column& column) {
  const std::optional<Spread> spread = SpreadOf(runs, column.metric);
  if (!spread) return "-";
  const double worst = column.more_is_better ? spread->least : spread->most;
  const std::string shown =
      fmt::format("{:.{}f}", spread->median * column.scale, column.digits);
  const std::string shown_worst =
      fmt::format("{:.{}f}", worst * column.scale, column.digits);
  return shown == shown_worst ? shown
                              : fmt::format("{} ({})", shown, shown_worst);
}

void PrintComparison(const scenario::Scenario& scenario,
                     const std::vector<Algorithm>& algorithms,
                     const std::vector<std::vector<Outcomes>>& results) {
  fmt::print("{}: median{} of {} seed{}\n\n", scenario.name,
             results[0].size() > 1 ? " (worst)" : "", results[0].size(),
             results[0].size() > 1 ? "s" : "");
  std::vector<std::vector<std::string>> rows(1);
  rows[0].push_back("algorithm");
  for (const Column& column : kColumns) {
    rows[0].emplace_back(column.title);
  }
  for (size_t i = 0; i < algorithms.size(); ++i) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(algorithms[i].name);
    for (const Column& column : kColumns) {
      row.push_back(Cell(results[i], column));
    }
  }
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], row[c].size());
    }
  }
  for (const auto& row : rows) {
    fmt::print("{:<{}}", row[0], widths[0]);
    for (size_t c = 1; c < row.size(); ++c) {
      fmt::print("  {:>{}}", row[c], widths[c]);
    }
    fmt::print("\n");
  }
}

// The report's object with what only a simulator knows.
std::string RunJson(const Algorithm& algorithm, const Outcomes& run) {
  std::string json = scenario::ToJson(run.report);
  json.pop_back();  // The closing brace.
  if (run.others_good_ratio) {
    json +=
        fmt::format(",\"others_good_ratio\":{:.6g}", *run.others_good_ratio);
  }
  return json + fmt::format(
                    ",\"algorithm\":\"{}\",\"fairness\":{:.6g},"
                    "\"inversions_per_1000\":{:.6g},\"unsteadiness\":{:.6g},"
                    "\"unanswered\":{},\"events\":{}}}",
                    algorithm.name, run.fairness, run.inversions_per_1000,
                    run.unsteadiness, run.unanswered, run.events);
}

std::string SummaryJson(const Algorithm& algorithm,
                        const std::vector<Outcomes>& runs) {
  std::string json = fmt::format("{{\"algorithm\":\"{}\"", algorithm.name);
  for (const Column& column : kColumns) {
    const std::optional<Spread> spread = SpreadOf(runs, column.metric);
    if (!spread) continue;
    json += fmt::format(
        ",\"{}\":{{\"median\":{:.6g},\"min\":{:.6g},\"max\":{:.6g}}}",
        column.metric, spread->median, spread->least, spread->most);
  }
  return json + "}";
}

void PrintJson(const std::vector<Algorithm>& algorithms,
               const std::vector<std::vector<Outcomes>>& results) {
  std::string json = RunJson(algorithms[0], results[0][0]);
  if (algorithms.size() > 1 || results[0].size() > 1) {
    json.pop_back();
    json += ",\"algorithms\":[";
    for (size_t i = 0; i < algorithms.size(); ++i) {
      json += (i > 0 ? "," : "") + SummaryJson(algorithms[i], results[i]);
    }
    json += "],\"runs\":[";
    for (size_t i = 0; i < algorithms.size(); ++i) {
      for (size_t seed = 0; seed < results[i].size(); ++seed) {
        json += (i + seed > 0 ? "," : "") +
                RunJson(algorithms[i], results[i][seed]);
      }
    }
    json += "]}";
  }
  fmt::print("{}\n", json);
}

// The bounds of the scenario hold for each seed of the first algorithm.
bool PrintBrokenBounds(const scenario::Scenario& scenario,
                       const Algorithm& algorithm,
                       const std::vector<Outcomes>& runs) {
  bool fine = true;
  for (const Outcomes& run : runs) {
    for (const std::string& broken :
         scenario::BrokenBounds(scenario, run.report)) {
      fmt::print(stderr, "weir: {} under {}, seed {}: {}\n", scenario.name,
                 algorithm.name, run.report.seed, broken);
      fine = false;
    }
  }
  return fine;
}

// With the seeds spelled out: their default is the first scenario's.
std::string CommandOf(const SimOptions& options, const std::string& scenarios,
                      const std::vector<uint64_t>& seeds) {
  return fmt::format(
      "weir sim {}{} --seeds {}", scenarios, OptionsOf(options),
      options.seeds.empty() ? fmt::to_string(seeds.at(0)) : options.seeds);
}

struct Played {
  scenario::Scenario scenario;
  std::vector<std::vector<Outcomes>> results;
};

// All scenarios, or nothing after every complaint was printed.
std::optional<std::vector<Played>> LoadScenarios(
    const std::vector<std::string>& paths) {
  std::vector<Played> played;
  for (const std::string& path : paths) {
    auto scenario = scenario::LoadScenario(path);
    if (!scenario) {
      std::fputs(scenario.complaints().Print(kUnchanged).c_str(), stderr);
    } else {
      played.push_back({std::move(*scenario), {}});
    }
  }
  if (played.size() != paths.size()) return std::nullopt;
  return played;
}

void Print(const SimOptions& options, const std::vector<Algorithm>& algorithms,
           const std::vector<Played>& all) {
  for (const Played& played : all) {
    if (options.json) {
      PrintJson(algorithms, played.results);
    } else if (algorithms.size() == 1 && played.results[0].size() == 1) {
      fmt::print("{}", scenario::ToText(played.results[0][0].report,
                                        played.scenario.timeout));
    } else {
      PrintComparison(played.scenario, algorithms, played.results);
    }
    if (&played != &all.back() && !options.json) fmt::print("\n");
  }
}

// False when the file cannot be written.
bool WriteReport(const SimOptions& options,
                 const std::vector<Algorithm>& algorithms,
                 const std::vector<uint64_t>& seeds,
                 const std::vector<Played>& all) {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : algorithms) {
    names.push_back(algorithm.name);
  }
  sim_report::Page page;
  for (size_t i = 0; i < all.size(); ++i) {
    page.studies.push_back(
        sim_report::Describe(all[i].scenario, names, seeds, all[i].results,
                             CommandOf(options, options.scenarios[i], seeds)));
  }
  if (page.studies.size() == 1) page.title = page.studies[0].name;
  std::ofstream file(options.report, std::ios::binary);
  file << sim_report::HtmlReport(page);
  return static_cast<bool>(file.flush());
}

int Play(const SimOptions& options, std::vector<Played> all) {
  if (const auto error = CheckWritable(options.report)) {
    return Fail(kCouldNotRun, error->message);
  }
  std::shared_ptr<const Policy> policy;
  if (!LoadPolicyOf(options.policy, policy)) return kWrongInput;
  const auto algorithms = sim::FindAlgorithms(
      options.algorithm +
          (options.against.empty() ? "" : "," + options.against),
      policy, options.guard_workers);
  if (!algorithms) return Fail(kWrongInput, algorithms.error().message);

  sim::StudyOptions study;
  study.seeds = {all.front().scenario.seed};
  if (!options.seeds.empty()) {
    const auto seeds = ParseSeeds(options.seeds);
    if (!seeds) return FailForSeeds(options.seeds);
    study.seeds = *seeds;
  }
  study.threads = ThreadsOf(options.threads);
  std::optional<TraceFile> trace;
  if (!options.trace.empty()) {
    trace.emplace(options.trace);
    if (!trace->is_open()) {
      return Fail(kCouldNotRun, fmt::format("cannot write {}", options.trace));
    }
    study.log = &*trace;
  }

  bool fine = true;
  for (Played& played : all) {
    if (!options.report.empty()) study.bin = BinFor(played.scenario);
    played.results = sim::RunStudy(played.scenario, *algorithms, study);
    study.log = nullptr;
    fine = PrintBrokenBounds(played.scenario, (*algorithms)[0],
                             played.results[0]) &&
           fine;
  }
  if (trace && !trace->Close()) {
    return Fail(kCouldNotRun, fmt::format("cannot write {}", options.trace));
  }
  Print(options, *algorithms, all);
  if (!options.report.empty() &&
      !WriteReport(options, *algorithms, study.seeds, all)) {
    return Fail(kCouldNotRun, fmt::format("cannot write {}", options.report));
  }
  return fine ? kFine : kCouldNotRun;
}

int RunSim(const SimOptions& options) {
  auto all = LoadScenarios(options.scenarios);
  return all ? Play(options, *std::move(all)) : kWrongInput;
}

}  // namespace

int PlayScenario(const SimOptions& options, scenario::Scenario scenario) {
  std::vector<Played> all;
  all.push_back({std::move(scenario), {}});
  return Play(options, std::move(all));
}

std::optional<std::vector<uint64_t>> ParseSeeds(std::string_view text) {
  std::vector<uint64_t> seeds;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    uint64_t first = 0;
    auto read = std::from_chars(at, end, first);
    if (read.ec != std::errc()) return std::nullopt;
    uint64_t last = first;
    if (read.ptr != end && *read.ptr == '-') {
      read = std::from_chars(read.ptr + 1, end, last);
      if (read.ec != std::errc()) return std::nullopt;
    }
    constexpr uint64_t kMost = 10'000;
    if (last < first || last - first >= kMost) return std::nullopt;
    for (uint64_t seed = first; seed <= last; ++seed) seeds.push_back(seed);
    if (read.ptr != end && *read.ptr++ != ',') return std::nullopt;
    at = read.ptr;
  }
  if (seeds.empty()) return std::nullopt;
  return seeds;
}

int FailForSeeds(const std::string& text) {
  return Fail(kWrongInput, fmt::format("`--seeds {}` is neither a number "
                                       "nor a range such as 1-10",
                                       text));
}

std::string OptionsOf(const SimOptions& options) {
  std::string text;
  const auto add = [&text](std::string_view name, const std::string& value) {
    if (!value.empty()) text += fmt::format(" {} {}", name, value);
  };
  add("--policy", options.policy);
  if (options.guard_workers != 1) {
    add("--guard-workers", std::to_string(options.guard_workers));
  }
  if (options.algorithm != "weir") add("--algorithm", options.algorithm);
  add("--against", options.against);
  add("--rivals-from", options.rivals_from);
  return text;
}

int ThreadsOf(int asked) {
  if (asked > 0) return asked;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

Duration BinFor(const scenario::Scenario& scenario) {
  constexpr Duration kStep = std::chrono::milliseconds(100);
  return kStep * std::max<int64_t>(1, scenario.length() / kStep / 200);
}

std::string TimeLeft(std::chrono::seconds passed, size_t done, size_t all) {
  if (done == 0 || done >= all) return {};
  const auto left = static_cast<int64_t>(static_cast<double>(passed.count()) *
                                         static_cast<double>(all - done) /
                                         static_cast<double>(done));
  if (left < 60) return fmt::format("{} s", left);
  if (left < 3600) return fmt::format("{} min", left / 60);
  return fmt::format("{} h {} min", left / 3600, left / 60 % 60);
}

bool LoadPolicyOf(const std::string& path,
                  std::shared_ptr<const Policy>& policy) {
  if (path.empty()) return true;
  const auto read = config::LoadPolicy(path);
  if (read) {
    policy = std::make_shared<const Policy>(*read);
  } else {
    std::fputs(read.complaints().Print(kUnchanged).c_str(), stderr);
  }
  return policy != nullptr;
}

void AddSimCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<SimOptions>();
  CLI::App* command =
      app.add_subcommand("sim", "Play scenarios in virtual time");
  command->add_option("scenarios", options->scenarios,
                      "Scenario files; with --matrix: default S01 to S18");
  command->add_flag("--matrix", options->matrix,
                    "Under all algorithms, ranked; and mutants, which must "
                    "break the bounds");
  command->add_option("--policy", options->policy,
                      "Policy of the guard; default: none but the scenario's");
  command
      ->add_option("--algorithm", options->algorithm,
                   "What to play it with, and to hold to [expect]")
      ->capture_default_str();
  command->add_option("--against", options->against,
                      "Compare with these, separated by commas; NAME+queue "
                      "puts a queue before NAME, all is all of them");
  command->add_option("--seeds", options->seeds,
                      "Such as 1-10; default: the first scenario's own, "
                      "of --matrix 1-10");
  command->add_option("--trace", options->trace,
                      "Write each decision of the first run to this file");
  command->add_option("--report", options->report,
                      "Write tables and charts to this HTML file");
  command->add_option("--rivals-from", options->rivals_from,
                      "With --matrix: the JSON of an earlier one; its rivals "
                      "are not played again");
  command
      ->add_option("--guard-workers", options->guard_workers,
                   "Processes over which each guard is spread, as over the "
                   "workers of nginx")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--threads", options->threads,
                      "Runs at a time; default: one for each core");
  command->add_flag("--json", options->json,
                    "Print one JSON object for each scenario");
  command->callback([&action, options] {
    if (options->matrix) {
      if (!options->trace.empty()) {
        throw CLI::ValidationError("--trace",
                                   "one run is traced, not a matrix");
      }
      action = [options] { return RunMatrix(*options); };
    } else {
      if (options->scenarios.empty()) {
        throw CLI::RequiredError("scenarios (or --matrix)");
      }
      if (!options->rivals_from.empty()) {
        throw CLI::ValidationError(
            "--rivals-from",
            "rivals of a matrix are no part of one scenario's "
            "play; add --matrix, or leave it out");
      }
      action = [options] { return RunSim(*options); };
    }
  });
}

}  // namespace weir::cli
