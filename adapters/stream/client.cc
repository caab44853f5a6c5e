#include "weir/stream/client.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <boost/asio.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "inbox.h"
#include "outbox.h"
#include "weir/host/clock.h"
#include "weir/stale/hello_timeline.h"

namespace weir::stream {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

// For answers, at least.  Chosen: what a read of a busy link brings.
constexpr size_t kInboxBytes = size_t{1} << 18;

}  // namespace

class Client::Impl {
 public:
  Impl(const ClientConfig& config, Handler handler)
      : config_(config),
        handler_(std::move(handler)),
        inbox_(std::bit_ceil(std::max(kInboxBytes, 2 * config.max_frame_bytes)),
               config.max_frame_bytes, Kind::kRefusal),
        outbox_(socket_, config.queue_bytes) {}

  ~Impl() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

  std::optional<Error> Connect() {
    error_code error;
    const auto address = boost::asio::ip::make_address(config_.address, error);
    if (error) {
      return Error{"`address` is no IP address: " + config_.address};
    }
    const tcp::endpoint endpoint(address, config_.port);
    socket_.open(endpoint.protocol(), error);
    if (config_.socket_bytes > 0) {
      SetBuffers(socket_, config_.socket_bytes, error);
    }
    if (!error) socket_.connect(endpoint, error);
    if (error) {
      return Error{"cannot connect to " + config_.address + ":" +
                   std::to_string(config_.port) + ": " + error.message()};
    }
    socket_.set_option(tcp::no_delay(true), error);
    next_hello_ = std::chrono::steady_clock::now();
    SayHello();
    Read();
    thread_ = std::thread([this] { context_.run(); });
    return std::nullopt;
  }

  bool Send(std::span<const std::byte> payload) {
    return outbox_.Push(nullptr, false, [&](auto& out) {
      if (config_.stamp_messages) {
        AppendStamped(out, Stamp(), payload);
      } else {
        AppendMessage(out, payload);
      }
    });
  }

  bool connected() const { return !lost_.load(); }
  size_t unsent_bytes() const { return outbox_.unsent_bytes(); }

 private:
  uint32_t Stamp() const {
    return StampOf(
        config_.clock ? config_.clock() : host::MonotonicClock::Now(),
        config_.tick);
  }

  void SayHello() {
    outbox_.Push(nullptr, true,
                 [this](auto& out) { AppendHello(out, Stamp()); });
    // On a grid, so that intervals do not add up their lateness.
    next_hello_ += config_.hello_interval;
    timer_.expires_at(next_hello_);
    timer_.async_wait([this](const error_code& error) {
      if (!error && connected()) SayHello();
    });
  }

  void Read() {
    const std::span<std::byte> room = inbox_.Room();
    socket_.async_read_some(
        boost::asio::buffer(room.data(), room.size()),
        [this](const error_code& error, size_t count) {
          if (error || !inbox_.Wrote(count)) {
            Lose();
            return;
          }
          Inbox::Frame frame;
          while (inbox_.Next(frame)) Take(frame);
          (void)inbox_.Release();  // Never paused: always emptied here.
          Read();
        });
  }

  void Take(const Inbox::Frame& frame) {
    if (frame.kind == Kind::kRefusal) {
      const auto refusal = ReadRefusal(frame.payload);
      if (refusal && config_.refused) config_.refused(*refusal);
    } else if (frame.kind != Kind::kHello && handler_) {
      handler_(frame.payload);
    }
  }

  void Lose() {
    lost_.store(true);
    outbox_.Lose();
    timer_.cancel();
    error_code ignored;
    socket_.close(ignored);
  }

  const ClientConfig config_;
  const Handler handler_;
  std::atomic<bool> lost_{false};
  Inbox inbox_;
  boost::asio::io_context context_{1};
  tcp::socket socket_{context_};
  Outbox outbox_;
  boost::asio::steady_timer timer_{context_};
  std::chrono::steady_clock::time_point next_hello_;
  std::thread thread_;
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::Connect(const ClientConfig& config,
                                                Handler handler) {
  if (config.hello_interval < std::chrono::milliseconds(1)) {
    return Error{"`hello_interval` is below 1 ms"};
  }
  if (config.tick <= Duration{}) return Error{"`tick` is not above 0"};
  if (config.socket_bytes < 0) return Error{"`socket_bytes` is below 0"};
  if (config.max_frame_bytes < kMostRefusalFrameBytes) {
    return Error{"`max_frame_bytes` is below 27, the size of a refusal"};
  }
  if (config.max_frame_bytes > size_t{1} << 30) {
    return Error{"`max_frame_bytes` is above 1 GiB"};
  }
  auto impl = std::make_unique<Impl>(config, std::move(handler));
  if (auto error = impl->Connect()) return *error;
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

bool Client::Send(std::span<const std::byte> payload) {
  return impl_->Send(payload);
}
bool Client::connected() const { return impl_->connected(); }
size_t Client::unsent_bytes() const { return impl_->unsent_bytes(); }

}  // namespace weir::stream
