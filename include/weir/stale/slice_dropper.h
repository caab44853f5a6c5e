// SliceDropper decides which messages of an overloaded server are too old to
// be worth executing.  It judges slices: all that a link sent between two
// Hellos.  A slice whose Hello is late goes as a whole, for the price of a few
// headers, until a Hello comes that is not.
//
//                    demand > capacity
//      calm  ------------------------------->  overloaded
//            <-------------------------------
//             demand < capacity, no link drops
//
//   and while overloaded, for each link:
//
//                 Hello: delay > threshold
//      executing  ------------------------->  dropping
//                 <-------------------------
//                 Hello: delay <= threshold,
//                 or none for `patience`,
//                 or none with a lower delay for `patience`: new ruler
//
// Links are judged only while overloaded, so a network that is slow by itself
// costs nothing.  The second condition of the way back matters: links that
// drop are read very fast, so the queue of the server is short while theirs
// are not.
//
// `patience` keeps a link from dropping for ever.  One that drops catches up,
// for discarding is cheap: if it does not, its ruler is wrong (the peer's
// clock was set back by less than a Hello, or drifted all through a long
// overload); if it says nothing, it has nothing to drop.  Where somebody
// else has the last word, what runs of a late link must be told by Ran().
//
// With a stamp on each message, call Hello() and Admit() for each: a slice of
// one.  Where the lifetime of a message is known, the rest of a slice is also
// dropped once even its youngest message must have passed it.
//
// Source: [WETEST], docs/algorithms/stale.md, which has what differs and why.

#ifndef WEIR_STALE_SLICE_DROPPER_H_
#define WEIR_STALE_SLICE_DROPPER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/result.h"
#include "weir/stale/capacity_meter.h"
#include "weir/stale/hello_timeline.h"
#include "weir/time.h"

namespace weir {

// Not thread-safe: belongs to the loop that executes messages.  O(1) a call,
// but for Judge(), which looks at all links once a unit.  Allocates only when
// a link is made.
class SliceDropper {
 public:
  struct Config {
    HelloTimeline::Config hello{};
    // Delay past which a slice is dropped.  Above zero, and below what callers
    // wait for an answer by more than (load - 1) * Hello interval, or slices
    // get too old while they run.  Chosen: half of the 2 s that people wait.
    Duration threshold = std::chrono::seconds(1);
    // Chosen: ten Hellos of 1 s; discarding is at least ten times as fast as
    // executing where this scheme is worth having.
    Duration patience = std::chrono::seconds(10);  // Above zero.
    // After this time a message is useless; zero: not known.  `interval` is
    // that of Hellos, and has no other use.
    Duration lifetime{};
    Duration interval = std::chrono::seconds(1);
  };

  // What the server keeps for a connection.  Closing one that drops ends that.
  class Link {
   public:
    // `dropper` must outlive the link and stay where it is.
    explicit Link(SliceDropper& dropper);
    ~Link();
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

    bool dropping() const { return dropping_; }
    const HelloTimeline& timeline() const { return timeline_; }

   private:
    friend class SliceDropper;
    SliceDropper& dropper_;
    size_t index_;  // In dropper_.links_.
    HelloTimeline timeline_;
    bool dropping_ = false;
    Duration lowest_{};    // Delay since it began to drop, and
    Instant lowest_at_{};  // when that was.
  };

  static Result<SliceDropper> Make(const Config& config);

  // Call whenever CapacityMeter::Advance() says that a unit is over.
  void Judge(const CapacityMeter::Reading& reading, Instant now);

  // `link` has come to a Hello, or to the stamp of a message.
  void Hello(Link& link, uint32_t stamp, Instant now);

  // Whether to execute the next message of `link`; else discard it.  Links
  // that never sent a Hello are never refused.
  [[nodiscard]] bool Admit(const Link& link, Instant now) const;

  // How far behind `link` is, for those who decide by other bounds than
  // `threshold`.  Zero while the server is not overloaded.
  Duration Behind(const Link& link) const {
    return overloaded_ ? link.timeline_.delay() : Duration{};
  }
  // A message of `link` was executed although Admit() would have refused it:
  // that the link does not catch up is no wonder, and no wrong ruler.
  void Ran(Link& link, Instant now) {
    if (link.dropping_) link.lowest_at_ = now;
  }

  bool overloaded() const { return overloaded_; }
  size_t links() const { return links_.size(); }
  size_t dropping() const { return dropping_; }
  // How often a ruler was found to be wrong by a link that did not catch up.
  uint64_t new_rulers() const { return new_rulers_; }

 private:
  explicit SliceDropper(const Config& config) : config_(config) {}
  void JudgeLink(Link& link, Instant now);
  void Drop(Link& link, bool drop);

  Config config_;
  bool overloaded_ = false;
  std::vector<Link*> links_;
  size_t dropping_ = 0;
  uint64_t new_rulers_ = 0;
};

}  // namespace weir

#endif  // WEIR_STALE_SLICE_DROPPER_H_
