// Server and client over loopback.  Nothing here depends on how fast the
// machine is: loops go on until what must happen has happened.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio.hpp>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weir/guard.h"
#include "weir/host/clock.h"
#include "weir/snapshot.h"
#include "weir/stream/client.h"
#include "weir/stream/frame.h"
#include "weir/stream/server.h"

namespace weir::stream {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::unique_ptr<Server> MakeServer(const ServerConfig& config,
                                   Server::Handler handler) {
  auto server = Server::Make(config, std::move(handler));
  EXPECT_TRUE(server) << (server ? "" : server.error().message);
  return std::move(*server);
}

std::unique_ptr<Client> Connect(ClientConfig config, const Server& server,
                                Client::Handler handler = {}) {
  config.port = server.port();
  auto client = Client::Connect(config, std::move(handler));
  EXPECT_TRUE(client) << (client ? "" : client.error().message);
  return std::move(*client);
}

TEST(StreamTest, MessagesArriveInOrderAndAnswersReturn) {
  std::vector<std::string> got;
  std::atomic<int> answers{0};
  const auto server = MakeServer({}, [&](Peer& peer, auto payload) {
    got.push_back(Text(payload));
    EXPECT_TRUE(peer.Send(payload));
  });
  const auto client = Connect({}, *server, [&](auto payload) {
    EXPECT_EQ(Text(payload), std::to_string(answers));
    ++answers;
  });
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(client->Send(Bytes(std::to_string(i))));
  }
  while (answers < 1000) server->Run(milliseconds(1));
  ASSERT_EQ(got.size(), 1000u);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], std::to_string(i));
  EXPECT_EQ(server->statistics().executed, 1000u);
  EXPECT_EQ(server->statistics().dropped, 0u);
  EXPECT_GE(server->statistics().hellos, 1u);
}

TEST(StreamTest, ALinkThatClosesIsForgottenAfterItsMessages) {
  int executed = 0;
  const auto server = MakeServer({}, [&](Peer&, auto) { ++executed; });
  auto client = Connect({}, *server);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(client->Send(Bytes("bye")));
  while (client->unsent_bytes() > 0) server->Run(milliseconds(1));
  client.reset();
  while (executed < 100) server->Run(milliseconds(1));
  while (server->statistics().links > 0) server->Run(milliseconds(1));
  EXPECT_EQ(server->statistics().malformed, 0u);
}

TEST(StreamTest, WhatIsNoFrameClosesTheLink) {
  int executed = 0;
  const auto server =
      MakeServer({.max_frame_bytes = 64}, [&](Peer&, auto) { ++executed; });
  const auto client = Connect({}, *server);
  ASSERT_TRUE(client->Send(Bytes("good")));
  ASSERT_TRUE(client->Send(Bytes(std::string(100, 'x'))));
  while (client->connected() || server->statistics().malformed == 0) {
    server->Run(milliseconds(1));
  }
  EXPECT_EQ(executed, 1);
  EXPECT_EQ(server->statistics().links, 0u);
}

TEST(StreamTest, APeerThatTakesNoAnswersIsToldSo) {
  int refused = 0;
  const std::string answer(60'000, 'x');
  const auto server =
      MakeServer({.answer_bytes = 100'000}, [&](Peer& peer, auto) {
        if (!peer.Send(Bytes(answer))) ++refused;
      });
  // A socket that is never read.
  boost::asio::io_context context;
  boost::asio::ip::tcp::socket socket(context);
  socket.connect({boost::asio::ip::address_v4::loopback(), server->port()});
  std::vector<std::byte> frames;
  for (int i = 0; i < 1000; ++i) AppendMessage(frames, Bytes("?"));
  boost::asio::write(socket, boost::asio::buffer(frames));
  while (server->statistics().executed < 1000) server->Run(milliseconds(1));
  EXPECT_GT(refused, 0);
}

// An overload from its beginning to its end, with clocks that disagree by an
// hour: the server finds it, drops what is old, and recovers.  Every message
// is either executed or dropped.
TEST(StreamTest, AnOverloadIsFoundHandledAndLeft) {
  for (const bool stamped : {false, true}) {
    ServerConfig config;
    config.work = Work::kMessages;
    config.capacity = {.unit = milliseconds(20), .window = milliseconds(100)};
    config.dropper.hello.tick = milliseconds(1);
    config.dropper.threshold = milliseconds(30);
    const auto server = MakeServer(config, [](Peer&, auto) {
      // 2 ms of work.
      const Instant end = host::MonotonicClock::Now() + milliseconds(2);
      while (host::MonotonicClock::Now() < end) {
      }
    });
    const auto client = Connect(
        {.hello_interval = milliseconds(10),
         .tick = milliseconds(1),
         .stamp_messages = stamped,
         .clock = [] { return host::MonotonicClock::Now() + hours(1); }},
        *server);
    uint64_t sent = 0;
    while (server->statistics().dropped == 0) {
      for (int i = 0; i < 40; ++i) sent += client->Send(Bytes("work"));
      server->Run(milliseconds(10));
    }
    EXPECT_LE(server->statistics().reading.capacity, 500);
    while (server->statistics().overloaded ||
           server->statistics().executed + server->statistics().dropped <
               sent) {
      server->Run(milliseconds(10));
    }
    EXPECT_EQ(server->statistics().executed + server->statistics().dropped,
              sent);
    EXPECT_EQ(server->statistics().dropping, 0u);
    EXPECT_EQ(server->statistics().reading.waiting, 0);
  }
}

// The reading thread goes on while a handler runs, whatever that takes.
TEST(StreamTest, AHandlerThatTakesLongDoesNotHideWhatArrives) {
  std::unique_ptr<Server> server;
  server = MakeServer({.work = Work::kMessages}, [&](Peer&, auto) {
    // The first message is over when all others have arrived.
    while (server->statistics().arrived < 5000) std::this_thread::yield();
  });
  const auto client = Connect({}, *server);
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(client->Send(Bytes("work")));
  while (server->statistics().executed == 0) server->Run(Duration{});
  EXPECT_EQ(server->statistics().arrived, 5000u);
  EXPECT_LE(server->statistics().executed, 4u);  // One turn.
}

TEST(StreamTest, WhatTheKernelHoldsCountsWhereTheServerDoesNotReadAhead) {
  constexpr size_t kBuffer = 2048;
  for (const bool count : {false, true}) {
    std::unique_ptr<Server> server;
    server = MakeServer(
        {.buffer_bytes = kBuffer,
         .max_frame_bytes = 1024,
         .count_kernel = count,
         .capacity = {.unit = milliseconds(1), .window = milliseconds(10)}},
        [&](Peer&, auto) {
          if (server->statistics().executed > 0) return;
          const Instant unit = host::MonotonicClock::Now() + milliseconds(1);
          while (server->statistics().kernel_bytes < 20'000 ||
                 host::MonotonicClock::Now() < unit) {
            std::this_thread::yield();
          }
        });
    const auto client = Connect({}, *server);
    for (int i = 0; i < 300; ++i) {
      ASSERT_TRUE(client->Send(Bytes(std::string(100, 'x'))));
    }
    while (server->statistics().executed == 0) server->Run(Duration{});
    if (count) {
      EXPECT_GT(server->statistics().reading.waiting, 15'000);
    } else {
      EXPECT_LE(server->statistics().reading.waiting, int64_t{kBuffer});
    }
  }
}

// A guard of one worker, on the heap.
struct Guarded {
  explicit Guarded(const Policy& policy)
      : region(policy, host::MonotonicClock::Now()) {
    const int shard = *region->ClaimShard({.pid = 1, .start = 1});
    guard = std::move(*Guard::Make(std::make_shared<Policy>(policy), *region,
                                   shard, host::MonotonicClock::Now()));
  }
  uint64_t Counted(ClassCounter counter, Criticality criticality) {
    return Read(*region)[counter][Index(criticality)];
  }
  HeapRegion region;
  std::unique_ptr<Guard> guard;
};

Policy MakePolicy() {
  Policy policy;
  policy.service = "stream";
  policy.resources.push_back({.name = "api"});
  return policy;
}

TEST(StreamTest, WhatTheGuardRefusesIsAnsweredWithItsReason) {
  Policy policy = MakePolicy();
  policy.resources[0].quota = QuotaPolicy{
      .rule = {.calls = 3, .kind = Quota::Kind::kFixed, .window = hours(1)}};
  Guarded world(policy);
  std::vector<std::string> ran;
  const auto server =
      MakeServer({.guard = world.guard.get()},
                 [&](Peer&, auto payload) { ran.push_back(Text(payload)); });
  std::vector<std::string> refused;
  std::atomic<int> refusals{0};
  const auto client =
      Connect({.refused =
                   [&](const Refusal& refusal) {
                     EXPECT_EQ(refusal.reason, Reason::kQuota);
                     EXPECT_GT(refusal.retry_after, Duration{});
                     EXPECT_LE(refusal.retry_after, std::chrono::minutes(90));
                     EXPECT_FALSE(refusal.never_retry);
                     refused.push_back(Text(refusal.head));
                     ++refusals;
                   }},
              *server, [](auto) { ADD_FAILURE() << "nobody answers"; });
  const std::string rest(100, '.');
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(client->Send(Bytes(std::to_string(i) + rest)));
  }
  while (refusals < 5) server->Run(milliseconds(1));
  EXPECT_EQ(ran.size(), 3u);
  // Each by its beginning, in order.
  ASSERT_EQ(refused.size(), 5u);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(refused[static_cast<size_t>(i)],
              (std::to_string(3 + i) + rest).substr(0, kMostHeadBytes));
  }
  EXPECT_EQ(server->statistics().executed, 3u);
  EXPECT_EQ(server->statistics().refused, 5u);
  EXPECT_EQ(server->statistics().dropped, 0u);
}

TEST(StreamTest, TheGuardLearnsHowWhatItAdmittedEnded) {
  Policy policy = MakePolicy();
  policy.resources.push_back({.name = "health", .exempt = true});
  Guarded world(policy);
  const auto server =
      MakeServer({.guard = world.guard.get(),
                  .resource =
                      [](Peer&, auto payload) {
                        return uint16_t{Text(payload) == "health"};
                      },
                  .classify =
                      [](Peer&, auto payload, Request& request) {
                        EXPECT_EQ(request.behind, Duration{});
                        request.criticality = Criticality::kVital;
                        const std::string text = Text(payload);
                        if (text == "late")
                          request.deadline = request.arrived + Duration(1);
                      }},
                 [&](Peer& peer, auto payload) {
                   EXPECT_EQ(peer.degrade(), 0);
                   if (Text(payload) == "health") return;
                   EXPECT_EQ(world.guard->inflight(), 1);
                   if (Text(payload) == "error")
                     peer.SetOutcome(Outcome::kError);
                 });
  const auto client = Connect({}, *server);
  for (const char* text : {"good", "error", "late", "good", "health"}) {
    ASSERT_TRUE(client->Send(Bytes(text)));
  }
  while (server->statistics().executed < 5) server->Run(milliseconds(1));
  const auto counted = [&](ClassCounter counter) {
    return world.Counted(counter, Criticality::kVital);
  };
  // What took too long was worked on to its end: its latency is a true one.
  EXPECT_EQ(counted(ClassCounter::finished_ok_total), 3u);
  EXPECT_EQ(counted(ClassCounter::late_total), 1u);
  EXPECT_EQ(counted(ClassCounter::finished_error_total), 1u);
  EXPECT_EQ(world.guard->inflight(), 0);
}

TEST(StreamTest, AMessageIsAsCriticalAndAsUrgentAsThePolicySays) {
  Policy policy = MakePolicy();
  policy.deadline = std::chrono::seconds(7);
  policy.resources[0].criticality = Criticality::kSheddable;
  policy.resources.push_back({.name = "save",
                              .criticality = Criticality::kVital,
                              .deadline = std::chrono::seconds(20)});
  Guarded world(policy);
  std::vector<Request> seen;
  const auto server = MakeServer(
      {.guard = world.guard.get(),
       .resource =
           [](Peer&, auto payload) {
             return uint16_t{Text(payload) == "save"};
           },
       .classify = [&](Peer&, auto,
                       const Request& request) { seen.push_back(request); }},
      [](Peer&, auto) {});
  const auto client = Connect({}, *server);
  for (const char* text : {"move", "save"}) {
    ASSERT_TRUE(client->Send(Bytes(text)));
  }
  while (server->statistics().executed < 2) server->Run(milliseconds(1));
  EXPECT_EQ(seen[0].criticality, Criticality::kSheddable);
  EXPECT_EQ(seen[0].deadline - seen[0].arrived, std::chrono::seconds(7));
  EXPECT_EQ(seen[1].criticality, Criticality::kVital);
  EXPECT_EQ(seen[1].deadline - seen[1].arrived, std::chrono::seconds(20));
  for (const Criticality criticality :
       {Criticality::kSheddable, Criticality::kVital}) {
    EXPECT_EQ(world.Counted(ClassCounter::admitted_total, criticality), 1u);
  }
}

TEST(StreamTest, AHandlerThatThrowsGivesItsPlaceBack) {
  Guarded world(MakePolicy());
  const auto server = MakeServer({.guard = world.guard.get()}, [](Peer&, auto) {
    throw std::runtime_error("no");
  });
  const auto client = Connect({}, *server);
  ASSERT_TRUE(client->Send(Bytes("work")));
  bool thrown = false;
  while (!thrown) {
    try {
      server->Run(milliseconds(1));
    } catch (const std::runtime_error&) {
      thrown = true;
    }
  }
  EXPECT_EQ(world.guard->inflight(), 0);
  EXPECT_EQ(world.Counted(ClassCounter::finished_ignored_total,
                          Criticality::kImportant),
            1u);
}

// The overload of before, before a guard: what bears no waiting is refused once
// its link is too far behind, and told so; what has no bound runs.
TEST(StreamTest, TheStaleStageKnowsHowFarBehindALinkIs) {
  Policy policy = MakePolicy();
  policy.deadline = std::chrono::seconds(60);
  policy.resources[0].stale = milliseconds(30);
  policy.resources.push_back({.name = "save"});
  Guarded world(policy);
  ServerConfig config;
  config.work = Work::kMessages;
  config.capacity = {.unit = milliseconds(20), .window = milliseconds(100)};
  config.dropper.hello.tick = milliseconds(1);
  config.dropper.threshold = milliseconds(30);
  config.guard = world.guard.get();
  config.resource = [](Peer&, auto payload) {
    return uint16_t{Text(payload) == "save"};
  };
  uint64_t saved = 0;
  const auto server = MakeServer(config, [&](Peer&, auto payload) {
    saved += Text(payload) == "save" ? 1 : 0;
    const Instant end = host::MonotonicClock::Now() + milliseconds(2);
    while (host::MonotonicClock::Now() < end) {
    }
  });
  std::atomic<uint64_t> refusals{0};
  const auto client =
      Connect({.hello_interval = milliseconds(10),
               .tick = milliseconds(1),
               .clock = [] { return host::MonotonicClock::Now() + hours(1); },
               .refused =
                   [&](const Refusal& refusal) {
                     EXPECT_EQ(refusal.reason, Reason::kStale);
                     EXPECT_EQ(Text(refusal.head), "work");
                     ++refusals;
                   }},
              *server);
  uint64_t sent = 0;
  uint64_t to_save = 0;
  while (server->statistics().refused == 0) {
    for (int i = 0; i < 40; ++i) sent += client->Send(Bytes("work"));
    to_save += client->Send(Bytes("save"));
    server->Run(milliseconds(10));
  }
  const auto done = [&] {
    const ServerStatistics statistics = server->statistics();
    return statistics.executed + statistics.refused == sent + to_save;
  };
  while (server->statistics().overloaded || !done()) {
    server->Run(milliseconds(10));
  }
  while (refusals < server->statistics().refused) std::this_thread::yield();
  EXPECT_EQ(saved, to_save);
  EXPECT_EQ(refusals, server->statistics().refused);
  EXPECT_EQ(server->statistics().dropped, 0u);
  EXPECT_EQ(
      world.Counted(ClassCounter::shed_stale_total, Criticality::kImportant),
      refusals);
}

TEST(StreamTest, SaysWhyItCannotStart) {
  const auto complaint = [](const ServerConfig& config) {
    auto server = Server::Make(config, [](Peer&, auto) {});
    return server ? std::string() : server.error().message;
  };
  EXPECT_EQ(complaint({.address = "nowhere"}),
            "`address` is no IP address: nowhere");
  EXPECT_EQ(complaint({.buffer_bytes = 1000}),
            "`buffer_bytes` is not a power of 2 that is at least twice "
            "`max_frame_bytes`");
  EXPECT_EQ(complaint({.socket_bytes = -1}), "`socket_bytes` is below 0");
  EXPECT_EQ(complaint({.capacity = {.unit = Duration{}}}),
            "`capacity`: `unit` is not between 1 ms and 1 h");
  const auto server = MakeServer({}, [](Peer&, auto) {});
  EXPECT_EQ(complaint({.port = server->port()}),
            "cannot listen on 127.0.0.1:" + std::to_string(server->port()) +
                ": Address already in use");
}

// Buffers of the TCP sockets of this process that have `port` at either end,
// both of each.
std::vector<int> BuffersAt(uint16_t port) {
  std::vector<int> buffers;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in own{};
    sockaddr_in peer{};
    socklen_t size = sizeof(own);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0 ||
        own.sin_family != AF_INET) {
      continue;
    }
    size = sizeof(peer);
    const bool connected =
        getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
    if (ntohs(own.sin_port) != port &&
        !(connected && ntohs(peer.sin_port) == port)) {
      continue;
    }
    for (const int option : {SO_RCVBUF, SO_SNDBUF}) {
      int bytes = 0;
      size = sizeof(bytes);
      EXPECT_EQ(getsockopt(fd, SOL_SOCKET, option, &bytes, &size), 0);
      buffers.push_back(bytes);
    }
  }
  return buffers;
}

TEST(StreamTest, SocketBytesAreTheKernelsBuffersOfBothEnds) {
  for (const int bytes : {8192, 30'000}) {
    int executed = 0;
    const auto server =
        MakeServer({.socket_bytes = bytes}, [&](Peer&, auto) { ++executed; });
    const auto client = Connect({.socket_bytes = bytes}, *server);
    ASSERT_TRUE(client->Send(Bytes("hello")));
    while (executed == 0) server->Run(milliseconds(1));
    // Who listens, the link it accepted, and the client; the kernel doubles.
    EXPECT_EQ(BuffersAt(server->port()), std::vector<int>(6, 2 * bytes));
  }
}

TEST(StreamTest, TheExampleInTheHeaderIsTheOneThatIsBuilt) {
  const std::string root = std::getenv("WEIR_SOURCE_DIR");
  const auto lines = [](const std::string& path, const std::string& prefix) {
    std::ifstream file(path);
    EXPECT_TRUE(file) << path;
    std::vector<std::string> found;
    bool inside = false;
    for (std::string line; std::getline(file, line);) {
      if (line == prefix + "int main() {") inside = true;
      if (inside)
        found.push_back(line.substr(std::min(line.size(), prefix.size())));
      if (line == prefix + "}") inside = false;
    }
    return found;
  };
  const auto built = lines(root + "/adapters/stream/usage_example.cc", "");
  EXPECT_GT(built.size(), 10u);
  EXPECT_EQ(
      lines(root + "/adapters/stream/include/weir/stream/server.h", "//   "),
      built);
}

}  // namespace
}  // namespace weir::stream
