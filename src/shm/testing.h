// For tests: processes that are told apart, held and killed without sleeping.

#ifndef WEIR_SRC_SHM_TESTING_H_
#define WEIR_SRC_SHM_TESTING_H_

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>

#include "weir/policy.h"
#include "weir/shm/segment.h"

namespace weir::shm {

inline constexpr Instant kStart{std::chrono::hours(1)};

// A forked process that runs `body`, which gets a function that tells the
// parent to go on and then waits for it.  Killed, if it still runs, at the end.
class Child {
 public:
  using Meet = std::function<void()>;

  explicit Child(const std::function<void(const Meet&)>& body) {
    EXPECT_EQ(::pipe(to_parent_.data()), 0);
    EXPECT_EQ(::pipe(to_child_.data()), 0);
    pid_ = ::fork();
    if (pid_ != 0) {
      // Else the end of the child would never show.
      ::close(to_parent_[1]);
      ::close(to_child_[0]);
      return;
    }
    ::close(to_parent_[0]);
    ::close(to_child_[1]);
    body([this] {
      char token = 'x';
      if (::write(to_parent_[1], &token, 1) != 1) ::_exit(3);
      if (::read(to_child_[0], &token, 1) != 1) ::_exit(4);
    });
    ::_exit(::testing::Test::HasFailure() ? 5 : 0);
  }

  ~Child() {
    if (pid_ > 0) Kill();
    ::close(to_parent_[0]);
    ::close(to_child_[1]);
  }

  pid_t pid() const { return pid_; }

  // Until the child has called its function (again).  False if it ended.
  bool Await() {
    char token = 0;
    return ::read(to_parent_[0], &token, 1) == 1;
  }
  void Release() {
    const char token = 'y';
    EXPECT_EQ(::write(to_child_[1], &token, 1), 1);
  }

  // Status as of waitpid().
  int Kill() {
    ::kill(pid_, SIGKILL);
    return Join();
  }
  // Killed, but not reaped: a zombie, when this returns.
  void KillOnly() {
    ::kill(pid_, SIGKILL);
    siginfo_t info{};
    EXPECT_EQ(
        ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT), 0);
  }
  int Join() {
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_ = -1;
  std::array<int, 2> to_parent_{};
  std::array<int, 2> to_child_{};
};

// A forked process that stops wherever its parent wants.
class TracedChild {
 public:
  // Runs `prepare` freely, then stops; `body` is run step by step.
  TracedChild(const std::function<void()>& prepare,
              const std::function<void()>& body) {
    pid_ = ::fork();
    if (pid_ == 0) {
      prepare();
      if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(3);
      ::raise(SIGSTOP);
      body();
      ::_exit(0);
    }
    running_ = Stopped();
  }
  ~TracedChild() {
    if (running_) Kill();
  }

  // One instruction, or up to the next edge of a system call, further.  False
  // when the process has ended.
  bool StepInstruction() { return Step(PTRACE_SINGLESTEP); }
  bool StepSystemCall() { return Step(PTRACE_SYSCALL); }

  pid_t pid() const { return pid_; }
  bool running() const { return running_; }
  void Kill() {
    ::kill(pid_, SIGKILL);
    while (Stopped()) {
    }
    running_ = false;
  }

 private:
  bool Step(__ptrace_request request) {
    if (running_) {
      running_ = ::ptrace(request, pid_, nullptr, nullptr) == 0 && Stopped();
    }
    return running_;
  }
  bool Stopped() {
    int status = 0;
    return ::waitpid(pid_, &status, 0) == pid_ && WIFSTOPPED(status);
  }

  pid_t pid_ = -1;
  bool running_ = false;
};

// A service of its own for each test, whose segment is gone afterwards.
class SegmentTest : public ::testing::Test {
 protected:
  SegmentTest() {
    static int count = 0;
    policy_.service = "weir-test-" + std::to_string(::getpid()) + '-' +
                      std::to_string(count++);
    policy_.resources.emplace_back().name = "all";
  }
  ~SegmentTest() override { ::unlink(path().c_str()); }

  const std::string& service() const { return policy_.service; }
  std::string path() const { return SegmentPath(policy_.service); }

  SharedRegion OpenOrDie() {
    auto region = SharedRegion::Open(policy_, kStart);
    if (!region) {
      ADD_FAILURE() << region.error().message;
      std::abort();
    }
    return std::move(*region);
  }

  // The message of a refusal; fails the test when it is none.
  std::string Refusal() {
    const auto region = SharedRegion::Open(policy_, kStart);
    EXPECT_FALSE(region.ok());
    return region ? "" : region.error().message;
  }

  Policy policy_;
};

}  // namespace weir::shm

#endif  // WEIR_SRC_SHM_TESTING_H_
