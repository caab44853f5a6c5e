// Client: one link to a Server.  It puts a Hello into its stream first of all
// and then at regular intervals, stamped when it is queued, so that the stamp
// ages with the messages it lies among.  server.h has an example.
//
// To connect again, make a new one: what the old one had queued goes with it.

#ifndef WEIR_STREAM_CLIENT_H_
#define WEIR_STREAM_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "weir/result.h"
#include "weir/stream/frame.h"
#include "weir/time.h"

namespace weir::stream {

struct ClientConfig {
  std::string address = "127.0.0.1";
  uint16_t port = 0;
  Duration hello_interval = std::chrono::seconds(1);
  Duration tick = std::chrono::milliseconds(100);  // As the server's.
  bool stamp_messages = false;  // Each message carries a stamp of its own.
  size_t queue_bytes = size_t{4} << 20;      // Most unsent.
  size_t max_frame_bytes = size_t{1} << 16;  // Of an answer.
  int socket_bytes = 0;                      // As the server's.
  // Time for stamps; empty: host::MonotonicClock.  Any thread.
  std::function<Instant()> clock{};
  // What the server's guard refused; in the thread of the answers.
  std::function<void(const Refusal&)> refused{};
};

// Any thread, but for destruction.
class Client {
 public:
  // Answers of the server, in a thread of the client's.
  using Handler = std::function<void(std::span<const std::byte>)>;

  // Connects, or says why it cannot.
  static Result<std::unique_ptr<Client>> Connect(const ClientConfig& config,
                                                 Handler handler = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Queues a message.  False when the queue is full or the link is lost.
  bool Send(std::span<const std::byte> payload);

  bool connected() const;
  size_t unsent_bytes() const;

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::stream

#endif  // WEIR_STREAM_CLIENT_H_
