// ReplicaLoad tells which of a service's replicas to call.
//
//   load = running + failed of late
//   share = how much of the usual it is given, while it is young
//
// A call goes to the less loaded of two replicas that were drawn by their
// shares.  The calls that run show who is slow.  They cannot show who fails: a
// replica that refuses connections has none running, and so would be given
// nearly all.  So a call that failed counts on and fades within seconds: one
// that fails fast looks as if it hung.
//
// A fresh replica has cold caches and knows no limit yet: its share grows
// evenly over `slow_start`, from a tenth.
//
// Source: [MITZENMACHER2001], the power of two choices.  Failures as load are
// ours; slow start as nginx and HAProxy have it.

#ifndef WEIR_CLIENT_REPLICA_LOAD_H_
#define WEIR_CLIENT_REPLICA_LOAD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "weir/client/client_call.h"
#include "weir/signal/decaying_count.h"
#include "weir/splitmix64.h"
#include "weir/time.h"

namespace weir {

// Of one replica.  Threads: any, without locks.  O(1), allocates nothing.
class ReplicaLoad {
 public:
  // Chosen: enough calls to warm up by, few enough to do without.
  static constexpr double kFirstShare = 0.1;

  // `slow_start` of zero: it is given its whole share at once.
  explicit ReplicaLoad(Instant born = {}, Duration slow_start = {})
      : born_(born), slow_start_(slow_start) {}

  void OnSent() { running_.fetch_add(1, std::memory_order_relaxed); }
  // A call that was sent has ended.
  void OnEnded(AnswerKind kind, Instant now);
  // A call for it was kept at home: its guard knows that it is in no state.
  void OnDropped(Instant now) { failed_.Add(1, now); }

  double Load(Instant now) const;
  double Share(Instant now) const;  // [kFirstShare, 1].

 private:
  const Instant born_;
  const Duration slow_start_;
  std::atomic<int32_t> running_{0};
  DecayingCount failed_;
};

// Draws two of `count` > 0 replicas, the less loaded one first; twice the same
// when there is one only.  `replica(i)` gives the ReplicaLoad of number i.
template <typename Replica>
std::pair<size_t, size_t> ChooseTwo(size_t count, const Replica& replica,
                                    Instant now, uint64_t draw) {
  SplitMix64 draws(draw);
  // One of all but `other`, with a probability by its share.
  const auto draw_one = [&](size_t other) {
    double all = 0;
    for (size_t i = 0; i < count; ++i) {
      if (i != other) all += replica(i).Share(now);
    }
    double left = ToUnit(draws.Next()) * all;
    size_t last = other;
    for (size_t i = 0; i < count; ++i) {
      if (i == other) continue;
      last = i;
      left -= replica(i).Share(now);
      if (left < 0) break;
    }
    return last;
  };
  const size_t first = draw_one(count);
  if (count == 1) return {first, first};
  const size_t second = draw_one(first);
  if (replica(second).Load(now) < replica(first).Load(now)) {
    return {second, first};
  }
  return {first, second};
}

}  // namespace weir

#endif  // WEIR_CLIENT_REPLICA_LOAD_H_
