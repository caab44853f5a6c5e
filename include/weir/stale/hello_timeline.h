// HelloTimeline tells how far behind a link is, without any clock agreeing.
//
// The peer puts its time into its stream at regular intervals, when it queues
// the stamp and not when it manages to send it.  The link keeps its order, so
// what lies between two stamps (a slice) is about as old as the first of them:
//
//   d     = our time - peer's time          offset of clocks + delay
//   ruler = smallest d of late              offset of clocks + least delay
//   delay = d - ruler                       how long the link makes us wait
//
// A difference of two differences: what the clocks show cancels, only how fast
// they run matters.  The ruler moves when
//
//   first stamp            ruler = d, delay = 0
//   d < ruler              ruler = d: a better minimum
//   its window has passed  minimum of the window (the clocks drift apart),
//                          not while frozen: a queue that stands would become
//                          the norm
//   stamp behind the last  the peer's clock was set, or it restarted behind a
//   or far ahead of it     relay.  The link kept its order, so the delay went
//                          on from what it was: ruler = d - expected delay
//
//   expected delay = last delay + time since it - usual gap between stamps
//
// A connection that was made anew has no queue: give it a new timeline.
//
// The window moves by the time that both clocks saw pass.  If we stood still
// for a minute, our clock leaps and theirs follows in a burst of old stamps,
// and neither of them makes a ruler expire.
//
// On the wire a stamp is 32 bits, counted in ticks, from any start, and wraps.
// 0.1 s wraps after 13 years, 1 ms after 49 days.  Take CLOCK_MONOTONIC or
// CLOCK_MONOTONIC_RAW for it: nobody sets those.
//
// Source: [WETEST], docs/algorithms/stale.md.  Differs from it where a clock is
// set: the delay is kept there, since forgetting it makes all that waits look
// fresh.

#ifndef WEIR_STALE_HELLO_TIMELINE_H_
#define WEIR_STALE_HELLO_TIMELINE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "weir/result.h"
#include "weir/time.h"

namespace weir {

// A stamp as it travels.  `tick` as in the receiver's config.
constexpr uint32_t StampOf(Instant peer_now, Duration tick) {
  const int64_t ns = peer_now.time_since_epoch().count();
  // Rounds down, below zero as well, so that every tick is equally long.
  const int64_t ticks = ns / tick.count() - (ns % tick.count() < 0 ? 1 : 0);
  return static_cast<uint32_t>(static_cast<uint64_t>(ticks));
}

// Not thread-safe.  O(1), no allocation; some 150 bytes a link.
class HelloTimeline {
 public:
  struct Config {
    // Source: docs/algorithms/stale.md, 1 s was found too coarse.
    Duration tick = std::chrono::milliseconds(100);  // 1 us to 1 s.
    // Clocks that drift apart by 100 ppm move the ruler by 6 ms in this time,
    // less than a tick.  Must be longer than an overload goes unnoticed.
    // Chosen.
    Duration window = std::chrono::seconds(60);  // 1 ms to a day.
    // A stamp that beats the ruler by more than this was not a queue that got
    // shorter, which takes a Hello for each second: the peer's clock was set.
    // Chosen: some intervals of 1 s.
    Duration leap = std::chrono::seconds(3);  // 1 ms to a day.
  };

  static Result<HelloTimeline> Make(const Config& config);

  // A stamp was reached in the stream at `now`.  Returns delay().  `frozen`
  // while the server is overloaded.  A `now` that steps back counts as the
  // latest one.
  Duration Hello(uint32_t stamp, Instant now, bool frozen);

  // As if the next stamp were the first.
  void Reset() { stamps_ = 0; }

  // Of the last stamp; zero without one.  Too large by at most a tick.
  Duration delay() const { return delay_; }
  // When the last stamp was reached; unspecified without one.
  Instant at() const { return at_; }
  bool empty() const { return stamps_ == 0; }
  // How often the peer's clock was found to have been set.
  uint64_t steps() const { return steps_; }

 private:
  static constexpr size_t kParts = 6;

  explicit HelloTimeline(const Config& config) : config_(config) {}
  void Anchor(uint32_t stamp, Instant now, Duration delay);
  Duration ExpectedDelay(Instant now) const;
  Duration Ruler() const;
  void MoveWindow(Duration passed);

  Config config_;
  uint64_t stamps_ = 0;
  uint64_t steps_ = 0;
  uint32_t stamp_ = 0;  // The last one.
  Instant at_{};
  Duration delay_{};
  Duration gap_{};  // Between the last two stamps, on the peer's clock.
  // All relative to the anchor, so that no sum can overflow.
  Instant anchor_{};     // Our time and
  Duration peer_{};      // the peer's since then.
  Duration part_age_{};  // Of the newest part of the window.
  size_t part_ = 0;
  std::array<Duration, kParts> smallest_{};  // Of each part of the window.
};

}  // namespace weir

#endif  // WEIR_STALE_HELLO_TIMELINE_H_
