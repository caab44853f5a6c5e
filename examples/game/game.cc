#include "game.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "weir/host/clock.h"

namespace weir::game {
namespace {

// A message is a word and a number: when it was sent, or the wait, in ns.  The
// instant is for the score alone; it holds on one machine.  Padded to the 100
// bytes of a usual game message.
enum class Word : uint8_t { kPlay, kWait };
using Message = std::array<std::byte, 100>;

Message Write(Word word, int64_t number) {
  Message message{};
  message[0] = static_cast<std::byte>(word);
  std::memcpy(&message[1], &number, sizeof(number));
  return message;
}

constexpr Duration kTickInterval = std::chrono::milliseconds(50);
constexpr Duration kTickWork = std::chrono::milliseconds(1);

// Waits as a server does that waits for a database.
void Wait(Duration time) {
  if (time > Duration{}) std::this_thread::sleep_for(time);
}

}  // namespace

Result<std::unique_ptr<GameServer>> GameServer::Make(const Config& config) {
  std::unique_ptr<GameServer> game(new GameServer(config));
  auto server = stream::Server::Make(
      config.server, [game = game.get()](stream::Peer&, auto message) {
        game->Handle(message);
      });
  if (!server) return server.error();
  game->server_ = std::move(*server);
  return game;
}

void GameServer::Handle(std::span<const std::byte> message) {
  if (message.size() != sizeof(Message)) return;
  int64_t number = 0;
  std::memcpy(&number, &message[1], sizeof(number));
  if (static_cast<Word>(message[0]) == Word::kWait) {
    wait_ = Duration(number);
    return;
  }
  const Instant begun = host::MonotonicClock::Now();
  Wait(wait_);
  const Instant now = host::MonotonicClock::Now();
  const Duration age = now - Instant(Duration(number));
  score_.busy += now - begun;
  ++(age > lifetime_ ? score_.late : score_.in_time);
}

void GameServer::Run(Duration time) {
  Instant now = host::MonotonicClock::Now();
  const Instant end = now + time;
  while (now < end) {
    if (now >= next_tick_) {
      next_tick_ = now + kTickInterval;
      Tick();
    }
    now = host::MonotonicClock::Now();
    server_->Run(std::max(Duration{}, std::min(next_tick_, end) - now));
    now = host::MonotonicClock::Now();
  }
}

void GameServer::Tick() {
  const Instant begun = host::MonotonicClock::Now();
  Wait(kTickWork);  // The world moves on.
  server_->OtherWork(host::MonotonicClock::Now() - begun);
}

Result<std::unique_ptr<AccessServer>> AccessServer::Make(
    const stream::ClientConfig& config, double rate) {
  auto client = stream::Client::Connect(config);
  if (!client) return client.error();
  std::unique_ptr<AccessServer> access(
      new AccessServer(std::move(*client), rate));
  access->thread_ = std::thread([self = access.get()] { self->Play(); });
  return access;
}

AccessServer::~AccessServer() {
  stop_ = true;
  thread_.join();
}

void AccessServer::SendWait(Duration wait) {
  client_->Send(Write(Word::kWait, wait.count()));
}

void AccessServer::Play() {
  Instant last = host::MonotonicClock::Now();
  double due = 0;
  while (!stop_) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const Instant now = host::MonotonicClock::Now();
    due += rate_ * ToSeconds(now - last);
    last = now;
    for (; due >= 1; due -= 1) {
      if (client_->Send(Write(Word::kPlay, now.time_since_epoch().count()))) {
        ++sent_;
      }
    }
  }
}

}  // namespace weir::game
