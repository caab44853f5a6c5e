// Outbox: what waits to be sent over a socket, bounded, filled by any thread.

#ifndef WEIR_STREAM_OUTBOX_H_
#define WEIR_STREAM_OUTBOX_H_

#include <boost/asio.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace weir::stream {

// SO_RCVBUF and SO_SNDBUF; of an acceptor, for what it accepts.
template <typename Socket>
void SetBuffers(Socket& socket, int bytes, boost::system::error_code& error) {
  if (!error) {
    socket.set_option(boost::asio::socket_base::receive_buffer_size(bytes),
                      error);
  }
  if (!error) {
    socket.set_option(boost::asio::socket_base::send_buffer_size(bytes), error);
  }
}

class Outbox {
 public:
  Outbox(boost::asio::ip::tcp::socket& socket, size_t most_bytes)
      : socket_(socket), most_bytes_(most_bytes) {}

  // `append` adds a frame to a vector; it runs under the lock, so stamps that
  // it takes are in the order of the stream.  `owner` lives until the last
  // write is over.  False when more than `most_bytes` are unsent already,
  // unless `always`, or the link is lost.
  template <typename Append>
  bool Push(const std::shared_ptr<void>& owner, bool always, Append append) {
    const std::lock_guard lock(mutex_);
    if (lost_ || (!always && pending_.size() + sending_.size() > most_bytes_)) {
      return false;
    }
    append(pending_);
    if (!busy_) {
      busy_ = true;
      boost::asio::post(socket_.get_executor(),
                        [this, owner] { Write(owner); });
    }
    return true;
  }

  void Lose() {
    const std::lock_guard lock(mutex_);
    lost_ = true;
  }

  size_t unsent_bytes() const {
    const std::lock_guard lock(mutex_);
    return pending_.size() + sending_.size();
  }

 private:
  // In the thread of the socket.
  void Write(const std::shared_ptr<void>& owner) {
    {
      const std::lock_guard lock(mutex_);
      sending_.clear();
      std::swap(sending_, pending_);
      busy_ = !sending_.empty() && !lost_;
      if (!busy_) return;
    }
    boost::asio::async_write(
        socket_, boost::asio::buffer(sending_),
        [this, owner](const boost::system::error_code& error, size_t) {
          if (error) Lose();
          Write(owner);
        });
  }

  boost::asio::ip::tcp::socket& socket_;
  const size_t most_bytes_;
  mutable std::mutex mutex_;
  std::vector<std::byte> pending_;
  std::vector<std::byte> sending_;  // Only Write() touches what is in it.
  bool busy_ = false;
  bool lost_ = false;
};

}  // namespace weir::stream

#endif  // WEIR_STREAM_OUTBOX_H_
