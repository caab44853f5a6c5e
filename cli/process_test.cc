#include "process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <string>

#include "scratch.h"

namespace weir::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using Kind = Supervisor::Event::Kind;

class ProcessTest : public testing::Test {
 protected:
  pid_t StartShell(Supervisor& supervisor, const std::string& script) {
    Result<pid_t> pid = supervisor.Start({.name = "child",
                                          .argv = {"/bin/sh", "-c", script},
                                          .log = scratch_.Path("log")});
    EXPECT_TRUE(pid.ok()) << pid.error().message;
    return *pid;
  }
  // Waits until the child has written a line, and returns it.
  std::string FirstLine(Supervisor& supervisor) {
    std::string line;
    for (int i = 0; i < 2000 && line.empty(); ++i) {
      supervisor.Wait(milliseconds(5));
      std::ifstream file(scratch_.Path("log"));
      if (!std::getline(file, line) || file.eof()) line.clear();
    }
    return line;
  }
  static bool IsAlive(pid_t pid) { return kill(pid, 0) == 0; }

  Scratch scratch_ = Scratch::Make("weir-test-").value();
};

TEST_F(ProcessTest, AProgramThatIsNotThereIsAnErrorAndNoChild) {
  Supervisor supervisor;
  const Result<pid_t> pid = supervisor.Start({.name = "ghost",
                                              .argv = {"/nonexistent/ghost"},
                                              .log = scratch_.Path("log")});
  ASSERT_FALSE(pid.ok());
  EXPECT_EQ(pid.error().message,
            "cannot start /nonexistent/ghost: No such file or directory");
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

TEST_F(ProcessTest, AnEndIsReportedOnceWithItsStatus) {
  Supervisor supervisor;
  const pid_t pid = StartShell(supervisor, "exit 7");
  const Supervisor::Event event = supervisor.Wait(seconds(60));
  EXPECT_EQ(event.kind, Kind::kExit);
  EXPECT_EQ(event.pid, pid);
  EXPECT_EQ(event.status, 7);
  EXPECT_EQ(supervisor.Wait(milliseconds(0)).kind, Kind::kTimeout);
}

TEST_F(ProcessTest, AnObituaryTellsTheSignalAndTheLastLines) {
  Supervisor supervisor;
  StartShell(supervisor,
             "i=0; while [ $i -lt 30 ]; do echo line $i; i=$((i+1)); done; "
             "kill -9 $$");
  const Supervisor::Event event = supervisor.Wait(seconds(60));
  ASSERT_EQ(event.status, 128 + SIGKILL);
  const std::string text = supervisor.Obituary(event);
  EXPECT_THAT(text, HasSubstr("child was killed by signal 9"));
  EXPECT_THAT(text, HasSubstr("line 18\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("line 17\n")));
  EXPECT_TRUE(text.ends_with("line 29")) << text;
}

TEST_F(ProcessTest, AFunctionRunsAsAChildAndReturnsItsStatus) {
  Supervisor supervisor;
  const pid_t us = getpid();
  const Result<pid_t> pid = supervisor.Start("copy", [us] {
    return getppid() == us && getpgid(0) == getpid() ? 5 : 6;
  });
  ASSERT_TRUE(pid.ok());
  const Supervisor::Event event = supervisor.Wait(seconds(60));
  EXPECT_EQ(event.pid, *pid);
  EXPECT_EQ(event.status, 5);
  EXPECT_EQ(supervisor.Obituary(event), "copy ended with status 5");
}

TEST_F(ProcessTest, ASignalToStopWaitsUntilItIsAskedFor) {
  Supervisor supervisor;
  raise(SIGINT);
  EXPECT_EQ(supervisor.Wait(seconds(60)).kind, Kind::kStop);
}

TEST_F(ProcessTest, WhatIgnoresTheRequestToStopIsKilledWithAllItStarted) {
  Supervisor supervisor;
  const pid_t child = StartShell(
      supervisor, "trap '' TERM; sleep 1000 & echo $!; while :; do wait; done");
  const pid_t grandchild = std::stoi(FirstLine(supervisor));
  supervisor.StopAll(milliseconds(50));
  EXPECT_FALSE(IsAlive(child));
  EXPECT_FALSE(IsAlive(grandchild));
}

TEST_F(ProcessTest, WhatAKilledMasterLeavesBehindIsKilledToo) {
  Supervisor supervisor;
  const pid_t master = StartShell(supervisor, "sleep 1000 & echo $!; wait");
  const pid_t worker = std::stoi(FirstLine(supervisor));
  kill(master, SIGKILL);
  EXPECT_EQ(supervisor.Wait(seconds(60)).pid, master);
  EXPECT_FALSE(IsAlive(worker));
}

// Goal: nothing outlives us, even when we get no chance to clean up.
// Method: a process of ours starts a child and is killed; the child, which
// comes to us as the nearest reaper, must have got SIGTERM.
TEST_F(ProcessTest, ChildrenEndWhenWeAreKilled) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    Supervisor supervisor;
    const pid_t child = StartShell(supervisor, "exec sleep 1000");
    [[maybe_unused]] const ssize_t size = write(told[1], &child, sizeof child);
    for (;;) pause();
  }
  pid_t child = 0;
  ASSERT_EQ(read(told[0], &child, sizeof child),
            static_cast<ssize_t>(sizeof child));
  kill(parent, SIGKILL);
  ASSERT_EQ(waitpid(parent, nullptr, 0), parent);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

}  // namespace
}  // namespace weir::cli
