// The generator against the sample service, over the loopback.

#include "storm_run.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>

#include "backend_server.h"

namespace weir::cli {
namespace {

using scenario::Report;
using scenario::Scenario;
using std::chrono::milliseconds;
using std::chrono::seconds;

class StormRunTest : public ::testing::Test {
 protected:
  StormRunTest() {
    scenario_.deadline = scenario_.timeout = seconds(10);
    scenario_.phases = {
        {.name = "all", .duration = milliseconds(500), .load = .2}};
    scenario_.classes = {{.deadline = seconds(10)}};
    scenario_.routes = {{}};
    scenario_.tiers = {
        {.workers = 20, .stages = {{.time = {.mean = milliseconds(10)}}}}};
  }
  ~StormRunTest() override {
    if (!thread_.joinable()) return;
    const uint64_t one = 1;
    EXPECT_EQ(write(stop_.get(), &one, sizeof one),
              static_cast<ssize_t>(sizeof one));
    thread_.join();
  }
  void Serve() {
    server_ = *BackendServer::Make(scenario_, {});
    thread_ = std::thread([this] { server_->Run(stop_.get()); });
  }
  HostPort target() const {
    return {.host = "127.0.0.1", .port = server_->port()};
  }

  Scenario scenario_;
  Descriptor stop_{eventfd(0, EFD_CLOEXEC)};
  std::unique_ptr<BackendServer> server_;
  std::thread thread_;
};

// Deadlines are far away, so that a slow machine changes nothing.
TEST_F(StormRunTest, EveryRequestOfTheScenarioIsAnswered) {
  Serve();
  const auto report = RunStorm(scenario_, {.target = target()});
  ASSERT_TRUE(report.ok());
  EXPECT_GT(report->all.offered, 100u);
  EXPECT_EQ(report->all.good, report->all.offered);
  EXPECT_GE(report->all.p50, milliseconds(10) * .99);
  EXPECT_TRUE(report->send_lag);
}

TEST_F(StormRunTest, WhoGivesUpIsCountedLate) {
  scenario_.deadline = scenario_.timeout = milliseconds(50);
  scenario_.classes = {{.deadline = milliseconds(50)}};
  scenario_.tiers[0].stages[0].time.mean = seconds(100);
  scenario_.phases[0].load = 200;
  Serve();
  const auto report = RunStorm(scenario_, {.target = target()});
  ASSERT_TRUE(report.ok());
  EXPECT_GT(report->all.offered, 10u);
  EXPECT_EQ(report->all.late, report->all.offered);
}

TEST_F(StormRunTest, NobodyThereIsSaidAtOnce) {
  const auto port = FreePort();
  ASSERT_TRUE(port.ok());
  const auto report =
      RunStorm(scenario_, {.target = {.host = "127.0.0.1", .port = *port}});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().message,
            "nothing answers at 127.0.0.1:" + std::to_string(*port) +
                ": Connection refused");
}

TEST_F(StormRunTest, EachAttemptIsCountedByItsAnswer) {
  Serve();
  const auto report = RunStorm(scenario_, {.target = target()});
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->answers.size(), 1u);
  EXPECT_EQ(report->answers[0].route, "/");
  EXPECT_EQ(report->answers[0].answer, "200");
  EXPECT_EQ(report->answers[0].count, report->all.offered);
}

// Or the next request on the same connection would not be understood.
TEST_F(StormRunTest, ABodyEndsWhereItsLengthSays) {
  Serve();
  const auto report = RunStorm(scenario_, {.target = target(),
                                           .method = "POST",
                                           .headers = {"Content-Type: a/b"},
                                           .body = "hello"});
  ASSERT_TRUE(report.ok());
  EXPECT_GT(report->all.offered, 100u);
  EXPECT_EQ(report->all.good, report->all.offered);
}

TEST_F(StormRunTest, WhoStopsGetsTheFiguresUpToThen) {
  scenario_.phases = {
      {.name = "first", .duration = milliseconds(300), .load = .2},
      {.name = "rest", .duration = seconds(600), .load = .2}};
  Serve();
  uint64_t asked = 0;
  const auto report = RunStorm(
      scenario_, {.target = target(), .stop = [&] { return ++asked > 3; }});
  ASSERT_TRUE(report.ok());
  ASSERT_TRUE(report->stopped);
  EXPECT_LT(*report->stopped, seconds(300));
  EXPECT_GT(report->all.offered, 0u);
  // Against what was played, not against ten minutes.
  EXPECT_GT(report->all.goodput_ratio, .9);
}

TEST_F(StormRunTest, WaitsUntilTheServiceIsIdle) {
  Serve();
  EXPECT_TRUE(WaitUntilIdle(target(), "/", seconds(10), seconds(0)));
  scenario_.tiers[0].stages[0].time.mean = seconds(100);
  EXPECT_FALSE(WaitUntilIdle(target(), "/", milliseconds(20), seconds(0)));
}

}  // namespace
}  // namespace weir::cli
