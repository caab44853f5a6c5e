// FairUsage remembers how much each client has used lately, in fixed memory.
//
// Of each client that it knows it keeps a count of its dispatched requests that
// decays with a memory of one second.  Clients share cells of two rows; the
// smaller cell is believed (a count-min sketch), so a client can seem to have
// used more than it did, never less.  With 4096 cells a row, one heavy client
// spoils a light one's estimate with a probability of (1/4096)^2.
//
// Strangers are those who give no name, and names of which fewer than kFamiliar
// requests were dispatched within kKnownFor.  Names cost nothing, so who brings
// a new one each time must not look like many who have used nothing: all
// strangers together have one usage.  It is worth that of an eighth as many
// clients as are known, at least of one, so that one heavy client cannot keep
// out all who come for the first time; and it is never less than the typical
// client's.  Where nobody is known, all are alike.
//
// A name that becomes known starts where the typical client is, or a name for
// every third request would have used nothing.
//
// Source: [COUNTMIN] for the sketch; strangers are ours.
//
// Threads and processes: any.  Updates that race can lose one another, which
// forgets a request or two of thousands; nothing else can go wrong.

#ifndef WEIR_SHED_FAIR_USAGE_H_
#define WEIR_SHED_FAIR_USAGE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weir/signal/decaying_count.h"
#include "weir/time.h"

namespace weir {

class FairUsage {
 public:
  static constexpr size_t kRows = 2;
  static constexpr size_t kCells = 4096;
  // Highest level: a client with 2^20 requests within the memory.
  static constexpr uint8_t kMaxLevel = 20;
  // Names that are remembered at most; of more, those that came last.
  static constexpr size_t kNames = 16384;
  // Chosen: long enough for who asks every half minute; short enough that a
  // name must be used to stay known.
  static constexpr Duration kKnownFor = std::chrono::minutes(1);
  // Chosen: an attacker's names that come back by chance are few then.
  static constexpr uint8_t kFamiliar = 2;
  // Chosen: strangers get a ninth at most of what clients want who are known.
  static constexpr double kKnownPerStranger = 8;

  // Counts one dispatched request.  Client 0 has no name.
  void Add(uint64_t client, Instant now);

  // floor(log2(1 + usage)), at most kMaxLevel.
  uint8_t Level(uint64_t client, Instant now) const;

  // Decayed count of requests; of a stranger, of all that it stands for.
  double Usage(uint64_t client, Instant now) const;

  bool IsKnown(uint64_t client, Instant now) const;
  // What a client that is known has used: the harmonic mean, so that a few
  // heavy ones are not what is typical; 0 while nobody is known.
  double TypicalUsage(Instant now) const;

 private:
  // A line of the memory.  A word is a fingerprint of the name (upper half),
  // when it came last, in units of 1.07 s (24 bits), and how often (8 bits).
  static constexpr size_t kWays = 8;
  static constexpr size_t kSets = kNames / kWays;
  struct alignas(64) Set {
    std::array<std::atomic<uint64_t>, kWays> words{};
  };

  // How often it came within kKnownFor before now; counts it.
  uint8_t Remember(uint64_t client, Instant now);
  uint8_t Recall(uint64_t client, Instant now) const;
  double Sketched(uint64_t client, Instant now) const;
  double StrangersUsage(Instant now) const;
  void NoteKnown(uint64_t client, Instant now);

  std::array<Set, kSets> sets_{};
  std::array<std::array<DecayingCount, kCells>, kRows> cells_{};
  DecayingCount strangers_;
  // Of those who are known: what they used together, and the means of 1 / usage
  // and of its square over their requests, n / sum(u) and sum(1 / u) / sum(u).
  DecayingCount known_;
  std::atomic<float> inverse_usage_{1};
  std::atomic<float> inverse_square_{1};
};

}  // namespace weir

#endif  // WEIR_SHED_FAIR_USAGE_H_
