#include "weir/http/client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "weir/host/clock.h"

namespace weir::http {
namespace {

using namespace std::chrono_literals;
using Why = Next::Why;

// An HTTP/1.1 server on the loopback that answers what the test says: the text
// of an answer, or nothing to leave the request without one.
class Server {
 public:
  // Head and body of a request; any thread.
  using Handler = std::function<std::string(const std::string&)>;

  explicit Server(Handler handler)
      : handler_(std::move(handler)),
        listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener_, name, size) != 0 || listen(listener_, 64) != 0 ||
        getsockname(listener_, name, &size) != 0) {
      ADD_FAILURE() << "no listener";
    }
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    acceptor_ = std::thread([this] { Accept(); });
  }

  ~Server() {
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    close(listener_);
    for (const int fd : connections_) shutdown(fd, SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
    for (const int fd : connections_) close(fd);
  }

  const std::string& url() const { return url_; }
  int connections() const { return accepted_; }

  // Waits until so many requests have come.
  void AwaitRequests(int count) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return requests_ >= count; });
  }

 private:
  void Accept() {
    while (true) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      ++accepted_;
      connections_.push_back(fd);
      threads_.emplace_back([this, fd] { Serve(fd); });
    }
  }

  void Serve(int fd) {
    std::string in;
    char buffer[4096];
    while (true) {
      const size_t end = in.find("\r\n\r\n");
      const size_t body = end == std::string::npos ? 0 : BodySize(in);
      if (end == std::string::npos || in.size() < end + 4 + body) {
        const ssize_t got = read(fd, buffer, sizeof buffer);
        if (got <= 0) return;
        in.append(buffer, static_cast<size_t>(got));
        continue;
      }
      {
        const std::lock_guard lock(mutex_);
        ++requests_;
        arrived_.notify_all();
      }
      const std::string out = handler_(in.substr(0, end + 4 + body));
      in.erase(0, end + 4 + body);
      if (!out.empty() && send(fd, out.data(), out.size(), MSG_NOSIGNAL) < 0) {
        return;
      }
    }
  }

  static size_t BodySize(const std::string& head) {
    const size_t at = head.find("Content-Length: ");
    return at == std::string::npos ? 0 : std::stoul(head.substr(at + 16));
  }

  Handler handler_;
  int listener_;
  std::string url_;
  std::thread acceptor_;
  std::atomic<int> accepted_{0};
  // The acceptor's, until it has ended.
  std::vector<int> connections_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  int requests_ = 0;
};

std::string Answered(int status, const std::string& headers = "",
                     const std::string& body = "") {
  return "HTTP/1.1 " + std::to_string(status) + " x\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// Quick retries, nothing random that a test would see.
ClientPolicy QuickRetries() {
  ClientPolicy policy;
  policy.retries.backoff = {.first = 1us, .factor = 1, .ceiling = 1us};
  return policy;
}

std::unique_ptr<Client> MakeClient(const Server& server,
                                   const ClientPolicy& policy = QuickRetries(),
                                   size_t max_body_bytes = 1 << 20) {
  auto client = Client::Make({.url = server.url(),
                              .policy = policy,
                              .max_body_bytes = max_body_bytes,
                              .seed = 1});
  EXPECT_TRUE(client.ok());
  return *std::move(client);
}

bool Has(const std::string& request, std::string_view line) {
  return request.find("\r\n" + std::string(line) + "\r\n") != std::string::npos;
}

TEST(HttpClientTest, ACallCarriesItsScopeAndBringsTheAnswer) {
  std::string seen;
  Server server([&](const std::string& request) {
    seen = request;
    return Answered(200, "X-Kind: Good \r\n", "hello");
  });
  const auto client = MakeClient(server);
  const Instant now = host::MonotonicClock::Now();
  const Reply reply = client->Call({.method = "PUT",
                                    .path = "/a?b=1",
                                    .headers = {{"X-Mine", "1"}},
                                    .body = "abc"},
                                   {.criticality = Criticality::kDeferrable,
                                    .client = 42,
                                    .deadline = now + 1h});
  ASSERT_TRUE(reply.ok()) << reply.Describe();
  EXPECT_EQ(reply.response->status, 200);
  EXPECT_EQ(reply.response->body, "hello");
  EXPECT_EQ(*Find(reply.response->headers, "x-kind"), "Good");
  EXPECT_EQ(Find(reply.response->headers, "x-other"), nullptr);
  EXPECT_EQ(reply.attempts, 1);
  EXPECT_TRUE(seen.starts_with("PUT /a?b=1 HTTP/1.1\r\n"));
  EXPECT_TRUE(seen.ends_with("\r\n\r\nabc"));
  EXPECT_TRUE(Has(seen, "X-Mine: 1"));
  EXPECT_TRUE(Has(seen, "weir-criticality: deferrable"));
  EXPECT_TRUE(Has(seen, "weir-client: 42"));
  // The policy's ceiling, which is less than the hour that is left.
  EXPECT_TRUE(Has(seen, "x-envoy-expected-rq-timeout-ms: 60000"));
  EXPECT_EQ(seen.find("weir-attempt"), std::string::npos);
}

TEST(HttpClientTest, ARefusalIsTriedAgainWhenTheServerSaidWhen) {
  std::vector<std::string> seen;
  Server server([&](const std::string& request) {
    seen.push_back(request);
    return seen.size() == 1
               ? Answered(503, "Retry-After: 0\r\nweir-reason: level\r\n")
               : Answered(200);
  });
  const Reply reply = MakeClient(server)->Call({});
  EXPECT_TRUE(reply.ok()) << reply.Describe();
  EXPECT_EQ(reply.attempts, 2);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_TRUE(Has(seen[1], "weir-attempt: 1"));
}

TEST(HttpClientTest, WhoIsToldNotToTryAgainDoesNot) {
  Server server([](const std::string&) {
    return Answered(503,
                    "grpc-retry-pushback-ms: -1\r\nWeir-Reason: level\r\n");
  });
  const Reply reply = MakeClient(server)->Call({});
  EXPECT_FALSE(reply.ok());
  EXPECT_EQ(reply.attempts, 1);
  EXPECT_EQ(reply.gave_up, Why::kTold);
  EXPECT_TRUE(reply.never_retry_above);
  EXPECT_EQ(reply.response->reason(), "level");
  EXPECT_EQ(reply.Describe(), "503, level, not tried again: told");
}

TEST(HttpClientTest, AGatewayThatFailsIsTriedAgainOnlyForWhatMayBeDoneTwice) {
  std::atomic<int> hits = 0;
  Server server([&](const std::string&) {
    ++hits;
    return Answered(502);
  });
  // A client each: the failures of one spend the tokens of the next.
  const auto attempts = [&](const ClientRequest& request) {
    return MakeClient(server)->Call(request).attempts;
  };
  EXPECT_EQ(attempts({.method = "POST", .body = "x"}), 1);
  EXPECT_EQ(attempts({.method = "GET"}), 3);
  EXPECT_EQ(attempts({.method = "POST", .body = "x", .repeatable = true}), 3);
  EXPECT_EQ(attempts({.method = "GET", .repeatable = false}), 1);
  EXPECT_EQ(hits, 8);
}

TEST(HttpClientTest, WhatCouldNotBeConnectedToIsTriedAgain) {
  std::string url;
  {
    const Server gone([](const std::string&) { return Answered(200); });
    url = gone.url();
  }
  const auto client = Client::Make({.url = url, .policy = QuickRetries()});
  const Reply reply = (*client)->Call({.method = "POST", .body = "x"});
  EXPECT_EQ(reply.attempts, 3);
  EXPECT_EQ(reply.gave_up, Why::kAttempts);
  EXPECT_FALSE(reply.response);
  EXPECT_FALSE(reply.error.empty());
}

TEST(HttpClientTest, ACallEndsAtItsDeadline) {
  Server server([](const std::string&) { return std::string(); });
  const Instant begun = host::MonotonicClock::Now();
  const Reply reply = MakeClient(server)->Call({}, {.deadline = begun + 30ms});
  EXPECT_GE(host::MonotonicClock::Now() - begun, 27ms);
  EXPECT_FALSE(reply.ok());
  EXPECT_EQ(reply.attempts, 1);
  EXPECT_EQ(reply.gave_up, Why::kNotRetriable);
  // No time at all: nothing is sent.
  const Reply late = MakeClient(server)->Call({}, {.deadline = begun});
  EXPECT_EQ(late.attempts, 0);
  EXPECT_EQ(late.dropped, DropReason::kDeadline);
}

TEST(HttpClientTest, CancellingTheScopeEndsACallThatWaitsForItsAnswer) {
  Server server([](const std::string&) { return std::string(); });
  const auto client = MakeClient(server);
  std::stop_source source;
  Reply reply;
  std::thread caller(
      [&] { reply = client->Call({}, {.cancelled = source.get_token()}); });
  server.AwaitRequests(1);
  source.request_stop();
  caller.join();
  EXPECT_EQ(reply.gave_up, Why::kCancelled);
  EXPECT_FALSE(reply.response);
  // And one whose next attempt is an hour away.
  Server busy([](const std::string&) {
    return Answered(503, "Retry-After: 3600\r\n");
  });
  const auto patient = MakeClient(busy);
  std::stop_source later;
  std::thread waiter(
      [&] { reply = patient->Call({}, {.cancelled = later.get_token()}); });
  busy.AwaitRequests(1);
  later.request_stop();
  waiter.join();
  EXPECT_EQ(reply.gave_up, Why::kCancelled);
}

TEST(HttpClientTest, ASecondAttemptOvertakesOneThatHangs) {
  std::atomic<int> hits = 0;
  Server server([&](const std::string&) {
    return ++hits == 1 ? std::string() : Answered(200, "", "second");
  });
  ClientPolicy policy = QuickRetries();
  policy.hedge_after = 5ms;
  const auto client = MakeClient(server, policy);
  const Reply reply = client->Call({});
  ASSERT_TRUE(reply.ok()) << reply.Describe();
  EXPECT_EQ(reply.response->body, "second");
  EXPECT_EQ(reply.attempts, 2);
  EXPECT_EQ(client->counts().hedges, 1U);
  // The connection of the first is of no use any more, the next call is fine.
  EXPECT_TRUE(client->Call({}).ok());
}

TEST(HttpClientTest, AnAnswerThatIsTooLongIsAnError) {
  Server server([](const std::string&) {
    return Answered(200, "", std::string(1001, 'x'));
  });
  const auto client = MakeClient(server, QuickRetries(), 1000);
  const Reply reply = client->Call({});
  EXPECT_FALSE(reply.ok());
  EXPECT_EQ(reply.error, "the answer is longer than 1000 bytes");
  EXPECT_TRUE(MakeClient(server, QuickRetries(), 1001)->Call({}).ok());
}

TEST(HttpClientTest, ConnectionsAreKept) {
  Server server([](const std::string&) { return Answered(200); });
  const auto client = MakeClient(server);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(client->Call({}).ok());
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpClientTest, WhatTheServerWouldRefuseStaysAtHome) {
  Server server([](const std::string&) { return Answered(429); });
  const auto client = MakeClient(server);
  for (int i = 0; i < 400; ++i) client->Call({});
  const ClientCounts counts = client->counts();
  const uint64_t dropped =
      counts.dropped[static_cast<size_t>(DropReason::kThrottle)];
  EXPECT_EQ(counts.sent + dropped, 400U);
  EXPECT_GT(dropped, 300U);
}

TEST(HttpClientTest, ManyThreadsShareOneClient) {
  Server server([](const std::string&) { return Answered(200, "", "ok"); });
  const auto client = MakeClient(server);
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) good += client->Call({}).ok() ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 200);
  EXPECT_EQ(client->counts().sent, 200U);
  EXPECT_LE(server.connections(), 8);
}

TEST(HttpClientTest, AMalformedRequestIsNotSent) {
  Server server([](const std::string&) { return Answered(200); });
  const auto client = MakeClient(server);
  const ClientRequest bad[] = {
      {.method = "GE T"},
      {.method = ""},
      {.path = "cart"},
      {.path = "/a b"},
      {.path = "/a#b"},
      {.headers = {{"X-A", "1\r\nX-B: 2"}}},
      {.headers = {{"X A", "1"}}},
  };
  for (const ClientRequest& request : bad) {
    const Reply reply = client->Call(request);
    EXPECT_FALSE(reply.ok());
    EXPECT_FALSE(reply.error.empty());
    EXPECT_EQ(reply.attempts, 0);
  }
  EXPECT_EQ(server.connections(), 0);
  EXPECT_TRUE(client->Call({.headers = {{"X-Empty", ""}}}).ok());
}

TEST(HttpClientTest, AConfigurationOutOfRangeIsRefusedByName) {
  const auto refusal = [](const ClientConfig& config) {
    const auto client = Client::Make(config);
    return client ? std::string() : client.error().message;
  };
  EXPECT_EQ(refusal({.url = "http://h"}), "");
  EXPECT_EQ(refusal({.url = "https://h:1/base"}), "");
  for (const char* url : {"", "h:80", "ftp://h", "http://", "http:///x",
                          "http://h/", "http://h?q=1", "http://h x"}) {
    EXPECT_NE(refusal({.url = url}).find("`url`"), std::string::npos) << url;
  }
  EXPECT_NE(refusal({.url = "http://h", .connect_timeout = 0ms})
                .find("`connect_timeout`"),
            std::string::npos);
  ClientPolicy policy;
  policy.throttle.k = 0;
  EXPECT_NE(refusal({.url = "http://h", .policy = policy}), "");
}

}  // namespace
}  // namespace weir::http
