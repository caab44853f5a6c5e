#include "process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <utility>

namespace weir::cli {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// In the child after fork: only async-signal-safe calls.
bool Settle(pid_t parent, const sigset_t& signals_before) {
  setpgid(0, 0);  // Ctrl-C goes to us alone; we stop the children in order.
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return false;
  if (getppid() != parent) _exit(0);  // It died before prctl() took effect.
  return sigprocmask(SIG_SETMASK, &signals_before, nullptr) == 0;
}

// The same, up to exec.  Returns when something failed, with errno set.
void BecomeProgram(const char* log_path, char* const* argv) {
  const int log =
      open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (log < 0 || nothing < 0 || dup2(log, STDOUT_FILENO) < 0 ||
      dup2(log, STDERR_FILENO) < 0 || dup2(nothing, STDIN_FILENO) < 0) {
    return;
  }
  execv(argv[0], argv);
}

// Returns once all of the group are gone.
void KillGroup(pid_t group) {
  kill(-group, SIGKILL);
  while (waitpid(-group, nullptr, 0) > 0) {
  }
}

}  // namespace

std::string LastLines(const std::string& path, size_t lines) {
  std::ifstream file(path);
  std::deque<std::string> last;
  for (std::string line; std::getline(file, line);) {
    last.push_back(std::move(line));
    if (last.size() > lines) last.pop_front();
  }
  std::string text;
  for (const std::string& line : last) text += line + "\n";
  return text;
}

Supervisor::Supervisor() {
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
    sigaddset(&signals_, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals_, &signals_before_);
  // Workers of a master that was killed come to us, so that KillGroup() can
  // wait for their end.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Supervisor::~Supervisor() {
  StopAll(std::chrono::seconds(5));
  pthread_sigmask(SIG_SETMASK, &signals_before_, nullptr);
}

Result<pid_t> Supervisor::Start(ChildOptions options) {
  std::vector<char*> argv;
  for (std::string& argument : options.argv) argv.push_back(argument.data());
  argv.push_back(nullptr);

  int failure[2];  // Closed by a successful exec; else tells errno.
  if (pipe2(failure, O_CLOEXEC) != 0) {
    return Error{std::string("cannot make a pipe: ") + std::strerror(errno)};
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    if (Settle(parent, signals_before_)) {
      BecomeProgram(options.log.c_str(), argv.data());
    }
    const int error = errno;
    [[maybe_unused]] const ssize_t told =
        write(failure[1], &error, sizeof error);
    _exit(127);
  }
  close(failure[1]);
  int error = errno;
  const bool failed =
      pid < 0 || read(failure[0], &error, sizeof error) == sizeof error;
  close(failure[0]);
  if (failed) {
    if (pid > 0) waitpid(pid, nullptr, 0);
    return Error{"cannot start " + options.argv[0] + ": " +
                 std::strerror(error)};
  }
  children_.push_back({.pid = pid, .options = std::move(options)});
  return pid;
}

Result<pid_t> Supervisor::Start(std::string name,
                                const std::function<int()>& function) {
  std::fflush(nullptr);  // Or the copy would write it once more.
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    return Error{"cannot start " + name + ": " + std::strerror(errno)};
  }
  if (pid == 0) {
    const int status = Settle(parent, signals_before_) ? function() : 1;
    std::fflush(nullptr);
    _exit(status);
  }
  children_.push_back({.pid = pid, .options = {.name = std::move(name)}});
  return pid;
}

std::optional<Supervisor::Event> Supervisor::Reap() {
  for (Child& child : children_) {
    int status = 0;
    if (!child.running || waitpid(child.pid, &status, WNOHANG) <= 0) continue;
    child.running = false;
    KillGroup(child.pid);  // What it left behind goes with it.
    return Event{.kind = Event::Kind::kExit,
                 .pid = child.pid,
                 .status = WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                               : WEXITSTATUS(status)};
  }
  return std::nullopt;
}

Supervisor::Event Supervisor::Wait(milliseconds timeout) {
  const Clock::time_point end = Clock::now() + timeout;
  for (;;) {
    if (std::optional<Event> event = Reap()) return *event;
    const auto left =
        std::max(Clock::duration(0), Clock::duration(end - Clock::now()));
    const timespec wait = {
        .tv_sec =
            std::chrono::duration_cast<std::chrono::seconds>(left).count(),
        .tv_nsec = (left % std::chrono::seconds(1)).count()};
    const int signal = sigtimedwait(&signals_, nullptr, &wait);
    if (signal < 0 && errno == EAGAIN) return {};
    if (signal > 0 && signal != SIGCHLD) return {.kind = Event::Kind::kStop};
  }
}

std::string Supervisor::Obituary(const Event& event) const {
  for (const Child& child : children_) {
    if (child.pid != event.pid) continue;
    std::string text = child.options.name;
    text += event.status > 128
                ? " was killed by signal " + std::to_string(event.status - 128)
                : " ended with status " + std::to_string(event.status);
    const std::string log = LastLines(child.options.log, 12);
    if (!log.empty()) text += "; it said last:\n" + log;
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }
  return "an unknown process ended";
}

void Supervisor::StopAll(milliseconds patience) {
  for (auto child = children_.rbegin(); child != children_.rend(); ++child) {
    if (child->running) kill(child->pid, SIGTERM);
  }
  const Clock::time_point end = Clock::now() + patience;
  for (Child& child : children_) {
    while (child.running && Clock::now() < end) {
      Wait(std::chrono::duration_cast<milliseconds>(end - Clock::now()) +
           milliseconds(1));
    }
    if (!child.running) continue;
    KillGroup(child.pid);
    child.running = false;
  }
  children_.clear();
}

}  // namespace weir::cli
