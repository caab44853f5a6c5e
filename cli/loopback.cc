#include "loopback.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace weir::cli {
namespace {

class Socket {
 public:
  explicit Socket(int family)
      : fd_(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

// Binds `socket` to 127.0.0.1:port; errno, or 0.
int Bind(const Socket& socket, uint16_t port) {
  // As nginx will: connections of a former run that linger are no hindrance.
  const int on = 1;
  setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(socket.fd(), reinterpret_cast<sockaddr*>(&address),
           sizeof address) != 0 ||
      listen(socket.fd(), 1) != 0) {
    return errno;
  }
  return 0;
}

// errno of connecting to one address, or 0.
int Connect(const addrinfo& to, std::chrono::milliseconds timeout) {
  const Socket socket(to.ai_family);
  if (connect(socket.fd(), to.ai_addr, to.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd poll_for = {.fd = socket.fd(), .events = POLLOUT, .revents = 0};
  if (poll(&poll_for, 1, static_cast<int>(timeout.count())) != 1) {
    return ETIMEDOUT;
  }
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

Result<uint16_t> FreePort() {
  const Socket socket(AF_INET);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (const int error = Bind(socket, 0); error != 0) {
    return Error{std::string("cannot listen on the loopback: ") +
                 std::strerror(error)};
  }
  getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

std::optional<Error> CheckPort(uint16_t port) {
  const int error = Bind(Socket(AF_INET), port);
  if (error == 0) return std::nullopt;
  const std::string name = "port " + std::to_string(port);
  if (error == EADDRINUSE) {
    return Error{name +
                 " is in use; name another one, or none to get a free one"};
  }
  return Error{"cannot listen on " + name + ": " + std::strerror(error)};
}

std::string HostPort::text() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<HostPort> ParseHostPort(std::string_view text) {
  const Error wrong{"`" + std::string(text) +
                    "` is not of the form host:port, as in 127.0.0.1:8000"};
  std::string_view rest = text;
  if (rest.starts_with("http://")) rest.remove_prefix(7);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return wrong;
  std::string_view host = rest.substr(0, colon);
  const bool brackets = host.starts_with('[') && host.ends_with(']');
  if (brackets) host = host.substr(1, host.size() - 2);
  const bool colons = host.find(':') != std::string_view::npos;
  if (host.empty() || colons != brackets ||
      host.find_first_of("/ \t;{}\"'\\$") != std::string_view::npos) {
    return wrong;
  }
  const std::string_view digits = rest.substr(colon + 1);
  uint16_t port = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() ||
      port == 0) {
    return wrong;
  }
  return HostPort{.host = std::string(host), .port = port};
}

std::optional<Error> TryConnect(const HostPort& to,
                                std::chrono::milliseconds timeout) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int unknown = getaddrinfo(
      to.host.c_str(), std::to_string(to.port).c_str(), &hints, &found);
  if (unknown != 0) return Error{to.host + ": " + gai_strerror(unknown)};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found,
                                                                 freeaddrinfo);
  int error = 0;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    error = Connect(*a, timeout);
    if (error == 0) return std::nullopt;
  }
  return Error{"nothing answers at " + to.text() + ": " + std::strerror(error)};
}

}  // namespace weir::cli
