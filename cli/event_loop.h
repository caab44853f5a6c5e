// The few system calls that the sample service and the generator share.
//
// Both sit on plain epoll instead of a framework: the generator must choose
// itself what it does first (send what is due, then read), and per request
// there is to be nothing but one read and one write.

#ifndef WEIR_CLI_EVENT_LOOP_H_
#define WEIR_CLI_EVENT_LOOP_H_

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "loopback.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir::cli {

// A file descriptor, closed in the end.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

// Edge-triggered: every event is told once, so handlers read and write until
// the kernel has no more (EAGAIN).
class Poller {
 public:
  Poller();

  // `token` comes back with each event of `fd`.  False: out of memory.
  bool Add(int fd, uint32_t events, uint64_t token);

  // Waits until something happened or `until` (CLOCK_MONOTONIC) is reached;
  // exact to some 10 us, where the kernel keeps time that well.
  std::span<const epoll_event> Wait(Instant now, Instant until);

 private:
  Descriptor epoll_;
  std::vector<epoll_event> events_;
};

// Raises the limit of open files to what is allowed, and returns it.
uint64_t RaiseOpenFiles();

// A non-blocking listening socket on 127.0.0.1; port 0: a free one.  An error
// names the port and what to do.
struct Listener {
  Descriptor socket;
  uint16_t port = 0;
};
Result<Listener> Listen(uint16_t port);

// The address of `to`, the first that its name has.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};
Result<Address> Resolve(const HostPort& to);

// A non-blocking socket that is connecting to `to`; -1 with errno set.
int StartConnect(const Address& to);

}  // namespace weir::cli

#endif  // WEIR_CLI_EVENT_LOOP_H_
