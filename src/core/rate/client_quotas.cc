#include "weir/rate/client_quotas.h"

namespace weir {
namespace {

// How often a place is tried for that others take at the same time.  Chosen:
// then this one call passes uncounted rather than anybody waits.
constexpr int kClaims = 4;

// Source: [MURMUR3] fmix64; its low bits are not those that FairUsage takes.
constexpr uint64_t SetHash(uint64_t x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
  return x ^ x >> 33;
}

}  // namespace

std::optional<Error> ClientQuotas::Check(const Config& config) {
  if (config.calls < 1 || config.calls > kMostCalls) {
    return Error{"`client_quota.calls` must lie between 1 and 2000000000"};
  }
  if (config.window < kShortestWindow || config.window > kLongestWindow) {
    return Error{"`client_quota.window` must lie between 10ms and 24h"};
  }
  return std::nullopt;
}

ClientQuotas::Set& ClientQuotas::SetOf(uint64_t client) {
  return sets_[SetHash(client) % kSets];
}

ClientQuotas::Place* ClientQuotas::Find(Set& set, uint64_t client) {
  for (Place& place : set.places) {
    if (place.client.load(std::memory_order_relaxed) == client) return &place;
  }
  return nullptr;
}

// The place of the client with the fewest calls in this window; free ones and
// those of earlier windows have none.
ClientQuotas::Place& ClientQuotas::Claim(Set& set, uint64_t client,
                                         uint64_t window) {
  Place* fewest = nullptr;
  for (int i = 0; i < kClaims; ++i) {
    if (Place* own = Find(set, client)) return *own;
    uint64_t least = Word::kMost + 1;
    uint64_t holder = 0;
    for (Place& place : set.places) {
      const uint64_t calls = place.calls.Read(window).value;
      if (calls >= least) continue;
      least = calls;
      fewest = &place;
      holder = place.client.load(std::memory_order_relaxed);
    }
    if (fewest->client.compare_exchange_strong(holder, client,
                                               std::memory_order_relaxed)) {
      break;
    }
  }
  return *fewest;
}

ClientQuotas::Answer ClientQuotas::Take(const Config& config, uint64_t client,
                                        Instant now) {
  Answer answer;
  answer.admitted = true;
  if (client == 0) return answer;
  const uint64_t window = WindowNumber(now, config.window);
  Set& set = SetOf(client);
  const auto reading =
      Claim(set, client, window).calls.Update(window, [&](uint64_t calls) {
        return calls < static_cast<uint64_t>(config.calls)
                   ? std::optional(calls + 1)
                   : std::nullopt;
      });
  answer.window = static_cast<uint32_t>(reading.window);
  answer.admitted = reading.value < static_cast<uint64_t>(config.calls);
  if (!answer.admitted) answer.retry_after = WindowLeft(now, config.window);
  return answer;
}

void ClientQuotas::GiveBack(uint64_t client, uint32_t window) {
  if (client == 0) return;
  if (Place* place = Find(SetOf(client), client)) {
    place->calls.TakeAway(window);
  }
}

int64_t ClientQuotas::Counted(const Config& config, uint64_t client,
                              Instant now) const {
  const Set& set = sets_[SetHash(client) % kSets];
  for (const Place& place : set.places) {
    if (place.client.load(std::memory_order_relaxed) == client) {
      return static_cast<int64_t>(
          place.calls.Read(WindowNumber(now, config.window)).value);
    }
  }
  return 0;
}

}  // namespace weir
