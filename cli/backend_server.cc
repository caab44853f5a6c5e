#include "backend_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <http_parser.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "weir/host/clock.h"
#include "weir/text.h"

namespace weir::cli {
namespace {

constexpr uint64_t kStopToken = ~uint64_t{0};
constexpr uint64_t kListenToken = kStopToken - 1;
constexpr uint64_t kAdminToken = kStopToken - 2;
// Chosen: more than any proxy sends by default.
constexpr size_t kMaxHeaderBytes = 64 * 1024;
// A request that says it belongs to a run that began this much earlier or later
// than the one known belongs to another run.  Chosen: longer than requests wait
// before they get here, shorter than people take to start the next run.
constexpr Duration kOtherRun = std::chrono::seconds(5);

template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// The value of `name` in the query of `url`.
std::optional<double> QueryNumber(std::string_view url, std::string_view name) {
  size_t at = url.find('?');
  while (at != std::string_view::npos) {
    const std::string_view rest = url.substr(at + 1);
    if (rest.starts_with(name) && rest.substr(name.size()).starts_with('=')) {
      const std::string_view value = rest.substr(name.size() + 1);
      return ParseNumber<double>(value.substr(0, value.find('&')));
    }
    at = url.find('&', at + 1);
  }
  return std::nullopt;
}

}  // namespace

struct BackendServer::Connection {
  Descriptor socket;
  uint64_t token = 0;
  bool admin = false;
  bool busy = false;      // A request is being worked on.
  bool readable = false;  // There may be more to read.
  bool closing = false;   // Close once the answer is out.
  bool gone = false;
  std::string rest;  // Read while busy, to be parsed later.
  std::string out;   // Not yet taken by the kernel.

  // The request that is being parsed.
  http_parser parser{};
  std::string url;
  std::string field;
  std::string value;
  bool in_value = false;  // The field is complete.
  size_t header_bytes = 0;
  bool complete = false;
  std::optional<uint64_t> number;
  std::optional<int64_t> at_ms;

  void Reset() {
    url.clear();
    field.clear();
    value.clear();
    in_value = false;
    header_bytes = 0;
    complete = false;
    number.reset();
    at_ms.reset();
  }

  void EndHeader() {
    if (text::EqualsIgnoringCase(field, "weir-request")) {
      number = ParseNumber<uint64_t>(value);
    } else if (text::EqualsIgnoringCase(field, "weir-at")) {
      at_ms = ParseNumber<int64_t>(value);
    }
    field.clear();
    value.clear();
    in_value = false;
  }

  static Connection& Of(http_parser* parser) {
    return *static_cast<Connection*>(parser->data);
  }
  // True: there is too much of it.
  bool Count(size_t bytes) {
    header_bytes += bytes;
    return header_bytes > kMaxHeaderBytes;
  }
};

namespace {

// Callbacks of the parser; another value than 0 stops it with an error.
template <typename Connection>
http_parser_settings MakeSettings() {
  http_parser_settings settings;
  http_parser_settings_init(&settings);
  settings.on_message_begin = [](http_parser* p) {
    Connection::Of(p).Reset();
    return 0;
  };
  settings.on_url = [](http_parser* p, const char* at, size_t size) {
    Connection& c = Connection::Of(p);
    c.url.append(at, size);
    return c.Count(size) ? 1 : 0;
  };
  settings.on_header_field = [](http_parser* p, const char* at, size_t size) {
    Connection& c = Connection::Of(p);
    if (c.in_value) c.EndHeader();
    c.field.append(at, size);
    return c.Count(size) ? 1 : 0;
  };
  settings.on_header_value = [](http_parser* p, const char* at, size_t size) {
    Connection& c = Connection::Of(p);
    c.in_value = true;
    c.value.append(at, size);
    return c.Count(size) ? 1 : 0;
  };
  settings.on_headers_complete = [](http_parser* p) {
    Connection::Of(p).EndHeader();
    return 0;
  };
  settings.on_message_complete = [](http_parser* p) {
    Connection::Of(p).complete = true;
    http_parser_pause(p, 1);
    return 0;
  };
  return settings;
}

}  // namespace

Result<std::unique_ptr<BackendServer>> BackendServer::Make(
    const scenario::Scenario& scenario, const Options& options) {
  RaiseOpenFiles();
  auto listener = Listen(options.port);
  if (!listener) return listener.error();
  auto admin = Listen(options.admin_port);
  if (!admin) return admin.error();
  return std::unique_ptr<BackendServer>(new BackendServer(
      scenario, options, *std::move(listener), *std::move(admin)));
}

BackendServer::BackendServer(const scenario::Scenario& scenario,
                             const Options& options, Listener listener,
                             Listener admin)
    : scenario_(scenario),
      listener_(std::move(listener)),
      admin_(std::move(admin)),
      port_(listener_.port),
      admin_port_(admin_.port),
      service_(scenario, options.seed, host::MonotonicClock::Now()),
      run_start_(host::MonotonicClock::Now()),
      spare_(open("/dev/null", O_RDONLY | O_CLOEXEC)) {
  poller_.Add(listener_.socket.get(), EPOLLIN, kListenToken);
  poller_.Add(admin_.socket.get(), EPOLLIN, kAdminToken);
}

BackendServer::~BackendServer() = default;

void BackendServer::Run(int stop) {
  poller_.Add(stop, EPOLLIN, kStopToken);
  for (;;) {
    Deliver(host::MonotonicClock::Now());
    const auto events =
        poller_.Wait(host::MonotonicClock::Now(), service_.next());
    for (const epoll_event& event : events) {
      switch (event.data.u64) {
        case kStopToken:
          return;
        case kListenToken:
          Accept(listener_, false);
          break;
        case kAdminToken:
          Accept(admin_, true);
          break;
        default:
          if (Connection* c = Find(event.data.u64)) Handle(*c, event.events);
      }
    }
  }
}

// Answers all that is done by `now`.
void BackendServer::Deliver(Instant now) {
  done_.clear();
  service_.Advance(now, done_);
  for (const BackendService::Done& done : done_) {
    Connection* c = Find(done.token);
    if (c == nullptr) {
      ++gone_;
      continue;
    }
    ++answered_;
    const auto us = (done.service.count() + 500) / 1000;
    Answer(*c, "200 OK", fmt::format("weir-service-us: {}\r\n", us), "ok\n");
    // What came in the meantime is not told again.
    if (Find(done.token) != nullptr) Read(*c);
  }
}

// A token is an index and, above it, how often the index was used: work for a
// caller that has gone finds nobody.
BackendServer::Connection* BackendServer::Find(uint64_t token) {
  const auto index = static_cast<uint32_t>(token);
  if (index >= connections_.size()) return nullptr;
  Connection* c = connections_[index].get();
  return c->token == token && c->socket ? c : nullptr;
}

void BackendServer::Accept(const Listener& listener, bool admin) {
  for (;;) {
    const int fd = accept4(listener.socket.get(), nullptr, nullptr,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno != EMFILE && errno != ENFILE) return;
      // Edge-triggered, so what is left pending would never be told again:
      // take it and hang up.
      spare_ = Descriptor();
      const int refused = accept(listener.socket.get(), nullptr, nullptr);
      if (refused >= 0) close(refused);
      spare_ = Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (refused < 0) return;
      continue;
    }
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(connections_.size()));
      connections_.push_back(std::make_unique<Connection>());
      connections_.back()->token = free_.back();
    }
    Connection& c = *connections_[free_.back()];
    free_.pop_back();
    c.socket = Descriptor(fd);
    c.admin = admin;
    http_parser_init(&c.parser, HTTP_REQUEST);
    c.parser.data = &c;
    poller_.Add(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP, c.token);
  }
}

void BackendServer::Close(Connection& c) {
  const auto index = static_cast<uint32_t>(c.token);
  const uint64_t token = c.token + (uint64_t{1} << 32);
  c = Connection();
  c.token = token;
  free_.push_back(index);
}

void BackendServer::Handle(Connection& c, uint32_t events) {
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) return Close(c);
  if ((events & EPOLLOUT) != 0 && !c.out.empty()) {
    Flush(c);
    if (!c.socket) return;
  }
  if ((events & (EPOLLIN | EPOLLRDHUP)) != 0) {
    c.readable = true;
    c.gone = c.gone || (events & EPOLLRDHUP) != 0;
    // Nobody waits for the answer any more; the work itself goes on.
    if (c.busy && c.gone) return Close(c);
  }
  Read(c);
}

void BackendServer::Read(Connection& c) {
  char buffer[16 * 1024];
  const uint64_t token = c.token;
  while (!c.busy && c.socket && c.token == token) {
    if (!c.rest.empty()) {
      const std::string rest = std::exchange(c.rest, std::string());
      if (!Parse(c, rest)) return;
      continue;
    }
    if (!c.readable) return;
    const ssize_t size = recv(c.socket.get(), buffer, sizeof buffer, 0);
    if (size > 0) {
      // A short read has emptied the socket: what comes later is told.
      if (static_cast<size_t>(size) < sizeof buffer && !c.gone) {
        c.readable = false;
      }
      if (!Parse(c, {buffer, static_cast<size_t>(size)})) return;
    } else if (size < 0 && errno == EINTR) {
      continue;
    } else if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      c.readable = false;
    } else {
      return Close(c);
    }
  }
}

// False: the connection is closed.
bool BackendServer::Parse(Connection& c, std::string_view bytes) {
  static const http_parser_settings kSettings = MakeSettings<Connection>();
  const size_t used =
      http_parser_execute(&c.parser, &kSettings, bytes.data(), bytes.size());
  if (c.complete) {
    http_parser_pause(&c.parser, 0);
    c.complete = false;
    c.closing = http_should_keep_alive(&c.parser) == 0;
    c.rest.assign(bytes.substr(used));
    const uint64_t token = c.token;
    TakeRequest(c);
    return c.token == token;
  }
  if (HTTP_PARSER_ERRNO(&c.parser) != HPE_OK || c.parser.upgrade != 0) {
    c.closing = true;
    const uint64_t token = c.token;
    Answer(c, "400 Bad Request", "", "this is not HTTP/1.1\n");
    if (c.token == token) Close(c);
    return false;
  }
  return true;
}

void BackendServer::TakeRequest(Connection& c) {
  const Instant now = host::MonotonicClock::Now();
  const std::string_view path =
      std::string_view(c.url).substr(0, c.url.find('?'));
  c.busy = true;
  if (path == "/healthz") return Answer(c, "200 OK", "", "ok\n");
  if (c.admin) {
    const std::string body = Admin(c.url);
    return Answer(c, body.empty() ? "404 Not Found" : "200 OK",
                  "Content-Type: application/json\r\n", body);
  }
  if (c.at_ms) FollowRun(now, *c.at_ms);
  uint16_t route = 0;
  for (size_t i = 0; i < scenario_.routes.size(); ++i) {
    if (scenario_.routes[i].name == path) route = static_cast<uint16_t>(i);
  }
  ++arrived_;
  service_.Arrive(now, c.number.value_or(arrived_), route, c.token);
}

void BackendServer::FollowRun(Instant now, int64_t at_ms) {
  if (at_ms < 0 || at_ms > int64_t{24} * 3'600'000) return;
  const Instant start = now - std::chrono::milliseconds(at_ms);
  if (start - run_start_ < kOtherRun && run_start_ - start < kOtherRun) return;
  run_start_ = start;
  service_.Begin(now, start);
}

std::string BackendServer::Admin(std::string_view url) {
  const Instant now = host::MonotonicClock::Now();
  const std::string_view path = url.substr(0, url.find('?'));
  if (path == "/set") {
    const auto workers = QueryNumber(url, "workers");
    const auto speed = QueryNumber(url, "speed");
    // Written so that NaN fails too.
    if (workers && !(*workers >= 0 && *workers <= 1e6)) return {};
    if (speed && !(*speed > 0 && *speed <= 100)) return {};
    if (!workers && !speed) return {};
    if (workers) service_.SetWorkers(now, static_cast<int32_t>(*workers));
    if (speed) service_.SetSpeed(now, *speed);
  } else if (path == "/clear" || path == "/reset") {
    for (const uint64_t token : service_.Clear()) {
      if (Connection* c = Find(token)) Close(*c);
    }
    if (path == "/reset") {
      run_start_ = now;
      service_.Begin(now, now);
    }
  } else if (path != "/stats" && path != "/") {
    return {};
  }
  return fmt::format(
      "{{\"workers\": {}, \"speed\": {}, \"running\": {}, \"waiting\": {}, "
      "\"arrived\": {}, \"answered\": {}, \"gone\": {}}}\n",
      service_.workers(), service_.speed(now), service_.running(),
      service_.waiting(), arrived_, answered_, gone_);
}

void BackendServer::Answer(Connection& c, std::string_view status,
                           std::string_view extra, std::string_view body) {
  fmt::format_to(
      std::back_inserter(c.out),
      "HTTP/1.1 {}\r\n{}Content-Length: {}\r\n{}\r\n{}", status, extra,
      body.size(),
      c.closing ? "Connection: close\r\n" : "Connection: keep-alive\r\n", body);
  Flush(c);
}

void BackendServer::Flush(Connection& c) {
  while (!c.out.empty()) {
    const ssize_t size =
        send(c.socket.get(), c.out.data(), c.out.size(), MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (size < 0) return Close(c);
    c.out.erase(0, static_cast<size_t>(size));
  }
  if (c.closing) return Close(c);
  c.busy = false;
}

}  // namespace weir::cli
