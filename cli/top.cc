// weir top: a service live, from its region, which it only reads.

#include <fmt/format.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>

#include "command.h"
#include "counters.h"
#include "screen.h"
#include "segment.h"
#include "terminal.h"
#include "top_view.h"
#include "top_watch.h"

namespace weir::cli {
namespace {

using std::chrono_literals::operator""ms;

struct Options {
  std::string service;
  double interval = 1;
  bool once = false;
  bool json = false;
  bool counters = false;
};

Instant Now() {
  return Instant(std::chrono::steady_clock::now().time_since_epoch());
}

std::string TimeOfDay() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  return fmt::format("{:02}:{:02}:{:02}", parts.tm_hour, parts.tm_min,
                     parts.tm_sec);
}

Result<TopFrame> Next(TopWatch& watch) {
  Result<TopFrame> frame = watch.Next(Now());
  if (frame) frame->time = TimeOfDay();
  return frame;
}

// The instant of the reading after the one due at `due`.  Readings that a
// stopped program missed are not made up for.
Instant After(Instant due, Duration interval) {
  return std::max(due + interval, Now());
}

// Lines that are added one by one: for files, pipes and other programs.
int ShowLines(TopWatch& watch, const Options& options) {
  const Duration interval = FromSeconds(options.interval);
  for (Instant due = Now() + interval;; due = After(due, interval)) {
    for (Instant now = Now(); now < due; now = Now()) {
      ::poll(nullptr, 0, static_cast<int>((due - now) / 1ms) + 1);
    }
    const Result<TopFrame> frame = Next(watch);
    if (!frame) return Fail(kCouldNotRun, frame.error().message);
    std::string text =
        options.json ? RenderJson(*frame)
        : options.once
            ? RenderScreen(*frame, TerminalSize(stdout), StyleFor(stdout))
            : RenderLine(*frame);
    text += '\n';
    std::fputs(text.c_str(), stdout);
    // Also when who reads this is gone: then there is nothing left to do.
    if (std::fflush(stdout) != 0 || options.once) return kFine;
  }
}

// The full-screen view.
class Live {
 public:
  Live(TopWatch& watch, Duration interval)
      : watch_(watch), interval_(interval) {}

  int Run() {
    std::optional<Error> trouble;
    {
      Screen screen;
      trouble = Loop(screen);
    }
    // Only now: the screen's own text is gone with it.
    return trouble ? Fail(kCouldNotRun, trouble->message) : kFine;
  }

 private:
  std::optional<Error> Loop(Screen& screen) {
    Instant due = Now();
    while (true) {
      if (Now() >= due) {
        Result<TopFrame> frame = Next(watch_);
        if (!frame) return frame.error();
        // The first reading is all there is yet: no rates.
        if (!drawn_) frame->seconds = 0;
        drawn_ = true;
        frame_ = std::move(*frame);
        due = After(due, interval_);
      }
      if (!screen.Draw(Page())) return std::nullopt;
      const Screen::Input input = screen.Wait(due - Now());
      if (input.event == Screen::Event::kEnd) return std::nullopt;
      if (input.event == Screen::Event::kKey && !Press(input.key)) {
        return std::nullopt;
      }
    }
  }

  std::string Page() {
    const Style style = StyleFor(stdout);
    Size size = TerminalSize(stdout);
    if (size.rows > 1) --size.rows;  // For the keys.
    std::string page = explain_ ? RenderCounters(frame_, size, style, offset_)
                                : RenderScreen(frame_, size, style);
    const std::string_view keys =
        explain_ ? "q back   space, j, k: further, down, up"
                 : "q quit   ? what the counters mean";
    return page.append("\n")
        .append(style.dim)
        .append(keys.substr(0, static_cast<size_t>(size.columns)))
        .append(style.reset);
  }

  // False when the view ends.
  bool Press(char key) {
    constexpr char kEscape = 0x1b;
    if (!explain_) {
      if (key == '?' || key == 'h' || key == 'c') explain_ = true;
      return key != 'q';
    }
    if (key == 'q' || key == '?' || key == kEscape) explain_ = false;
    if (key == 'j') ++offset_;
    if (key == 'k') --offset_;
    if (key == ' ') offset_ += TerminalSize(stdout).rows - 2;
    return true;
  }

  TopWatch& watch_;
  Duration interval_;
  TopFrame frame_;
  bool drawn_ = false;
  bool explain_ = false;
  int offset_ = 0;
};

int RunTop(Options options) {
  if (options.counters) {
    std::fputs(CountersText().c_str(), stdout);
    return kFine;
  }
  if (options.service.empty()) {
    const Result<std::string> only = OnlyService();
    if (!only) return Fail(kCouldNotRun, only.error().message);
    options.service = *only;
  }
  Result<TopWatch> watch = TopWatch::Open(options.service, Now());
  if (!watch) return Fail(kCouldNotRun, watch.error().message);
  if (options.once || options.json || !IsTerminal(stdout)) {
    return ShowLines(*watch, options);
  }
  return Live(*watch, FromSeconds(options.interval)).Run();
}

}  // namespace

void AddTopCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "top", "Show a service live: load, limit, latency, what is shed and why");
  command->add_option("service", options->service,
                      "The `service` of its policy; not needed when there is "
                      "only one");
  command
      ->add_option("--interval", options->interval,
                   "Seconds between two readings (0.1 to 3600)")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  command->add_flag("--once", options->once, "Show one interval, then end");
  command->add_flag("--json", options->json,
                    "One object per interval, one per line");
  command->add_flag("--counters", options->counters,
                    "Say what every counter and gauge means, then end");
  command->callback(
      [&action, options] { action = [options] { return RunTop(*options); }; });
}

}  // namespace weir::cli
