#include "weir/stream/server.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <boost/asio.hpp>
#include <cassert>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "inbox.h"
#include "outbox.h"
#include "weir/host/clock.h"
#include "weir/splitmix64.h"

namespace weir::stream {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

// Messages of a link in a row, before it is another link's turn.  Chosen: few,
// so that a link whose messages are costly keeps others waiting for little.
constexpr int kTurn = 4;

// Tells the loop that there is something to do.
class Bell {
 public:
  void Ring() {
    {
      const std::lock_guard lock(mutex_);
      rung_ = true;
    }
    condition_.notify_one();
  }
  void Wait(Duration most) {
    std::unique_lock lock(mutex_);
    condition_.wait_for(lock, most, [this] { return rung_; });
    rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool rung_ = false;
};

// The reading side of a link, in the reading thread but for what says so.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, const ServerConfig& config, Bell& bell)
      : inbox(config.buffer_bytes, config.max_frame_bytes),
        socket_(std::move(socket)),
        outbox_(socket_, config.answer_bytes),
        bell_(bell) {}

  void Read() {
    const std::span<std::byte> room = inbox.Room();
    if (room.empty()) {
      if (inbox.Pause()) Read();
      return;
    }
    socket_.async_read_some(
        boost::asio::buffer(room.data(), room.size()),
        [self = shared_from_this()](const error_code& error, size_t count) {
          if (!error && self->inbox.Wrote(count)) {
            self->bell_.Ring();
            self->Read();
            return;
          }
          self->Close(!error);
        });
  }

  void Close(bool is_malformed) {
    error_code ignored;
    {
      const std::lock_guard lock(mutex_);
      socket_.close(ignored);
    }
    outbox_.Lose();
    malformed = is_malformed;
    closed.store(true);
    bell_.Ring();
  }

  // Any thread.
  template <typename Append>
  bool Send(Append append) {
    return outbox_.Push(shared_from_this(), false, append);
  }
  // What was received and not read yet.
  size_t kernel_bytes() const {
    const std::lock_guard lock(mutex_);
    error_code gone;
    return socket_.is_open() ? socket_.available(gone) : 0;
  }
  void Continue() {
    boost::asio::post(socket_.get_executor(),
                      [self = shared_from_this()] { self->Read(); });
  }

  Inbox inbox;
  bool malformed = false;           // Set before closed.
  std::atomic<bool> closed{false};  // No more will arrive.

 private:
  mutable std::mutex mutex_;  // Closing the socket, and using it elsewhere.
  tcp::socket socket_;
  Outbox outbox_;
  Bell& bell_;
};

// A link as the loop sees it.
class LoopPeer final : public Peer {
 public:
  LoopPeer(std::shared_ptr<Session> of, SliceDropper& dropper, uint64_t id)
      : session(std::move(of)), link(dropper), id_(id) {}

  bool Send(std::span<const std::byte> payload) override {
    return session->Send([&](auto& out) { AppendMessage(out, payload); });
  }
  uint64_t id() const override { return id_; }
  uint8_t degrade() const override { return level; }
  void SetOutcome(Outcome of_message) override { outcome = of_message; }

  const std::shared_ptr<Session> session;
  SliceDropper::Link link;
  uint64_t seen = 0;  // Of what has arrived, in the unit of work.
  // Of the message that is handled.
  uint8_t level = 0;
  std::optional<Outcome> outcome;

 private:
  uint64_t id_;
};

}  // namespace

class Server::Impl {
 public:
  Impl(const ServerConfig& config, Handler handler, CapacityMeter meter,
       SliceDropper dropper)
      : config_(config),
        handler_(std::move(handler)),
        meter_(std::move(meter)),
        dropper_(std::move(dropper)),
        acceptor_(context_) {}

  ~Impl() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

  std::optional<Error> Listen() {
    error_code error;
    const auto address = boost::asio::ip::make_address(config_.address, error);
    if (error) {
      return Error{"`address` is no IP address: " + config_.address};
    }
    const tcp::endpoint endpoint(address, config_.port);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (config_.socket_bytes > 0) {
      SetBuffers(acceptor_, config_.socket_bytes, error);
    }
    if (!error) acceptor_.bind(endpoint, error);
    if (!error)
      acceptor_.listen(boost::asio::socket_base::max_listen_connections, error);
    if (error) {
      return Error{"cannot listen on " + config_.address + ":" +
                   std::to_string(config_.port) + ": " + error.message()};
    }
    port_ = acceptor_.local_endpoint().port();
    Accept();
    thread_ = std::thread([this] { context_.run(); });
    return std::nullopt;
  }

  void Run(Duration time) {
    Instant now = host::MonotonicClock::Now();
    const Instant end = now + time;
    do {
      Join();
      bool any = false;
      for (const auto& peer : peers_) any = Turn(*peer, now) || any;
      Leave();
      now = host::MonotonicClock::Now();
      if (meter_.Advance(now)) {
        if (config_.protect) dropper_.Judge(meter_.reading(), now);
        if (config_.guard != nullptr) config_.guard->Tick(now);
      }
      // Wakes for the end of a unit as well: an idle server recovers.
      if (!any && now < end) {
        bell_.Wait(std::min(end - now, config_.capacity.unit));
        now = host::MonotonicClock::Now();
      }
    } while (now < end);
  }

  void OtherWork(Duration time) { meter_.OtherWork(time); }
  uint16_t port() const { return port_; }

  ServerStatistics statistics() const {
    ServerStatistics all = statistics_;
    all.arrived = arrived_before_;
    for (const auto& peer : peers_) {
      all.arrived += peer->session->inbox.arrived_messages();
      all.kernel_bytes += peer->session->kernel_bytes();
    }
    all.links = dropper_.links();
    all.dropping = dropper_.dropping();
    all.new_rulers = dropper_.new_rulers();
    all.overloaded = dropper_.overloaded();
    all.reading = meter_.reading();
    return all;
  }

 private:
  void Accept() {
    acceptor_.async_accept([this](const error_code& error, tcp::socket socket) {
      if (!error) {
        error_code ignored;
        socket.set_option(tcp::no_delay(true), ignored);
        auto session =
            std::make_shared<Session>(std::move(socket), config_, bell_);
        session->Read();
        {
          const std::lock_guard lock(joining_mutex_);
          joining_.push_back(std::move(session));
        }
        bell_.Ring();
        Accept();
        return;
      }
      // Out of descriptors: try again when some may be free.
      retry_.expires_after(std::chrono::milliseconds(100));
      retry_.async_wait([this](const error_code& stopped) {
        if (!stopped) Accept();
      });
    });
  }

  void Join() {
    std::vector<std::shared_ptr<Session>> joining;
    {
      const std::lock_guard lock(joining_mutex_);
      joining.swap(joining_);
    }
    for (auto& session : joining) {
      peers_.push_back(
          std::make_unique<LoopPeer>(std::move(session), dropper_, ++last_id_));
    }
  }

  // A link that is closed goes once all of its frames are handled.
  void Leave() {
    std::erase_if(peers_, [this](const std::unique_ptr<LoopPeer>& peer) {
      if (!peer->session->closed.load() || !peer->session->inbox.empty()) {
        return false;
      }
      if (peer->session->malformed) ++statistics_.malformed;
      arrived_before_ += peer->session->inbox.arrived_messages();
      return true;
    });
  }

  // Counts what has arrived since the last time.
  void Arrived(LoopPeer& peer) {
    const Inbox& inbox = peer.session->inbox;
    const bool bytes = config_.work == Work::kBytes;
    uint64_t all = bytes ? inbox.arrived_bytes() : inbox.arrived_messages();
    // Fewer by a frame that is partly here; what is read meanwhile counts
    // next time.
    if (bytes && config_.count_kernel) all += peer.session->kernel_bytes();
    meter_.Arrived(static_cast<int64_t>(all - peer.seen));
    peer.seen = all;
  }

  // Executes a few messages of a link, or discards up to its next Hello.
  // Returns whether there were any; `now` becomes the time after that.
  bool Turn(LoopPeer& peer, Instant& now) {
    Inbox& inbox = peer.session->inbox;
    Inbox::Frame frame;
    bool any = false;
    int executed = 0;
    // What is dropped does not use up the turn: a link that fell behind must
    // catch up however long the others take.
    for (size_t bytes = 0; executed < kTurn && bytes < config_.buffer_bytes;
         bytes += frame.frame_bytes) {
      if (Drops(peer, now)) {
        const Inbox::Skipped skipped = inbox.SkipMessages();
        Dropped(skipped.messages, skipped.bytes);
        bytes += skipped.bytes;
        any = any || skipped.messages > 0;
      }
      if (!inbox.Next(frame)) break;
      any = true;
      if (frame.kind != Kind::kMessage) {
        dropper_.Hello(peer.link, frame.stamp, now);
      }
      if (frame.kind == Kind::kHello) {
        ++statistics_.hellos;
        if (config_.work == Work::kBytes) Dropped(0, frame.frame_bytes);
      } else if (Drops(peer, now)) {
        Dropped(1, frame.frame_bytes);
      } else if (config_.guard != nullptr) {
        executed += Guarded(peer, frame, now) ? 1 : 0;
      } else {
        Execute(peer, frame, host::MonotonicClock::Now(), now);
        ++executed;
      }
    }
    Arrived(peer);  // Afterwards: nothing is handled before it has arrived.
    if (inbox.Release()) peer.session->Continue();
    return any;
  }

  bool Drops(const LoopPeer& peer, Instant now) const {
    return config_.guard == nullptr && !dropper_.Admit(peer.link, now);
  }

  // What a message asks for: as the policy says, but for what it says itself.
  Request Ask(LoopPeer& peer, const Inbox::Frame& frame, Instant now) const {
    const Policy& policy = config_.guard->policy();
    Request request;
    if (config_.resource) {
      request.resource = config_.resource(peer, frame.payload);
    }
    const Resource& resource = policy.resources[request.resource];
    request.criticality = resource.criticality;
    request.arrived = now;
    request.behind = dropper_.Behind(peer.link);
    request.deadline = now - request.behind +
                       std::min(resource.deadline.value_or(policy.deadline),
                                policy.deadline_ceiling);
    if (!config_.classify) return request;
    [[maybe_unused]] const uint16_t asked_for = request.resource;
    config_.classify(peer, frame.payload, request);
    assert(request.resource == asked_for && "ServerConfig::resource says it");
    return request;
  }

  // Returns whether the guard let it run.
  bool Guarded(LoopPeer& peer, const Inbox::Frame& frame, Instant& now) {
    now = host::MonotonicClock::Now();
    const Request request = Ask(peer, frame, now);
    Admission admission = config_.guard->Admit(request, now);
    if (admission.decision.verdict != Verdict::kAdmit) {
      Refuse(peer, frame, admission.decision);
      return false;
    }
    peer.level = admission.decision.degrade;
    peer.outcome.reset();
    Execute(peer, frame, now, now);
    dropper_.Ran(peer.link, now);
    config_.guard->Finish(std::move(admission.permit),
                          peer.outcome.value_or(Outcome::kOk), now);
    return true;
  }

  void Refuse(LoopPeer& peer, const Inbox::Frame& frame,
              const Decision& decision) {
    // As much as a half is added, so that those who were refused together do
    // not come back together; an hour at most, which no estimate exceeds.
    const Duration wait =
        std::min<Duration>(decision.retry_after, std::chrono::hours(1));
    const Refusal refusal{.reason = decision.reason,
                          .retry_after = FromSeconds(
                              ToSeconds(wait) * (1 + random_.NextUnit() / 2)),
                          .never_retry = decision.never_retry,
                          .head = frame.payload};
    // A peer that takes no answers has to do without.
    peer.session->Send([&](auto& out) { AppendRefusal(out, refusal); });
    meter_.Dropped(Amount(1, frame.frame_bytes));
    ++statistics_.refused;
  }

  void Execute(LoopPeer& peer, const Inbox::Frame& frame, Instant begun,
               Instant& now) {
    handler_(peer, frame.payload);
    now = host::MonotonicClock::Now();
    meter_.Executed(Amount(1, frame.frame_bytes), now - begun);
    ++statistics_.executed;
  }

  void Dropped(size_t messages, size_t bytes) {
    meter_.Dropped(Amount(messages, bytes));
    statistics_.dropped += messages;
  }

  int64_t Amount(size_t messages, size_t bytes) const {
    return static_cast<int64_t>(config_.work == Work::kBytes ? bytes
                                                             : messages);
  }

  const ServerConfig config_;
  const Handler handler_;
  CapacityMeter meter_;
  SliceDropper dropper_;
  SplitMix64 random_{std::random_device()()};
  ServerStatistics statistics_;
  uint64_t arrived_before_ = 0;  // Over links that are gone.
  uint16_t port_ = 0;
  uint64_t last_id_ = 0;
  Bell bell_;

  // In this order: sessions have sockets of the context, and peers links of
  // the dropper.
  boost::asio::io_context context_{1};
  tcp::acceptor acceptor_;
  boost::asio::steady_timer retry_{context_};
  std::mutex joining_mutex_;
  std::vector<std::shared_ptr<Session>> joining_;
  std::vector<std::unique_ptr<LoopPeer>> peers_;
  std::thread thread_;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::Make(const ServerConfig& config,
                                             Handler handler) {
  if (config.max_frame_bytes < kHeaderBytes + kStampBytes) {
    return Error{"`max_frame_bytes` is below 9, the size of a Hello"};
  }
  if (config.max_frame_bytes > size_t{1} << 30) {
    return Error{"`max_frame_bytes` is above 1 GiB"};
  }
  if (!std::has_single_bit(config.buffer_bytes) ||
      config.buffer_bytes / 2 < config.max_frame_bytes) {
    return Error{
        "`buffer_bytes` is not a power of 2 that is at least twice "
        "`max_frame_bytes`"};
  }
  if (config.socket_bytes < 0) return Error{"`socket_bytes` is below 0"};
  auto meter =
      CapacityMeter::Make(config.capacity, host::MonotonicClock::Now());
  if (!meter) return Error{"`capacity`: " + meter.error().message};
  auto dropper = SliceDropper::Make(config.dropper);
  if (!dropper) return Error{"`dropper`: " + dropper.error().message};
  auto impl = std::make_unique<Impl>(config, std::move(handler),
                                     std::move(*meter), std::move(*dropper));
  if (auto error = impl->Listen()) return *error;
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

uint16_t Server::port() const { return impl_->port(); }
void Server::Run(Duration time) { impl_->Run(time); }
void Server::OtherWork(Duration time) { impl_->OtherWork(time); }
ServerStatistics Server::statistics() const { return impl_->statistics(); }

}  // namespace weir::stream
