#include "screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace weir::cli {
namespace {

// xterm's second screen, so that what was on the terminal comes back.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";

sigset_t Signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP}) {
    sigaddset(&set, signal);
  }
  return set;
}

bool Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

Screen::Screen() {
  const sigset_t set = Signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  termios now{};
  if (::tcgetattr(STDIN_FILENO, &now) == 0) before_ = now;
  Enter();
}

Screen::~Screen() {
  Leave();
  ::close(signals_);
  const sigset_t set = Signals();
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

void Screen::Enter() {
  if (before_) {
    termios raw = *before_;
    // Keys at once and unseen; Ctrl-C and Ctrl-Z stay signals.
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
  }
  Write(kEnter);
}

void Screen::Leave() const {
  Write(kLeave);
  if (before_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &*before_);
}

bool Screen::Draw(std::string_view page) const {
  std::string out = "\x1b[H";
  for (const char c : page) {
    if (c == '\n') out += "\x1b[K\r";
    out += c;
  }
  return Write(out + "\x1b[K\x1b[J");
}

Screen::Input Screen::ReadSignal() {
  signalfd_siginfo info{};
  if (::read(signals_, &info, sizeof info) !=
      static_cast<ssize_t>(sizeof info)) {
    return {};
  }
  switch (info.ssi_signo) {
    case SIGWINCH:
      return {.event = Event::kResized};
    case SIGTSTP:
      Leave();
      ::raise(SIGSTOP);
      Enter();
      return {.event = Event::kResized};
    default:
      return {.event = Event::kEnd};
  }
}

Screen::Input Screen::Wait(Duration time) {
  pollfd ready[] = {
      {.fd = signals_, .events = POLLIN, .revents = 0},
      {.fd = before_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}};
  // Rounded up, so that the time is over when this says so.
  const auto ms =
      std::clamp<int64_t>((time.count() + 999'999) / 1'000'000, 0, 3'600'000);
  if (::poll(ready, 2, static_cast<int>(ms)) <= 0) return {};
  if (ready[0].revents != 0) return ReadSignal();
  char key = 0;
  if (::read(STDIN_FILENO, &key, 1) != 1) return {.event = Event::kEnd};
  return {.event = Event::kKey, .key = key};
}

}  // namespace weir::cli
