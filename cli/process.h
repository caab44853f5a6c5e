// Child processes that never outlive us, and waiting for what happens to them.
//
// Signals are taken one by one from Supervisor::Wait() instead of interrupting
// anything: make the Supervisor before the first thread and the first child.

#ifndef WEIR_CLI_PROCESS_H_
#define WEIR_CLI_PROCESS_H_

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weir/result.h"

namespace weir::cli {

struct ChildOptions {
  std::string name{};               // For messages.
  std::vector<std::string> argv{};  // argv[0] is the path of the program.
  std::string log{};                // File for its standard output and error.
};

// The last `lines` lines of a file, as they stand; empty when there is none.
std::string LastLines(const std::string& path, size_t lines);

// Runs children, each in a process group of its own, and stops them.  One for
// each process; makes it the reaper of what its children leave behind.
class Supervisor {
 public:
  Supervisor();
  ~Supervisor();  // Stops all of them.
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Starts a program.  When we die, however that is, it gets SIGTERM.  Fails
  // when the program cannot be executed.
  Result<pid_t> Start(ChildOptions options);

  // The same for a function of ours, in a copy of this process, which must have
  // no other threads; what it returns is the status.  Its output goes where
  // ours goes.
  Result<pid_t> Start(std::string name, const std::function<int()>& function);

  struct Event {
    enum class Kind { kStop, kExit, kTimeout } kind = Kind::kTimeout;
    pid_t pid = 0;  // kExit: which child, and
    int status =
        0;  // how it ended: as a shell says it, 128 + signal if killed.
  };
  // Waits for SIGINT, SIGTERM or SIGHUP (kStop), or for a child to end.
  Event Wait(std::chrono::milliseconds timeout);

  // "nginx ended with status 1", and the last lines that it logged.
  std::string Obituary(const Event& event) const;

  // Asks every child to stop (SIGTERM), last one first, and kills those that
  // have not after `patience`, with all that they started.
  void StopAll(std::chrono::milliseconds patience);

 private:
  struct Child {
    pid_t pid = 0;
    ChildOptions options{};
    bool running = true;
  };
  std::optional<Event> Reap();

  std::vector<Child> children_;
  sigset_t signals_{};
  sigset_t signals_before_{};
};

}  // namespace weir::cli

#endif  // WEIR_CLI_PROCESS_H_
