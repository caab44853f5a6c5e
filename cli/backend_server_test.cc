// The sample service over the loopback, with a thread of its own.

#include "backend_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace weir::cli {
namespace {

using scenario::Scenario;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class BackendServerTest : public ::testing::Test {
 protected:
  BackendServerTest() {
    scenario_.phases = {{.name = "all", .duration = seconds(1), .load = 1}};
    scenario_.classes = {{}};
    scenario_.routes = {{}};
    scenario_.tiers = {
        {.workers = 2, .stages = {{.time = {.mean = milliseconds(1)}}}}};
    server_ = *BackendServer::Make(scenario_, {});
    thread_ = std::thread([this] { server_->Run(stop_.get()); });
  }
  ~BackendServerTest() override {
    const uint64_t one = 1;
    EXPECT_EQ(write(stop_.get(), &one, sizeof one),
              static_cast<ssize_t>(sizeof one));
    thread_.join();
  }

  // Sends `text`, as it is, and reads until `answers` answers are complete or
  // the other side closes.
  static std::string Talk(uint16_t port, const std::string& text,
                          size_t answers) {
    const auto address = Resolve({.host = "127.0.0.1", .port = port});
    const Descriptor socket(StartConnect(*address));
    pollfd wait = {.fd = socket.get(), .events = POLLOUT, .revents = 0};
    EXPECT_EQ(poll(&wait, 1, 10'000), 1);
    EXPECT_EQ(send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    std::string got;
    for (;;) {
      size_t complete = 0;
      for (size_t at = got.find("\r\n\r\n"); at != std::string::npos;
           at = got.find("\r\n\r\n", at + 4)) {
        // Bodies end with a newline here.
        if (got.find('\n', at + 4) != std::string::npos) ++complete;
      }
      if (complete >= answers) return got;
      wait.events = POLLIN;
      if (poll(&wait, 1, 10'000) != 1) return got + "(timed out)";
      char buffer[4096];
      const ssize_t size = recv(socket.get(), buffer, sizeof buffer, 0);
      if (size <= 0) return got;
      got.append(buffer, static_cast<size_t>(size));
    }
  }
  std::string Get(uint16_t port, const std::string& path) {
    return Talk(port, "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n", 1);
  }

  Scenario scenario_;
  Descriptor stop_{eventfd(0, EFD_CLOEXEC)};
  std::unique_ptr<BackendServer> server_;
  std::thread thread_;
};

TEST_F(BackendServerTest, AnswersWithItsServiceTime) {
  const std::string answer = Get(server_->port(), "/");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("weir-service-us: 1000\r\n"));
  EXPECT_THAT(answer, HasSubstr("Connection: keep-alive\r\n"));
}

TEST_F(BackendServerTest, HealthIsAnsweredWithoutWork) {
  const std::string answer = Get(server_->port(), "/healthz");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, ::testing::Not(HasSubstr("weir-service-us")));
}

TEST_F(BackendServerTest, KeepsAConnectionForRequestsOneAfterAnother) {
  std::string many;
  for (int i = 0; i < 50; ++i) {
    many += "POST / HTTP/1.1\r\nContent-Length: 3\r\nempty:\r\n\r\nabc";
  }
  const std::string answers = Talk(server_->port(), many, 50);
  size_t count = 0;
  for (size_t at = answers.find("200 OK"); at != std::string::npos;
       at = answers.find("200 OK", at + 1)) {
    ++count;
  }
  EXPECT_EQ(count, 50u);
}

TEST_F(BackendServerTest, ClosesForThoseWhoDoNotKeepAlive) {
  const std::string answer = Talk(server_->port(), "GET / HTTP/1.0\r\n\r\n", 2);
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(answer, ::testing::EndsWith("ok\n"));
}

TEST_F(BackendServerTest, WhatIsNoHttpIsRefused) {
  EXPECT_THAT(Talk(server_->port(), "hello there\r\n\r\n", 2),
              StartsWith("HTTP/1.1 400 Bad Request\r\n"));
}

TEST_F(BackendServerTest, AdminSetsTheCapacityAndTellsIt) {
  EXPECT_THAT(Get(server_->admin_port(), "/stats"),
              HasSubstr("\"workers\": 2, \"speed\": 1, "));
  EXPECT_THAT(Get(server_->admin_port(), "/set?workers=5&speed=0.5"),
              HasSubstr("\"workers\": 5, \"speed\": 0.5, "));
  EXPECT_THAT(Get(server_->admin_port(), "/reset"),
              HasSubstr("\"workers\": 2, \"speed\": 1, "));
  for (const char* wrong :
       {"/set?workers=-1", "/set?speed=0", "/set?speed=nan", "/set", "/none"}) {
    EXPECT_THAT(Talk(server_->admin_port(),
                     std::string("GET ") + wrong + " HTTP/1.0\r\n\r\n", 2),
                StartsWith("HTTP/1.1 404 Not Found\r\n"))
        << wrong;
  }
}

TEST_F(BackendServerTest, WorkOfACallerThatHasGoneIsDoneAllTheSame) {
  EXPECT_THAT(Get(server_->admin_port(), "/set?workers=0"),
              HasSubstr("\"workers\": 0"));
  {
    const auto address =
        Resolve({.host = "127.0.0.1", .port = server_->port()});
    const Descriptor socket(StartConnect(*address));
    pollfd wait = {.fd = socket.get(), .events = POLLOUT, .revents = 0};
    ASSERT_EQ(poll(&wait, 1, 10'000), 1);
    const std::string text = "GET / HTTP/1.1\r\n\r\n";
    ASSERT_EQ(send(socket.get(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
    // Until it has arrived: the admin port is served after it.
    while (Get(server_->admin_port(), "/stats").find("\"waiting\": 1") ==
           std::string::npos) {
    }
  }
  Get(server_->admin_port(), "/set?workers=1");
  while (Get(server_->admin_port(), "/stats").find("\"gone\": 1") ==
         std::string::npos) {
  }
}

TEST_F(BackendServerTest, APortInUseIsNamedWithTheFix) {
  const auto second = BackendServer::Make(scenario_, {.port = server_->port()});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().message,
            "port " + std::to_string(server_->port()) +
                " is in use; name another one, or none to get a free one");
}

}  // namespace
}  // namespace weir::cli
