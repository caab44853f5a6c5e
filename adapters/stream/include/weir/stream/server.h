// Server: a main loop that executes messages of links which stay, and drops
// what is too old when it is asked for more than it can do.
//
//   #include "weir/stream/client.h"
//   #include "weir/stream/server.h"
//
//   using namespace std::chrono_literals;
//   namespace stream = weir::stream;
//
//   int main() {
//     int left = 3;
//     const auto execute = [&](stream::Peer& peer, auto message) {
//       peer.Send(message);  // Your work, in this thread.
//       --left;
//     };
//     auto server = stream::Server::Make({}, execute);
//     if (!server) return 1;
//     auto client = stream::Client::Connect({.port = (*server)->port()});
//     if (!client) return 1;
//     const auto message = std::as_bytes(std::span("hi"));
//     for (int i = 0; i < 3; ++i) (*client)->Send(message);
//     while (left > 0) (*server)->Run(10ms);
//   }
//
// A thread of its own reads all links into buffers of bounded size, so that a
// handler which takes long does not hide what arrives; once a buffer is full
// the peer has to wait, and the age of its Hellos tells how long.  Handlers run
// in the thread that calls Run(), one at a time.
//
// All that decides is of the core: weir/stale/capacity_meter.h says when the
// server is overloaded, weir/stale/slice_dropper.h what is too old.
//
// Or a guard decides about each message, with all its stages (weir/guard.h),
// and what it refuses is answered: `guard` in the configuration.  What it
// admits runs at once, in the loop, so nothing waits in the guard.

#ifndef WEIR_STREAM_SERVER_H_
#define WEIR_STREAM_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "weir/decision.h"
#include "weir/guard.h"
#include "weir/request.h"
#include "weir/result.h"
#include "weir/stale/capacity_meter.h"
#include "weir/stale/slice_dropper.h"
#include "weir/time.h"

namespace weir::stream {

enum class Work : uint8_t { kBytes, kMessages };

class Peer;

struct ServerConfig {
  std::string address = "127.0.0.1";
  uint16_t port = 0;  // 0: any that is free.
  Work work = Work::kBytes;
  // False: measure, but execute everything, or what `guard` admits; to the
  // guard no link is behind then.
  bool protect = true;
  size_t buffer_bytes = size_t{1} << 20;     // Of a link.  A power of 2, and at
  size_t max_frame_bytes = size_t{1} << 16;  // least two of these.
  size_t answer_bytes = size_t{1} << 20;     // Most unsent answers of a link.
  // SO_RCVBUF and SO_SNDBUF of each link, which the kernel takes twice; 0: as
  // it likes.
  int socket_bytes = 0;
  // Counts as arrived what lies in the kernel's receive buffers (SIOCINQ), too:
  // for buffers of ours that are smaller than those.  Of Work::kBytes only.
  bool count_kernel = false;
  CapacityMeter::Config capacity{};
  SliceDropper::Config dropper{};
  // Takes the place of the dropper, which then only tells it how far behind a
  // message's link is: a resource's `stale` says what is too far.  A refused
  // message is answered with a Refusal (weir/stream/frame.h).  Null: none.
  // Outlives the server, and belongs to the thread of Run().
  Guard* guard = nullptr;
  // Says which resource a message asks for, as the guard's policy numbers them
  // (Policy::FindResource()); empty: the first.  The policy then says how
  // critical it is and how long it may take.
  std::function<uint16_t(Peer&, std::span<const std::byte>)> resource{};
  // Says what the message itself knows better, of its client, say; it must
  // leave `resource`.  `arrived` and `behind` are set: a message arrives when
  // its turn comes, since nobody knows when the kernel got it, and its caller
  // has waited for `behind` before that, as far as is known; so long ago, its
  // deadline began.
  std::function<void(Peer&, std::span<const std::byte>, Request&)> classify{};
};

struct ServerStatistics {
  uint64_t arrived = 0;  // Messages that were read; their turn may be to come.
  uint64_t executed = 0;
  uint64_t dropped = 0;  // Discarded unexecuted and unanswered.
  uint64_t refused = 0;  // By the guard, and answered.
  uint64_t hellos = 0;
  uint64_t malformed = 0;  // Links closed since what they sent is no frame.
  size_t links = 0;
  size_t dropping = 0;      // Links.
  size_t kernel_bytes = 0;  // In the receive buffers of all links.
  uint64_t new_rulers = 0;  // SliceDropper::new_rulers().
  bool overloaded = false;
  CapacityMeter::Reading reading;
};

// A link, for the time of a handler.
class Peer {
 public:
  // Queues an answer.  False when the peer does not take its answers, or is
  // gone: nothing was queued.
  virtual bool Send(std::span<const std::byte> payload) = 0;
  // Small, unique among the links of a server.
  virtual uint64_t id() const = 0;
  // With a guard: at which level to answer this message, Decision::degrade;
  virtual uint8_t degrade() const = 0;
  // and how it ended, unless well.
  virtual void SetOutcome(Outcome outcome) = 0;

 protected:
  ~Peer() = default;
};

// Make, Run and destroy in one thread.
class Server {
 public:
  using Handler = std::function<void(Peer&, std::span<const std::byte>)>;

  // Listens, or says why it cannot.
  static Result<std::unique_ptr<Server>> Make(const ServerConfig& config,
                                              Handler handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const;

  // Executes or drops what arrives, for `time`, and at least one round of the
  // links.  Not later than one handler and one dropped buffer after that.
  void Run(Duration time);

  // The loop was busy with something else between two Run(): a tick, timers.
  void OtherWork(Duration time);

  // A handler may ask, too.
  ServerStatistics statistics() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::stream

#endif  // WEIR_STREAM_SERVER_H_
