// Calls a service as a guarded client does, and says what became of it.
//
//   http_client url [path [callers [seconds]]]
//
//   http_client http://127.0.0.1:8080 /checkout 64 5
//
// Each caller calls again as soon as its last call is over, with 500 ms for
// each.  Against a service with weir in front that cannot serve them all, most
// calls stop being sent after a second or two: see "kept at home".

#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "weir/host/clock.h"
#include "weir/http/client.h"

namespace {

using weir::host::MonotonicClock;

constexpr auto kBudget = std::chrono::milliseconds(500);
// A caller whose call was kept at home does something else for so long.
constexpr auto kPause = std::chrono::milliseconds(5);

int ParseCount(const char* text) {
  int count = 0;
  const char* const end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, count);
  return error == std::errc() && rest == end && count > 0 ? count : 0;
}

struct Totals {
  std::atomic<int64_t> calls{0};
  std::atomic<int64_t> answered{0};
  std::atomic<int64_t> refused{0};
  std::atomic<int64_t> kept{0};
  std::atomic<int64_t> failed{0};
};

void CallUntil(weir::Instant end, weir::http::Client& client,
               const std::string& path, Totals& totals) {
  for (weir::Instant now; (now = MonotonicClock::Now()) < end;) {
    const weir::CallScope scope{.deadline = now + kBudget};
    const weir::http::Reply reply = client.Call({.path = path}, scope);
    ++totals.calls;
    if (reply.ok()) {
      ++totals.answered;
    } else if (reply.attempts == 0) {
      ++totals.kept;
      std::this_thread::sleep_for(kPause);
    } else if (reply.response && !reply.response->reason().empty()) {
      ++totals.refused;
    } else {
      ++totals.failed;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 2 ? argv[2] : "/";
  const int callers = argc > 3 ? ParseCount(argv[3]) : 16;
  const int seconds = argc > 4 ? ParseCount(argv[4]) : 2;
  if (argc < 2 || argc > 5 || callers == 0 || seconds == 0) {
    fmt::print(stderr, "usage: http_client url [path [callers [seconds]]]\n");
    return 2;
  }
  const auto client = weir::http::Client::Make({.url = argv[1]});
  if (!client) {
    fmt::print(stderr, "http_client: {}\n", client.error().message);
    return 2;
  }

  Totals totals;
  const weir::Instant end =
      MonotonicClock::Now() + std::chrono::seconds(seconds);
  std::vector<std::thread> threads;
  for (int i = 0; i < callers; ++i) {
    threads.emplace_back([&] { CallUntil(end, **client, path, totals); });
  }
  for (std::thread& thread : threads) thread.join();

  const weir::ClientCounts counts = (*client)->counts();
  const auto row = [](const char* name, int64_t value) {
    fmt::print("{:<28}{:>10}\n", name, value);
  };
  row("calls", totals.calls);
  row("answered", totals.answered);
  row("refused by the service", totals.refused);
  row("kept at home", totals.kept);
  row("failed otherwise", totals.failed);
  row("requests sent", static_cast<int64_t>(counts.sent));
  row("of them retries", static_cast<int64_t>(counts.retries));
  return totals.answered > 0 ? 0 : 1;
}
