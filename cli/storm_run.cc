#include "storm_run.h"

#include <fmt/compile.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <queue>
#include <vector>

#include "answer_parser.h"
#include "event_loop.h"
#include "weir/host/clock.h"
#include "weir/scenario/histogram.h"
#include "weir/text.h"

namespace weir::cli {
namespace {

using std::chrono::milliseconds;

// Sent in a row before answers are read again.  Chosen: some 0.3 ms of work.
constexpr int kSendsAtOnce = 32;
// Connections opened before the first request.  Chosen: what a quiet service
// needs; the pool grows by itself.
constexpr int kFirstConnections = 32;
// Between the opening of those and the first request.
constexpr Duration kLead = milliseconds(100);
constexpr Duration kProgressEvery = milliseconds(200);

class Storm {
 public:
  Storm(const scenario::Scenario& scenario, const StormOptions& options,
        const Address& address)
      : scenario_(scenario),
        options_(options),
        address_(address),
        calls_(scenario, options.seed) {
    for (const scenario::Class& cls : scenario.classes) {
      const auto name = Name(cls.criticality);
      criticality_.push_back(options.baggage
                                 ? fmt::format("baggage: criticality={}", name)
                                 : fmt::format("weir-criticality: {}", name));
    }
    tail_ = TailOf(options);
    answers_.resize(scenario.routes.size());
  }

  scenario::Report Run();

 private:
  struct Connection {
    Descriptor socket;
    uint64_t token = 0;
    bool connected = false;
    bool busy = false;
    bool used = false;    // It has brought an answer.
    bool resent = false;  // This request was on another connection before.
    uint32_t serial = 0;  // Of its requests.
    StormAttempt attempt;
    std::string out;  // Not yet taken by the kernel.
    AnswerParser parser;
  };
  struct Timeout {
    Duration at{};
    uint64_t token = 0;
    uint32_t serial = 0;
    bool operator>(const Timeout& other) const { return at > other.at; }
  };

  // What follows the lines that differ from request to request.
  static std::string TailOf(const StormOptions& options);
  void CountAnswer(const StormAttempt& attempt, std::string_view answer);
  std::vector<scenario::Answers> SortedAnswers() const;

  Duration Now() const { return host::MonotonicClock::Now() - start_; }
  Connection* Find(uint64_t token);
  Connection* Open();
  Connection* Idle();
  void Send(const StormAttempt& attempt, Duration now, bool resent);
  void Write(Connection& c);
  void Handle(Connection& c, uint32_t events);
  void Complete(Connection& c);
  void Lost(Connection& c);
  void Close(Connection& c, bool reset);
  void SendDue();
  void GiveUp(Duration now);
  void Invalidate(scenario::Report& report) const;

  const scenario::Scenario& scenario_;
  const StormOptions& options_;
  Address address_;
  StormCalls calls_;
  std::vector<std::string> criticality_;
  std::string tail_;
  // By route, and how an attempt ended.
  std::vector<std::map<std::string, uint64_t, std::less<>>> answers_;
  Poller poller_;
  Instant start_{};
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<uint32_t> free_;
  std::vector<uint64_t> idle_;  // Tokens; the last one used is the next one.
  std::priority_queue<Timeout, std::vector<Timeout>, std::greater<>> timeouts_;
  scenario::Histogram lag_;
  Duration max_lag_{};
  uint64_t no_socket_ = 0;  // Requests that could not even be sent.
  int no_socket_errno_ = 0;
};

Storm::Connection* Storm::Find(uint64_t token) {
  Connection* c = connections_[static_cast<uint32_t>(token)].get();
  return c->token == token && c->socket ? c : nullptr;
}

Storm::Connection* Storm::Open() {
  Descriptor socket(StartConnect(address_));
  if (!socket) {
    no_socket_errno_ = errno;
    return nullptr;
  }
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(connections_.size()));
    connections_.push_back(std::make_unique<Connection>());
    connections_.back()->token = free_.back();
  }
  Connection& c = *connections_[free_.back()];
  free_.pop_back();
  c.parser.set_bodiless(options_.method == "HEAD");
  c.socket = std::move(socket);
  poller_.Add(c.socket.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP, c.token);
  return &c;
}

Storm::Connection* Storm::Idle() {
  while (!idle_.empty()) {
    Connection* c = Find(idle_.back());
    idle_.pop_back();
    if (c != nullptr && !c->busy) return c;
  }
  return nullptr;
}

void Storm::Close(Connection& c, bool reset) {
  if (reset) {
    const linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(c.socket.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  c.socket = Descriptor();
  c.token += uint64_t{1} << 32;
  c.connected = c.busy = c.used = c.resent = false;
  c.out.clear();
  c.parser.Reset();
  free_.push_back(static_cast<uint32_t>(c.token));
}

void Storm::Send(const StormAttempt& attempt, Duration now, bool resent) {
  Connection* c = resent ? nullptr : Idle();
  if (c == nullptr) c = Open();
  if (c == nullptr) {
    ++no_socket_;
    CountAnswer(attempt, "unsent");
    return calls_.End(attempt, now, StormOutcome::kFailed);
  }
  const scenario::Arrival& arrival = attempt.arrival;
  const Duration budget =
      scenario_.classes[arrival.cls].deadline - (now - attempt.intended);
  c->busy = true;
  c->resent = resent;
  c->attempt = attempt;
  ++c->serial;
  c->out.clear();
  fmt::format_to(std::back_inserter(c->out),
                 FMT_COMPILE("{} {} HTTP/1.1\r\n{}\r\nweir-client: c{}\r\n"
                             "x-envoy-expected-rq-timeout-ms: {}\r\n"
                             "weir-request: {}\r\nweir-at: {}\r\n{}"),
                 options_.method, scenario_.routes[arrival.route].name,
                 criticality_[arrival.cls], arrival.client,
                 std::max<int64_t>(budget / milliseconds(1), 1), attempt.number,
                 now / milliseconds(1), tail_);
  timeouts_.push({.at = attempt.intended + scenario_.timeout,
                  .token = c->token,
                  .serial = c->serial});
  if (c->connected) Write(*c);
}

void Storm::Write(Connection& c) {
  while (!c.out.empty()) {
    const ssize_t size =
        send(c.socket.get(), c.out.data(), c.out.size(), MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (size < 0) return Lost(c);
    if (static_cast<size_t>(size) == c.out.size()) return c.out.clear();
    c.out.erase(0, static_cast<size_t>(size));
  }
}

// The connection is gone without an answer.
void Storm::Lost(Connection& c) {
  const bool busy = c.busy;
  // Closed by the service while it was idle, which the request crossed.
  const bool crossed = c.used && !c.parser.started() && !c.resent;
  const StormAttempt attempt = c.attempt;
  Close(c, false);
  if (!busy) return;
  const Duration now = Now();
  if (crossed) return Send(attempt, now, true);
  CountAnswer(attempt, "no answer");
  calls_.End(attempt, now, StormOutcome::kFailed);
}

void Storm::Handle(Connection& c, uint32_t events) {
  if ((events & EPOLLOUT) != 0 && !c.connected &&
      (events & (EPOLLERR | EPOLLHUP)) == 0) {
    c.connected = true;
    if (!c.busy) idle_.push_back(c.token);
  }
  const uint64_t token = c.token;
  if ((events & EPOLLOUT) != 0 && c.connected && !c.out.empty()) {
    Write(c);
    if (c.token != token) return;
  }
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)) == 0) return;

  char buffer[16 * 1024];
  const bool ends = (events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP)) != 0;
  for (;;) {
    const ssize_t size = recv(c.socket.get(), buffer, sizeof buffer, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (size < 0 || !c.busy) return Lost(c);
    const std::string_view bytes(buffer, static_cast<size_t>(size));
    if (!c.parser.Feed(bytes)) return Lost(c);
    if (c.parser.complete()) {
      Complete(c);
      if (c.token != token) return;
    } else if (size == 0) {
      return Lost(c);
    }
    // A short read has emptied the socket: what comes later is told.
    if (static_cast<size_t>(size) < sizeof buffer && !ends) return;
  }
}

void Storm::Complete(Connection& c) {
  const Answer answer = c.parser.answer();
  const StormAttempt attempt = c.attempt;
  c.busy = false;
  c.used = true;
  if (answer.keep) {
    c.parser.Reset();
    idle_.push_back(c.token);
  } else {
    Close(c, false);
  }
  if (answer.reason.empty()) {
    CountAnswer(attempt, fmt::format_int(answer.status).c_str());
  } else {
    CountAnswer(attempt, fmt::format("{} {}", answer.status, answer.reason));
  }
  calls_.End(attempt, Now(), answer.outcome(), answer.service,
             answer.retry_after);
}

void Storm::GiveUp(Duration now) {
  while (!timeouts_.empty() && timeouts_.top().at <= now) {
    const Timeout timeout = timeouts_.top();
    timeouts_.pop();
    Connection* c = Find(timeout.token);
    if (c == nullptr || !c->busy || c->serial != timeout.serial) continue;
    const StormAttempt attempt = c->attempt;
    Close(*c, true);
    CountAnswer(attempt, "given up");
    calls_.End(attempt, now, StormOutcome::kGivenUp);
  }
}

void Storm::SendDue() {
  for (int i = 0; i < kSendsAtOnce; ++i) {
    const Duration now = Now();
    const auto attempt = calls_.Take(now);
    if (!attempt) return;
    const Duration lag = now - attempt->intended;
    lag_.Add(lag);
    max_lag_ = std::max(max_lag_, lag);
    Send(*attempt, now, false);
  }
}

scenario::Report Storm::Run() {
  for (int i = 0; i < kFirstConnections; ++i) Open();
  start_ = host::MonotonicClock::Now() + kLead;
  Duration next_progress{};
  std::optional<Duration> stopped;
  while (!calls_.done()) {
    SendDue();
    Duration until = next_progress;
    if (const auto send = calls_.next()) until = std::min(until, *send);
    if (!timeouts_.empty()) until = std::min(until, timeouts_.top().at);
    const auto events =
        poller_.Wait(host::MonotonicClock::Now(), start_ + until);
    for (const epoll_event& event : events) {
      if (Connection* c = Find(event.data.u64)) Handle(*c, event.events);
    }
    // After the answers: one that is here has come in time.
    const Duration now = Now();
    GiveUp(now);
    if (now >= next_progress) {
      if (options_.progress) options_.progress(now, calls_.counts());
      if (options_.stop && options_.stop()) {
        stopped = std::max<Duration>(now, milliseconds(10));
        break;
      }
      next_progress = now + kProgressEvery;
    }
  }
  scenario::Report report =
      stopped ? calls_.MakeReportUntil(*stopped) : calls_.MakeReport();
  report.stopped = stopped;
  report.answers = SortedAnswers();
  report.send_lag =
      scenario::SendLag{.p99 = lag_.Quantile(.99), .max = max_lag_};
  Invalidate(report);
  return report;
}

std::string Storm::TailOf(const StormOptions& options) {
  std::string tail;
  bool host = false;
  for (const std::string& header : options.headers) {
    host = host || text::EqualsIgnoringCase(
                       std::string_view(header).substr(0, 5), "host:");
    tail += header + "\r\n";
  }
  if (!host) tail += "Host: " + options.target.text() + "\r\n";
  if (!options.body.empty()) {
    tail += fmt::format("Content-Length: {}\r\n", options.body.size());
  }
  return tail + "\r\n" + options.body;
}

void Storm::CountAnswer(const StormAttempt& attempt, std::string_view answer) {
  auto& answers = answers_[attempt.arrival.route];
  const auto found = answers.find(answer);
  if (found != answers.end()) {
    ++found->second;
  } else {
    answers.emplace(answer, 1);
  }
}

std::vector<scenario::Answers> Storm::SortedAnswers() const {
  std::vector<scenario::Answers> sorted;
  for (size_t route = 0; route < answers_.size(); ++route) {
    for (const auto& [answer, count] : answers_[route]) {
      sorted.push_back({.route = scenario_.routes[route].name,
                        .answer = answer,
                        .count = count});
    }
  }
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const auto& a, const auto& b) { return a.count > b.count; });
  return sorted;
}

void Storm::Invalidate(scenario::Report& report) const {
  if (report.send_lag->p99 > kMostSendLag) {
    report.invalid = fmt::format(
        "the generator fell behind: one request in a hundred was sent {:.1f} "
        "ms late or more, above {} ms",
        ToSeconds(report.send_lag->p99) * 1e3, kMostSendLag / milliseconds(1));
  }
  if (no_socket_ > 0) {
    if (!report.invalid.empty()) report.invalid += "; ";
    report.invalid += fmt::format("{} requests found no socket: {}", no_socket_,
                                  std::strerror(no_socket_errno_));
  }
}

// Whether one request is answered, with no refusal, within `deadline`.
bool AnswersInTime(const Address& address, const std::string& request,
                   Duration deadline) {
  const Instant end = host::MonotonicClock::Now() + deadline;
  const auto wait = [&](int fd, short events) {
    const Duration left = end - host::MonotonicClock::Now();
    pollfd poll_for = {.fd = fd, .events = events, .revents = 0};
    return left > Duration{} &&
           poll(&poll_for, 1, static_cast<int>(left / milliseconds(1)) + 1) ==
               1;
  };
  const Descriptor socket(StartConnect(address));
  if (!socket || !wait(socket.get(), POLLOUT) ||
      send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
          static_cast<ssize_t>(request.size())) {
    return false;
  }
  AnswerParser parser;
  while (!parser.complete()) {
    char buffer[4096];
    if (!wait(socket.get(), POLLIN)) return false;
    const ssize_t size = recv(socket.get(), buffer, sizeof buffer, 0);
    if (size < 0) return false;
    if (!parser.Feed({buffer, static_cast<size_t>(size)})) return false;
    if (size == 0) break;
  }
  return parser.complete() && parser.answer().outcome() != StormOutcome::kShed;
}

}  // namespace

Result<scenario::Report> RunStorm(const scenario::Scenario& scenario,
                                  const StormOptions& options) {
  RaiseOpenFiles();
  if (const auto error = TryConnect(options.target, std::chrono::seconds(2))) {
    return *error;
  }
  const auto address = Resolve(options.target);
  if (!address) return address.error();
  return Storm(scenario, options, *address).Run();
}

std::optional<Error> CannotOffer(const scenario::Scenario& scenario) {
  if (scenario.clients.closed.empty()) return std::nullopt;
  return Error{fmt::format(
      "{} has `clients.closed`, which only weir sim plays: a generator that "
      "waits for answers hides how late they are; take them out, or play it "
      "with weir sim",
      scenario.name)};
}

bool WaitUntilIdle(const HostPort& target, const std::string& path,
                   Duration deadline, Duration patience) {
  const auto address = Resolve(target);
  if (!address) return true;  // RunStorm() will say so.
  const std::string request = fmt::format(
      "GET {} HTTP/1.1\r\nHost: {}\r\nweir-criticality: vital\r\n"
      "Connection: close\r\n\r\n",
      path, target.text());
  const Instant end = host::MonotonicClock::Now() + patience;
  while (!AnswersInTime(*address, request, deadline)) {
    if (host::MonotonicClock::Now() >= end) return false;
    poll(nullptr, 0, 1000);
  }
  return true;
}

}  // namespace weir::cli
