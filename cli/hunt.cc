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
#include "weir/hunt/change.h"
#include "weir/hunt/draw.h"
#include "weir/hunt/figures.h"
#include "weir/hunt/search.h"
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
  std::string expect;
  std::optional<uint64_t> print;
  std::optional<uint64_t> minimise;
  double search_minutes = 0;
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

void Print(const hunt::World& world, const std::string& about) {
  std::string traits;
  for (const std::string& trait : world.traits) {
    traits += (traits.empty() ? "" : ", ") + trait;
  }
  fmt::print("# {}, generator {}: {}.\n# Play it with: {}\n\n{}", about,
             hunt::kGenerator, traits,
             CommandFor(world, world.scenario.name + ".toml"), world.text);
}

// Makes the world simpler while most of the loss stays, against doing nothing
// and the one that did best in it, and prints it.
int PrintMinimised(const hunt::HuntOptions& options, size_t none,
                   const hunt::World& world) {
  const auto figures = hunt::Play(world, options.algorithms, options.policy);
  if (!figures) return Fail(kWrongInput, figures.error().message);
  const hunt::Played whole{world, *figures};
  const auto best = static_cast<size_t>(
      std::max_element(figures->begin(), figures->end(),
                       [](const hunt::Figures& a, const hunt::Figures& b) {
                         return a.score() < b.score();
                       }) -
      figures->begin());
  std::vector<std::string> names = {options.algorithms[0], std::string(kNone)};
  if (best != 0 && best != none) names.push_back(options.algorithms[best]);
  const auto loss_of = [&](const hunt::World& candidate) {
    const auto played = hunt::Play(candidate, names, options.policy);
    return played ? hunt::Loss({candidate, *played}, 1) : 0;
  };
  // Chosen: what is left of a loss must still be the same loss.
  constexpr double kKept = .8;
  const double loss = hunt::Loss(whole, none);
  if (loss <= 0) {
    return Fail(kCouldNotRun,
                fmt::format("{} loses nothing in the world of seed {}",
                            options.algorithms[0], world.seed));
  }
  const hunt::World simple = hunt::Minimise(world, kKept * loss, loss_of);
  Print(simple, fmt::format("Made simpler by weir hunt: {} loses {:.3f} to {}, "
                            "{:.3f} in the whole world",
                            options.algorithms[0], loss_of(simple),
                            names.back(), loss));
  return kFine;
}

int RunSearch(const Options& options, const hunt::HuntOptions& hunt,
              size_t none) {
  const auto start = std::chrono::steady_clock::now();
  hunt::SearchOptions search{.first_seed = hunt.seeds.front(),
                             .algorithms = hunt.algorithms,
                             .baseline = none,
                             .policy = hunt.policy,
                             .threads = hunt.threads,
                             .progress = [&] {
                               const std::chrono::duration<double> passed =
                                   std::chrono::steady_clock::now() - start;
                               return passed.count() /
                                      (60 * options.search_minutes);
                             }};
  const auto found = hunt::Search(search);
  if (!found) return Fail(kWrongInput, found.error().message);
  if (found->empty()) return Fail(kCouldNotRun, "no world was played");
  fmt::print("{}\n", hunt::WorstText(*found, {.algorithms = hunt.algorithms,
                                              .baseline = none,
                                              .worst = options.worst}));
  return PrintMinimised(hunt, none, found->front().world);
}

int RunHunt(const Options& options) {
  if (options.print) {
    Print(hunt::DrawWorld(*options.print), "Drawn by weir hunt");
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
  const auto none = static_cast<size_t>(
      std::find(hunt.algorithms.begin(), hunt.algorithms.end(), kNone) -
      hunt.algorithms.begin());
  if (options.minimise) {
    return PrintMinimised(hunt, none, hunt::DrawWorld(*options.minimise));
  }
  if (options.search_minutes > 0) return RunSearch(options, hunt, none);
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
  fmt::print("seeds {}, generator {}\n{}", options.seeds, hunt::kGenerator,
             hunt::Table(*played, {.algorithms = hunt.algorithms,
                                   .baseline = none,
                                   .worst = options.worst}));
  const auto broken =
      hunt::BrokenBounds(hunt::Distribute(*played, 0, none), options.expect);
  if (!broken) {
    return Fail(kWrongInput, "--expect: " + broken.error().message);
  }
  for (const std::string& bound : *broken) {
    fmt::print(stderr, "weir: over the worlds of seeds {} {}\n", options.seeds,
               bound);
  }
  return broken->empty() ? kFine : kCouldNotRun;
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
  command->add_option("--minimise", options->minimise,
                      "Only print the world of this seed made as simple as it "
                      "can be while four fifths of the loss stay");
  command
      ->add_option("--search", options->search_minutes,
                   "Minutes: draw worlds from the first of --seeds on, then "
                   "change the worst of them; prints the worst, and the very "
                   "worst made simpler")
      ->check(CLI::Range(.01, 10'000.));
  command->add_option("--expect", options->expect,
                      "Bounds on the figures, as within=0.9,p1=0.5; exit "
                      "status 1 when one is broken");
  command->callback(
      [&action, options] { action = [options] { return RunHunt(*options); }; });
}

}  // namespace weir::cli
