// weir drill: turns a degrade level on for a share of the traffic and tells
// whether the cheaper branch works.

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>

#include "command.h"
#include "drill_report.h"
#include "switch_view.h"
#include "weir/config/units.h"
#include "weir/host/clock.h"
#include "weir/shm/lease.h"
#include "weir/shm/switch_board.h"

namespace weir::cli {
namespace {

using namespace std::chrono_literals;

// What is not drilled is what the rest is compared with.
constexpr double kLargestShare = .5;
constexpr Duration kLongest = 24h;
// How often the drill is looked at; workers need nobody to end it.
constexpr int kLookMs = 100;
// How long the last drilled requests are waited for.
constexpr Duration kLinger = 5s;

struct Options {
  std::string service;
  std::string resource;
  std::string share = "0.01";
  std::string lasts = "5m";
  int level = 1;
  bool json = false;
};

volatile sig_atomic_t interrupted = 0;

// While it lives, Ctrl-C ends the drill and not the program.
class Interruptible {
 public:
  Interruptible() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };
    ::sigaction(SIGINT, &action, &interrupt_);
    ::sigaction(SIGTERM, &action, &terminate_);
  }
  ~Interruptible() {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGTERM, &terminate_, nullptr);
  }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
};

// "0.01" or "1%".
Result<double> ParseShare(std::string_view text) {
  const std::string written(text);
  const bool percent = !text.empty() && text.back() == '%';
  if (percent) text.remove_suffix(1);
  double share = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, share);
  if (percent) share /= 100;
  if (read.ec != std::errc() || read.ptr != end ||
      !(share >= 1. / Drill::kWhole && share <= kLargestShare)) {
    return Error{fmt::format(
        "--share {} is no share from 0.0001 to 0.5 (or 0.01% to 50%): the "
        "other half is what it is compared with",
        written)};
  }
  return share;
}

Result<Drill> MakeDrill(const Options& options, const Snapshot& seen,
                        Instant now) {
  const Result<double> share = ParseShare(options.share);
  if (!share) return share.error();
  const Result<Duration> lasts = config::ParseDuration(options.lasts);
  if (!lasts) return Error{"--for " + lasts.error().message};
  if (*lasts < 1s || *lasts > kLongest) {
    return Error{"--for must lie between 1s and 24h"};
  }
  for (size_t row = 0; row < seen.resources.size(); ++row) {
    const Snapshot::Resource& resource = seen.resources[row];
    if (resource.name != options.resource) continue;
    if (options.level > resource.levels) {
      return Error{fmt::format("`{}` has {} degrade levels in its policy",
                               resource.name, resource.levels)};
    }
    const std::string state = SwitchState(resource, now);
    if (state != "open" || resource.deaf) {
      return Error{fmt::format(
          "`{}` is {}: a drill compares the cheaper answer with the full one",
          resource.name,
          resource.deaf ? "exempt, or its switch stage does not act" : state)};
    }
    return Drill{
        .row = static_cast<uint16_t>(row),
        .level = static_cast<uint8_t>(options.level),
        .share = static_cast<uint32_t>(std::lround(*share * Drill::kWhole)),
        .until = now + *lasts};
  }
  return Error{fmt::format("`{}` has no resource `{}`; see `weir switch {}`",
                           seen.service, options.resource, seen.service)};
}

DrillEnd Watch(shm::SwitchBoard& board, const Drill& drill) {
  const Interruptible guard;
  const uint64_t word = drill.Pack();
  const auto& running = board.region().flags.drill;
  while (host::MonotonicClock::Now() < drill.until) {
    if (interrupted != 0) {
      board.End(drill);
      return DrillEnd::kInterrupted;
    }
    if (running.load() != word) return DrillEnd::kOverload;
    ::poll(nullptr, 0, kLookMs);
  }
  return board.End(drill) ? DrillEnd::kTime : DrillEnd::kOverload;
}

// Reads both sides once what was started has ended, or not for long.
void Settle(const Region& region, const Snapshot& before, DrillReport& report) {
  const Instant end = host::MonotonicClock::Now() + kLinger;
  while (true) {
    const Snapshot now = Read(region);
    report.control = Since(now.drilled[0], before.drilled[0]);
    report.drilled = Since(now.drilled[1], before.drilled[1]);
    const Snapshot::Drilled& d = report.drilled;
    if (d.ok + d.error + d.late + d.other >= d.started ||
        host::MonotonicClock::Now() >= end) {
      return;
    }
    ::poll(nullptr, 0, kLookMs);
  }
}
static_assert(static_cast<size_t>(DrillSide::kControl) == 0 &&
              static_cast<size_t>(DrillSide::kDrilled) == 1);

int RunDrill(const Options& options) {
  auto board = shm::SwitchBoard::Open(options.service);
  if (!board) return Fail(kCouldNotRun, board.error().message);
  const Region& region = board->region();
  if (!shm::SameHost(region)) {
    return Fail(kCouldNotRun,
                "the service lives in another container, whose clock may "
                "differ: run the drill there");
  }
  const Instant now = host::MonotonicClock::Now();
  const Snapshot before = Read(region);
  const Result<Drill> drill = MakeDrill(options, before, now);
  if (!drill) return Fail(kWrongInput, drill.error().message);
  if (const auto wrong = board->Begin(*drill, now)) {
    return Fail(kCouldNotRun, wrong->message);
  }
  std::fprintf(stderr, "level %d of `%s` for %s; Ctrl-C ends it\n",
               options.level, options.resource.c_str(),
               FormatLeft(drill->until - now).c_str());
  DrillReport report;
  report.end = Watch(*board, *drill);
  Settle(region, before, report);
  std::fputs((options.json ? RenderJson(report) : Render(report)).c_str(),
             stdout);
  const bool good =
      report.end == DrillEnd::kTime && Judge(report) == DrillVerdict::kWorks;
  return good ? kFine : kCouldNotRun;
}

}  // namespace

void AddDrillCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "drill", "Try a degrade level on a share of the traffic, and compare");
  command
      ->add_option("service", options->service, "The `service` of its policy")
      ->required();
  command->add_option("resource", options->resource, "Which of its resources")
      ->required();
  command->add_option("--level", options->level, "The degrade level to try")
      ->check(CLI::Range(1, static_cast<int>(DegradeLadder::kMaxLevels)))
      ->capture_default_str();
  command
      ->add_option("--share", options->share,
                   "Share of its requests, 0.01 or 1%, at most half")
      ->capture_default_str();
  command->add_option("--for", options->lasts, "How long, 1s to 24h")
      ->capture_default_str();
  command->add_flag("--json", options->json, "The report as one object");
  command->footer(
      "It does not start while the service is overloaded, and an overload "
      "ends\n"
      "it at once. It ends in time also when this program is gone. Exit "
      "status\n"
      "0: it ran to its end and the drilled requests fail no more often than "
      "the\n"
      "others; 1: else.");
  command->callback([&action, options] {
    action = [options] { return RunDrill(*options); };
  });
}

}  // namespace weir::cli
