// weir switch: an operator pauses, degrades and resumes what a service does.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.h"
#include "switch_view.h"
#include "weir/config/nearest.h"
#include "weir/config/units.h"
#include "weir/host/clock.h"
#include "weir/shm/lease.h"
#include "weir/shm/switch_board.h"

namespace weir::cli {
namespace {

using Set = Switch::Action;

struct Options {
  std::string service;
  std::vector<std::string> words;
  std::string lasts;
  bool all = false;
  bool json = false;
};

struct Wanted {
  std::string resource;  // Empty: all.
  Switch set;
};

// RESOURCE, if not --all, and then: pause | degrade N | resume
Result<Wanted> ParseWords(const Options& options) {
  std::vector<std::string> words = options.words;
  Wanted wanted;
  if (!options.all && !words.empty()) {
    wanted.resource = words.front();
    words.erase(words.begin());
  }
  const std::string action = words.empty() ? "" : words.front();
  const size_t count = action == "degrade" ? 2 : 1;
  if (words.size() != count ||
      (action != "pause" && action != "degrade" && action != "resume")) {
    return Error{
        "after the resource comes `pause`, `degrade LEVEL` or `resume`\nsee: "
        "weir switch --help"};
  }
  if (action == "pause") wanted.set.action = Set::kPause;
  if (action == "degrade") {
    wanted.set.action = Set::kDegrade;
    const std::string& level = words[1];
    if (level.size() != 1 || level[0] < '0' ||
        level[0] > '0' + static_cast<int>(DegradeLadder::kMaxLevels)) {
      return Error{fmt::format("`{}` is no degrade level: 0 (in full) to {}",
                               level, DegradeLadder::kMaxLevels)};
    }
    wanted.set.level = static_cast<uint8_t>(level[0] - '0');
  }
  return wanted;
}

Result<std::vector<uint16_t>> RowsOf(const Snapshot& seen,
                                     const Wanted& wanted) {
  std::vector<uint16_t> rows;
  std::vector<std::string> names;
  for (size_t i = 0; i < seen.resources.size(); ++i) {
    const Snapshot::Resource& resource = seen.resources[i];
    names.push_back(resource.name);
    const bool chosen = wanted.resource.empty()
                            ? !(wanted.set.action == Set::kDegrade &&
                                resource.levels < wanted.set.level)
                            : resource.name == wanted.resource;
    if (chosen) rows.push_back(static_cast<uint16_t>(i));
  }
  if (!rows.empty()) return rows;
  if (wanted.resource.empty()) {
    return Error{
        fmt::format("no resource of `{}` has that level", seen.service)};
  }
  const std::string_view near = config::Nearest(wanted.resource, names);
  return Error{fmt::format(
      "`{}` has no resource `{}`{}", seen.service, wanted.resource,
      near.empty() ? fmt::format("; it has {}", fmt::join(names, ", "))
                   : fmt::format("; did you mean `{}`?", near))};
}

int List(const Options& options) {
  const auto region = shm::ObservedRegion::Open(options.service);
  if (!region) return Fail(kCouldNotRun, region.error().message);
  const Snapshot seen = Read(**region);
  const Instant now = host::MonotonicClock::Now();
  std::fputs(options.json ? SwitchesJson(seen, now).c_str()
                          : SwitchesTable(seen, now).c_str(),
             stdout);
  return kFine;
}

int RunSwitch(const Options& options) {
  if (options.words.empty() && !options.all) {
    if (options.lasts.empty()) return List(options);
    return Fail(kWrongInput, "--for is of a `pause` or `degrade`");
  }
  Result<Wanted> wanted = ParseWords(options);
  if (!wanted) return Fail(kWrongInput, wanted.error().message);
  const Instant now = host::MonotonicClock::Now();
  if (!options.lasts.empty()) {
    const Result<Duration> lasts = config::ParseDuration(options.lasts);
    if (!lasts || *lasts <= Duration(0) || wanted->set.action == Set::kNone) {
      return Fail(kWrongInput,
                  !lasts ? fmt::format("--for {}", lasts.error().message)
                         : "--for is a time above zero, of a `pause` or "
                           "`degrade`");
    }
    // What a word can hold.
    wanted->set.until =
        std::chrono::floor<std::chrono::milliseconds>(now + *lasts);
  }
  auto board = shm::SwitchBoard::Open(options.service);
  if (!board) return Fail(kCouldNotRun, board.error().message);
  if (!options.lasts.empty() && !shm::SameHost(board->region())) {
    return Fail(kCouldNotRun,
                "the service lives in another container, whose clock may "
                "differ: run this there, or without --for");
  }
  const Snapshot before = Read(board->region());
  const auto rows = RowsOf(before, *wanted);
  if (!rows) return Fail(kWrongInput, rows.error().message);
  const Snapshot::Resource& first = before.resources[rows->front()];
  if (wanted->set.action == Set::kDegrade && wanted->set.level > first.levels) {
    return Fail(kWrongInput,
                fmt::format("`{}` has {} degrade levels in its policy",
                            first.name, first.levels));
  }
  if (const auto wrong = board->Set(*rows, wanted->set, now)) {
    return Fail(kCouldNotRun, wrong->message);
  }
  const Snapshot after = Read(board->region());
  for (const uint16_t row : *rows) {
    const Snapshot::Resource& resource = after.resources[row];
    std::puts(fmt::format("{}: {}", resource.name, SwitchState(resource, now))
                  .c_str());
  }
  return kFine;
}

}  // namespace

void AddSwitchCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "switch", "Pause, degrade or resume a resource of a live service");
  command
      ->add_option("service", options->service, "The `service` of its policy")
      ->required();
  command->add_option("words", options->words,
                      "RESOURCE, and what to do with it");
  command->add_option("--for", options->lasts,
                      "How long, such as 90s or 10m; else until `resume`");
  command->add_flag("--all", options->all,
                    "All resources that the service has now");
  command->add_flag("--json", options->json, "The list as one object");
  command->footer(
      "weir switch SERVICE                               lists\n"
      "weir switch SERVICE RESOURCE pause [--for 10m]\n"
      "weir switch SERVICE RESOURCE degrade LEVEL [--for 10m]\n"
      "weir switch SERVICE RESOURCE resume               as the policy says\n"
      "weir switch SERVICE --all pause | degrade LEVEL | resume\n\n"
      "Workers follow at their next decision. Kept over restarts and "
      "upgrades,\n"
      "not over a reboot: what is to last belongs into the policy. A resource\n"
      "is paused while the policy or the switch says so; a degrade level by\n"
      "hand replaces what the ladder would choose.");
  command->callback([&action, options] {
    action = [options] { return RunSwitch(*options); };
  });
}

}  // namespace weir::cli
