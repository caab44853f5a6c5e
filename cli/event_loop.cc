#include "event_loop.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace weir::cli {
namespace {

// Chosen: enough to take a burst in one call, 12 KiB.
constexpr size_t kEventsAtOnce = 1024;
// Pending connections; the kernel cuts it to net.core.somaxconn.
constexpr int kBacklog = 65'535;

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Poller::Poller()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), events_(kEventsAtOnce) {
  // The default lets timers of a thread be 50 us late, to save power.
  prctl(PR_SET_TIMERSLACK, 1UL);
}

bool Poller::Add(int fd, uint32_t events, uint64_t token) {
  epoll_event event{};
  event.events = events | EPOLLET;
  event.data.u64 = token;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

std::span<const epoll_event> Poller::Wait(Instant now, Instant until) {
  // Chosen: nothing depends on it, but a sleep has to have an end.
  constexpr Duration kLongest = std::chrono::seconds(1);
  const Duration wait =
      until > now ? std::min(until - now, kLongest) : Duration{};
  const timespec timeout = {
      .tv_sec = static_cast<time_t>(wait.count() / 1'000'000'000),
      .tv_nsec = static_cast<long>(wait.count() % 1'000'000'000)};
  int count = epoll_pwait2(epoll_.get(), events_.data(),
                           static_cast<int>(events_.size()), &timeout, nullptr);
  if (count < 0 && errno == ENOSYS) {  // Before Linux 5.11: milliseconds.
    const auto ms = static_cast<int>((wait.count() + 999'999) / 1'000'000);
    count = epoll_wait(epoll_.get(), events_.data(),
                       static_cast<int>(events_.size()), ms);
  }
  return {events_.data(), static_cast<size_t>(std::max(count, 0))};
}

uint64_t RaiseOpenFiles() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

Result<Listener> Listen(uint16_t port) {
  Descriptor socket(
      ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(socket.get(), kBacklog) != 0) {
    const std::string why = std::strerror(errno);
    if (const auto error = CheckPort(port)) return *error;
    return Error{"cannot listen on port " + std::to_string(port) + ": " + why};
  }
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return Listener{.socket = std::move(socket), .port = ntohs(address.sin_port)};
}

Result<Address> Resolve(const HostPort& to) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int unknown = getaddrinfo(
      to.host.c_str(), std::to_string(to.port).c_str(), &hints, &found);
  if (unknown != 0) return Error{to.host + ": " + gai_strerror(unknown)};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found,
                                                                 freeaddrinfo);
  Address address{.size = found->ai_addrlen};
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  return address;
}

int StartConnect(const Address& to) {
  const int fd = socket(to.storage.ss_family,
                        SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to.storage), to.size) ==
          0 ||
      errno == EINPROGRESS) {
    return fd;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

}  // namespace weir::cli
