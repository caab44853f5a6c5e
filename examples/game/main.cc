// A game server that loses most of its capacity for a while: what it does each
// second, over loopback.  Stops by itself.
//
//   game [seconds]     of each of the three phases; default 5
//   game [seconds] --unprotected

#include <fmt/core.h>

#include <charconv>
#include <cstdio>
#include <string_view>
#include <vector>

#include "game.h"

namespace weir::game {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

void Second(GameServer& game, std::string_view phase) {
  const GameServer::Score before = game.score();
  const uint64_t dropped = game.statistics().dropped;
  game.Run(seconds(1));
  const stream::ServerStatistics now = game.statistics();
  fmt::print("{:<12} {:>9.0f} {:>9.0f} {:>9} {:>9} {:>9}   {} of {}{}\n", phase,
             now.reading.capacity, now.reading.demand,
             game.score().in_time - before.in_time,
             game.score().late - before.late, now.dropped - dropped,
             now.dropping, now.links, now.overloaded ? ", overloaded" : "");
  std::fflush(stdout);
}

int Play(int phase_seconds, bool protect) {
  GameServer::Config config;
  config.lifetime = seconds(1);
  config.wait = Duration{};
  config.server.protect = protect;
  config.server.work = stream::Work::kMessages;
  config.server.capacity = {.unit = milliseconds(500), .window = seconds(3)};
  config.server.dropper.hello.tick = milliseconds(10);
  config.server.dropper.threshold = milliseconds(300);
  auto game = GameServer::Make(config);
  if (!game) {
    fmt::print(stderr, "game: {}\n", game.error().message);
    return 1;
  }
  std::vector<std::unique_ptr<AccessServer>> accesses;
  for (int i = 0; i < 3; ++i) {
    auto access = AccessServer::Make({.port = (*game)->port(),
                                      .hello_interval = milliseconds(100),
                                      .tick = milliseconds(10)},
                                     200);
    if (!access) {
      fmt::print(stderr, "game: {}\n", access.error().message);
      return 1;
    }
    accesses.push_back(std::move(*access));
  }
  fmt::print("three access servers, 200 messages/s each\n\n");
  fmt::print("{:<12} {:>9} {:>9} {:>9} {:>9} {:>9}   links dropping\n", "phase",
             "capacity", "demand", "in time", "late", "dropped");
  for (int i = 0; i < phase_seconds; ++i) Second(**game, "wait 0");
  accesses[0]->SendWait(milliseconds(5));
  for (int i = 0; i < phase_seconds; ++i) Second(**game, "wait 5 ms");
  for (int i = 0; i < phase_seconds; ++i) {
    // A command is a message like others and may be dropped: say it again.
    accesses[0]->SendWait(Duration{});
    Second(**game, "wait 0");
  }
  return 0;
}

int Main(int argc, char** argv) {
  int phase_seconds = 5;
  bool protect = true;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto [end, error] =
        std::from_chars(word.data(), word.data() + word.size(), phase_seconds);
    if (word == "--unprotected") {
      protect = false;
    } else if (error != std::errc{} || end != word.data() + word.size() ||
               phase_seconds < 1 || phase_seconds > 3600) {
      fmt::print(stderr, "usage: game [seconds] [--unprotected]\n");
      return 2;
    }
  }
  return Play(phase_seconds, protect);
}

}  // namespace
}  // namespace weir::game

int main(int argc, char** argv) { return weir::game::Main(argc, argv); }
