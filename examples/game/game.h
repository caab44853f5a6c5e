// A game server and its access servers over loopback, for the example and for
// the experiment's real points.

#ifndef WEIR_EXAMPLES_GAME_GAME_H_
#define WEIR_EXAMPLES_GAME_GAME_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "weir/stream/client.h"
#include "weir/stream/server.h"

namespace weir::game {

// Executes what players do, each with the same wait, and obeys the command that
// sets this wait: what changes the capacity of a real server, in one number.
class GameServer {
 public:
  struct Config {
    stream::ServerConfig server;
    Duration wait = std::chrono::milliseconds(1);
    Duration lifetime = std::chrono::seconds(2);  // Later than that is late.
  };
  struct Score {
    uint64_t in_time = 0;
    uint64_t late = 0;
    Duration busy{};  // Time spent on both.
  };

  static Result<std::unique_ptr<GameServer>> Make(const Config& config);

  // The main loop for `time`, with a tick of the game each 50 ms.
  void Run(Duration time);

  uint16_t port() const { return server_->port(); }
  Score score() const { return score_; }
  stream::ServerStatistics statistics() const { return server_->statistics(); }

 private:
  explicit GameServer(const Config& config)
      : wait_(config.wait), lifetime_(config.lifetime) {}
  void Handle(std::span<const std::byte> message);
  void Tick();

  Duration wait_;
  Duration lifetime_;
  Score score_;
  Instant next_tick_{};
  std::unique_ptr<stream::Server> server_;
};

// Sends what its players do, evenly, from a thread of its own.
class AccessServer {
 public:
  // `rate`: messages per second.
  static Result<std::unique_ptr<AccessServer>> Make(
      const stream::ClientConfig& config, double rate);
  ~AccessServer();

  void SetRate(double rate) { rate_ = rate; }
  // The command to the game server, among the messages.
  void SendWait(Duration wait);
  uint64_t sent() const { return sent_; }
  size_t unsent_bytes() const { return client_->unsent_bytes(); }

 private:
  AccessServer(std::unique_ptr<stream::Client> client, double rate)
      : client_(std::move(client)), rate_(rate) {}
  void Play();

  std::unique_ptr<stream::Client> client_;
  std::atomic<double> rate_;
  std::atomic<uint64_t> sent_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace weir::game

#endif  // WEIR_EXAMPLES_GAME_GAME_H_
