// weir hunt: draws random worlds and looks where a law loses most.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "command.h"
#include "sim_options.h"
#include "terminal.h"
#include "weir/hunt/draw.h"
#include "weir/hunt/figures.h"
#include "weir/hunt/table.h"

namespace weir::cli {
namespace {

constexpr std::string_view kNone = "none";
// Those that stand for the field; docs/hunt.md.
constexpr std::string_view kRivals =
    "fixed+queue,folly-codel,brpc-auto+queue,"
    "netflix-gradient2-windowed+queue,envoy-gradient";

struct Options {
  std::string seeds = "1-100";
  std::string algorithm = "weir";
  std::string against = std::string(kRivals);
  std::string policy;
  std::string rivals_from;
  std::string rivals_to;
  std::optional<uint64_t> print;
  size_t worst = 10;
  int threads = 0;
};

std::vector<std::string> SplitNames(const std::string& list) {
  std::vector<std::string> names;
  std::stringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
  return names;
}

// "3/400 worlds, 0 min 12 s" on the standard error, now and then.
class Progress {
 public:
  explicit Progress(size_t worlds) : worlds_(worlds) {}

  void OnWorld() {
    const std::lock_guard lock(mutex_);
    ++done_;
    const auto now = std::chrono::steady_clock::now();
    const auto pause = std::chrono::seconds(terminal_ ? 1 : 60);
    if (now - printed_ < pause && done_ < worlds_) return;
    printed_ = now;
    const auto passed =
        std::chrono::duration_cast<std::chrono::seconds>(now - started_);
    fmt::print(stderr, "{}{}/{} worlds, {} min {:02} s{}",
               terminal_ ? "\r" : "", done_, worlds_, passed.count() / 60,
               passed.count() % 60, terminal_ && done_ < worlds_ ? "" : "\n");
    std::fflush(stderr);
  }

 private:
  const size_t worlds_;
  const bool terminal_ = IsTerminal(stderr);
  const std::chrono::steady_clock::time_point started_ =
      std::chrono::steady_clock::now();
  std::mutex mutex_;
  size_t done_ = 0;
  std::chrono::steady_clock::time_point printed_ = started_;
};

// How `weir sim` plays the world, as a comment.
std::string CommandFor(const hunt::World& world, const std::string& file) {
  return fmt::format(
      "weir sim {}{}{}", file,
      world.told_workers ? " --algorithm weir-known" : "",
      world.guard_workers == 1
          ? ""
          : fmt::format(" --guard-workers {}", world.guard_workers));
}

void Print(const hunt::World& world) {
  std::string traits;
  for (const std::string& trait : world.traits) {
    traits += (traits.empty() ? "" : ", ") + trait;
  }
  fmt::print(
      "# Drawn by weir hunt, generator {}: {}.\n# Play it with: {}\n\n{}",
      hunt::kGenerator, traits,
      CommandFor(world, fmt::format("world-{}.toml", world.seed)), world.text);
}

int RunHunt(const Options& options) {
  if (options.print) {
    Print(hunt::DrawWorld(*options.print));
    return kFine;
  }
  hunt::HuntOptions hunt;
  const auto seeds = ParseSeeds(options.seeds);
  if (!seeds) return FailForSeeds(options.seeds);
  hunt.seeds = *seeds;
  if (!LoadPolicyOf(options.policy, hunt.policy)) return kWrongInput;
  hunt.algorithms = SplitNames(
      fmt::format("{},{},{}", options.algorithm, kNone, options.against));
  hunt.threads = ThreadsOf(options.threads);
  if (!options.rivals_from.empty()) {
    std::ifstream file(options.rivals_from, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) {
      return Fail(kWrongInput, fmt::format("cannot take rivals from {}: it "
                                           "cannot be read",
                                           options.rivals_from));
    }
    auto record = hunt::ParseRecord(text.str());
    if (!record) {
      return Fail(kWrongInput,
                  fmt::format("cannot take rivals from {}: {}",
                              options.rivals_from, record.error().message));
    }
    hunt.record = *std::move(record);
  }
  Progress progress(hunt.seeds.size());
  hunt.on_world = [&progress] { progress.OnWorld(); };
  const auto played = hunt::Hunt(hunt);
  if (!played) return Fail(kWrongInput, played.error().message);

  if (!options.rivals_to.empty()) {
    hunt::Record record = std::move(hunt.record);
    for (const hunt::Played& one : *played) {
      for (size_t a = 1; a < hunt.algorithms.size(); ++a) {
        record[one.world.seed][hunt.algorithms[a]] = one.figures[a];
      }
    }
    std::ofstream file(options.rivals_to, std::ios::binary);
    file << hunt::ToJson(record);
    if (!file.flush()) {
      return Fail(kCouldNotRun,
                  fmt::format("cannot write {}", options.rivals_to));
    }
  }
  const auto none = static_cast<size_t>(
      std::find(hunt.algorithms.begin(), hunt.algorithms.end(), kNone) -
      hunt.algorithms.begin());
  fmt::print("seeds {}, generator {}\n{}", options.seeds, hunt::kGenerator,
             hunt::Table(*played, {.algorithms = hunt.algorithms,
                                   .baseline = none,
                                   .worst = options.worst}));
  return kFine;
}

}  // namespace

void AddHuntCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "hunt", "Draw random worlds and look where a law loses most");
  command
      ->add_option("--seeds", options->seeds,
                   "Which worlds, such as 1-400; one seed is one world")
      ->capture_default_str();
  command->add_option("--algorithm", options->algorithm, "What is hunted")
      ->capture_default_str();
  command
      ->add_option("--against", options->against,
                   "Rivals, separated by commas; none is always among them")
      ->capture_default_str();
  command->add_option("--policy", options->policy,
                      "Policy of the guard; default: none but the world's");
  command->add_option("--rivals-to", options->rivals_to,
                      "Write the figures of all but the hunted one to this "
                      "file");
  command->add_option("--rivals-from", options->rivals_from,
                      "Take them from there; what it lacks is played");
  command
      ->add_option("--worst", options->worst,
                   "How many of the worst worlds to name")
      ->capture_default_str();
  command->add_option("--threads", options->threads,
                      "Worlds at a time; default: one for each core");
  command->add_option("--print", options->print,
                      "Only print the scenario file of the world of this seed");
  command->callback(
      [&action, options] { action = [options] { return RunHunt(*options); }; });
}

}  // namespace weir::cli
