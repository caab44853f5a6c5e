#include "weir/http/client.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <stop_token>
#include <string>

#include "transfer.h"
#include "weir/client/wire.h"
#include "weir/host/clock.h"
#include "weir/splitmix64.h"

namespace weir::http {
namespace {

using host::MonotonicClock;
using std::chrono::milliseconds;
using std::chrono::minutes;

// Longest sleep in libcurl when nothing of ours is due; its own timers end it
// before.
constexpr Duration kLongestPoll = minutes(1);

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool IsSame(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

// A token of RFC 9110 section 5.6.2: names of headers, methods.
bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (Lower(c) >= 'a' && Lower(c) <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) !=
               std::string_view::npos;
  });
}

bool IsPrintable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && c != 0x7f;
  });
}

// Why a request cannot be sent as it is; empty when it can.
std::string Fault(const ClientRequest& request) {
  if (!IsToken(request.method)) {
    return "the method `" + request.method + "` is no token";
  }
  if (!request.path.starts_with('/') || !IsPrintable(request.path) ||
      request.path.find('#') != std::string::npos) {
    return "the path `" + request.path +
           "` must begin with a slash and hold no blanks, control characters "
           "or `#`; encode them as %20 and so on";
  }
  for (const auto& [name, value] : request.headers) {
    if (!IsToken(name)) return "the header `" + name + "` has no valid name";
    if (value.find_first_of(std::string_view("\r\n\0", 3)) !=
        std::string::npos) {
      return "the value of header `" + name + "` holds an end of line";
    }
  }
  return {};
}

std::optional<Error> CheckConfig(const ClientConfig& config) {
  const std::string_view url = config.url;
  const size_t scheme = url.starts_with("http://")    ? 7
                        : url.starts_with("https://") ? 8
                                                      : 0;
  if (scheme == 0 || url.size() == scheme || url[scheme] == '/' ||
      !IsPrintable(url) || url.find_first_of("?#") != std::string_view::npos ||
      url.ends_with('/')) {
    return Error{"`url` is `" + config.url +
                 "`, but must be http:// or https:// with a host and without "
                 "a query or a slash at its end, as in http://127.0.0.1:8080"};
  }
  if (config.connect_timeout < milliseconds(1) ||
      config.connect_timeout > minutes(5)) {
    return Error{"`connect_timeout` must lie between 1ms and 5m"};
  }
  return std::nullopt;
}

// RFC 9110 section 9.2.2: what may be done twice.
bool IsIdempotent(std::string_view method) {
  return method != "POST" && method != "PATCH" && method != "CONNECT";
}

uint64_t SystemSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// libcurl's own set-up and tear-down, once a process.
bool StartLibrary() {
  static const bool started = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return started;
}

// What a call needs of libcurl: two transfers, for the attempt and its hedge.
// The connections live in `multi`, so a line that is used again has them.
struct Line {
  explicit Line(size_t max_body_bytes)
      : multi(curl_multi_init()),
        transfers{Transfer(max_body_bytes), Transfer(max_body_bytes)} {}
  std::unique_ptr<CURLM, FreeMulti> multi;
  std::array<Transfer, 2> transfers;
};

}  // namespace

const std::string* Find(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (IsSame(key, name)) return &value;
  }
  return nullptr;
}

std::string_view Response::reason() const {
  const std::string* const reason = Find(headers, wire::kReason);
  return reason == nullptr ? std::string_view() : *reason;
}

std::string Reply::Describe() const {
  std::string text;
  const auto add = [&text](std::string_view part) {
    if (part.empty()) return;
    if (!text.empty()) text += ", ";
    text += part;
  };
  if (response) {
    add(std::to_string(response->status));
    add(response->reason());
  }
  add(error);
  if (dropped != DropReason::kNone) {
    add("not sent: " + std::string(Name(dropped)));
  }
  if (gave_up != Next::Why::kNone) {
    add("not tried again: " + std::string(Name(gave_up)));
  }
  return text;
}

class Client::Impl {
 public:
  Impl(const ClientConfig& config, std::unique_ptr<ClientGuard> guard)
      : config_(config),
        guard_(std::move(guard)),
        draws_(config.seed != 0 ? config.seed : SystemSeed()) {}

  Reply Call(const ClientRequest& request, const CallScope& scope);
  const ClientGuard& guard() const { return *guard_; }

 private:
  // One call, in its thread.
  class Run;

  std::unique_ptr<Line> TakeLine();
  void ReturnLine(std::unique_ptr<Line> line);

  const ClientConfig config_;
  const std::unique_ptr<ClientGuard> guard_;
  SharedSplitMix64 draws_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Line>> idle_;
};

class Client::Impl::Run {
 public:
  Run(Impl& client, Line& line, const ClientRequest& request,
      const CallScope& scope)
      : client_(client), line_(line), request_(request) {
    call_ = scope.MakeCall();
    call_.repeatable =
        request.repeatable.value_or(IsIdempotent(request.method));
  }

  Reply Do() {
    // Ends waiting in libcurl as well as between attempts.
    const std::stop_callback wake(call_.cancelled, [this] {
      curl_multi_wakeup(line_.multi.get());
      const std::lock_guard lock(mutex_);
      condition_.notify_all();
    });
    bool more = Begin();
    while (more) {
      Wait();
      more = call_.cancelled.stop_requested() ? Abandon() : Collect();
    }
    Drop(0);
    Drop(1);
    reply_.attempts = call_.attempts;
    return std::move(reply_);
  }

 private:
  // Each returns whether there is more to wait for.

  bool Begin() {
    const Instant now = MonotonicClock::Now();
    const size_t slot = attempts_[0].open ? 1 : 0;
    Attempt& attempt = attempts_[slot];
    attempt = client_.guard_->Begin(call_, now, client_.draws_.Next());
    if (!attempt.send) {
      if (call_.open > 0) return true;  // A hedge; the first one goes on.
      reply_.dropped = attempt.dropped;
      reply_.never_retry_above = NeverRetryAbove(attempt.dropped);
      return false;
    }
    CURL* const easy = line_.transfers[slot].Prepare(client_.config_, request_,
                                                     call_, attempt);
    if (easy == nullptr ||
        curl_multi_add_handle(line_.multi.get(), easy) != CURLM_OK) {
      return End(slot, CURLE_OUT_OF_MEMORY);
    }
    added_[slot] = true;
    const Duration hedge_after = client_.guard_->policy().hedge_after;
    hedge_at_ = call_.attempts == 1 && hedge_after > Duration{}
                    ? now + hedge_after
                    : kNever;
    return true;
  }

  void Wait() {
    int running = 0;
    curl_multi_perform(line_.multi.get(), &running);
    if (running < call_.open) return;  // Something has ended already.
    const Duration most =
        hedge_at_ == kNever ? kLongestPoll : hedge_at_ - MonotonicClock::Now();
    if (most <= Duration{} || call_.cancelled.stop_requested()) return;
    // Rounded up: not to come back a little too early, again and again.
    const auto ms =
        (std::min(most, kLongestPoll) + milliseconds(1)) / milliseconds(1);
    curl_multi_poll(line_.multi.get(), nullptr, 0, static_cast<int>(ms),
                    nullptr);
    curl_multi_perform(line_.multi.get(), &running);
  }

  bool Collect() {
    int left = 0;
    while (const CURLMsg* const message =
               curl_multi_info_read(line_.multi.get(), &left)) {
      const size_t slot =
          message->easy_handle == line_.transfers[0].easy() ? 0 : 1;
      if (!End(slot, message->data.result)) return false;
    }
    const Instant now = MonotonicClock::Now();
    if (now >= hedge_at_) {
      hedge_at_ = kNever;
      if (client_.guard_->MayHedge(call_, now)) return Begin();
    }
    return true;
  }

  bool End(size_t slot, CURLcode code) {
    Transfer& transfer = line_.transfers[slot];
    const Answer answer = transfer.Conclude(code, call_.repeatable);
    if (code == CURLE_OK) {
      reply_.response = transfer.TakeResponse();
      reply_.error.clear();
    } else {
      reply_.error = transfer.Error(code);
    }
    Remove(slot);
    const Next next =
        client_.guard_->End(call_, attempts_[slot], answer,
                            MonotonicClock::Now(), client_.draws_.Next());
    switch (next.step) {
      case Next::Step::kDone:
        return false;
      case Next::Step::kWait:
        return true;
      case Next::Step::kRetry:
        return Sleep(next.at) ? Begin() : Abandon();
      case Next::Step::kGiveUp:
        reply_.gave_up = next.why;
        reply_.never_retry_above = next.never_retry_above;
        return false;
    }
    return false;
  }

  bool Abandon() {
    reply_.gave_up = Next::Why::kCancelled;
    return false;
  }

  // Forgets an attempt that another has made needless.
  void Drop(size_t slot) {
    Remove(slot);
    client_.guard_->End(call_, attempts_[slot],
                        {.kind = AnswerKind::kCancelled}, MonotonicClock::Now(),
                        0);
  }

  void Remove(size_t slot) {
    if (!std::exchange(added_[slot], false)) return;
    curl_multi_remove_handle(line_.multi.get(), line_.transfers[slot].easy());
  }

  // False when the call was cancelled.
  bool Sleep(Instant until) {
    std::unique_lock lock(mutex_);
    const auto cancelled = [this] { return call_.cancelled.stop_requested(); };
    return !condition_.wait_for(lock, until - MonotonicClock::Now(), cancelled);
  }

  Impl& client_;
  Line& line_;
  const ClientRequest& request_;
  ClientCall call_;
  std::array<Attempt, 2> attempts_;
  std::array<bool, 2> added_{};  // To libcurl.
  Instant hedge_at_ = kNever;
  Reply reply_;
  std::mutex mutex_;
  std::condition_variable condition_;
};

Reply Client::Impl::Call(const ClientRequest& request, const CallScope& scope) {
  if (std::string fault = Fault(request); !fault.empty()) {
    return {.gave_up = Next::Why::kNotRetriable, .error = std::move(fault)};
  }
  std::unique_ptr<Line> line = TakeLine();
  Reply reply = Run(*this, *line, request, scope).Do();
  ReturnLine(std::move(line));
  return reply;
}

std::unique_ptr<Line> Client::Impl::TakeLine() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Line> line = std::move(idle_.back());
      idle_.pop_back();
      return line;
    }
  }
  return std::make_unique<Line>(config_.max_body_bytes);
}

void Client::Impl::ReturnLine(std::unique_ptr<Line> line) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < config_.idle_connections) idle_.push_back(std::move(line));
}

Result<std::unique_ptr<Client>> Client::Make(const ClientConfig& config) {
  if (auto error = CheckConfig(config)) return *std::move(error);
  auto guard = ClientGuard::Make(
      config.policy, config.allowance != nullptr ? config.allowance
                                                 : RetryAllowance::OfProcess());
  if (!guard) return guard.error();
  if (!StartLibrary()) return Error{"libcurl could not be set up"};
  return std::unique_ptr<Client>(
      new Client(std::make_unique<Impl>(config, *std::move(guard))));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

Reply Client::Call(const ClientRequest& request, const CallScope& scope) {
  return impl_->Call(request, scope);
}

ClientCounts Client::counts() const { return impl_->guard().counts(); }
const ClientGuard& Client::guard() const { return impl_->guard(); }

}  // namespace weir::http
