#include "world.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <vector>

#include "weir/splitmix64.h"

namespace weir::game {
namespace {

constexpr Instant kStart{};

// The loop's tick: 1 ms of other work in each 50 ms.
constexpr Duration kTickWork = std::chrono::milliseconds(1);
constexpr Duration kTickInterval = std::chrono::milliseconds(50);
constexpr double kForMessages = .98;

constexpr int kTurn = 4;  // Messages of a link in a row, as in weir::stream.
constexpr double kCalmLoad = .5;

// Kinder to the rival than any that is set in advance: between the mean loop
// at 90 % load and a saturated one of 16 ms.
constexpr Duration kLongLoop = std::chrono::milliseconds(12);
constexpr Duration kLoopUnit = std::chrono::seconds(1);

// What a link that was closed costs.  Chosen: a fast reconnect, and 50 ms of
// the loop to register its players again.
constexpr Duration kReconnect = std::chrono::seconds(1);
constexpr Duration kRegister = std::chrono::milliseconds(50);
constexpr Duration kRestart = std::chrono::seconds(2);

class Random {
 public:
  explicit Random(uint64_t seed) : draws_(seed) {}
  double Exponential(double mean) {
    return -mean * std::log(draws_.NextUnit() + 0x1p-53);
  }

 private:
  SplitMix64 draws_;
};

struct Frame {
  Instant sent;
  uint32_t stamp = 0;
  bool hello = false;
};

// An access server with its clock, and its link with all that is on its way.
struct Access {
  Access(uint64_t seed, int index, SliceDropper& dropper)
      : random(seed),
        sign(index % 2 == 0 ? 1 : -1),
        link(std::make_unique<SliceDropper::Link>(dropper)) {}

  Random random;
  int sign;  // Of what is wrong with its clock.
  std::unique_ptr<SliceDropper::Link> link;
  std::deque<Frame> queue;
  Instant next_message;
  Instant next_hello;
  Instant online;          // Nothing is sent before.
  Instant booted{};        // Its clock began.
  Duration clock{};        // Is ahead of the server's.
  bool expired = false;    // Of kLoopTime: the slice is too old.
  uint64_t settled = 0;    // Messages in time, in the second half.
  uint64_t in_queue = 0;   // Messages.
  uint64_t handled = 0;    // Messages, and
  uint64_t announced = 0;  // those that the meter knows of.
};

class World {
 public:
  explicit World(const Case& setup)
      : setup_(setup),
        begin_(kStart + setup.before),
        end_(begin_ + setup.overload),
        middle_(begin_ + setup.overload / 2),
        meter_(CapacityMeter::Make({}, kStart).value()),
        dropper_(
            SliceDropper::Make(
                {.hello = {.tick = setup.tick},
                 .threshold = setup.threshold,
                 .lifetime = setup.rest_of_slice ? setup.lifetime : Duration{},
                 .interval = setup.hello})
                .value()) {
    for (int i = 0; i < setup.links; ++i) {
      auto access = std::make_unique<Access>(
          setup.seed * 1000 + static_cast<uint64_t>(i), i, dropper_);
      if (setup.clocks == Clocks::kOffset) {
        access->clock = access->sign * std::chrono::seconds(9);
      }
      access->next_message = kStart;
      access->next_hello = kStart +
                           FromSeconds(setup.phase * ToSeconds(setup.hello)) +
                           setup.hello * i / setup.links;
      accesses_.push_back(std::move(access));
    }
  }

  Outcome Run() {
    const Instant stop = end_ + setup_.after;
    while (now_ < stop) {
      const Instant began = now_;
      bool any = Tick();
      Disturb();
      for (const auto& access : accesses_) any = Turn(*access) || any;
      Judge(now_ - began);
      if (!any) now_ = NextEvent();
    }
    return Report();
  }

 private:
  double Capacity() const { return kForMessages / ToSeconds(setup_.cost); }

  double Load(Instant at) const {
    return at >= begin_ && at < end_ ? setup_.load : kCalmLoad;
  }

  // Whatever the link has sent by now lies in its queue.
  void Send(Access& access) {
    const double links = setup_.links;
    while (std::min(access.next_message, access.next_hello) <= now_) {
      const bool hello = access.next_hello <= access.next_message;
      const Instant at = hello ? access.next_hello : access.next_message;
      const bool full = setup_.buffer > 0 && access.in_queue >= setup_.buffer;
      if (at >= access.online && (hello || !full)) {
        access.queue.push_back({at, Stamp(access, at), hello});
        if (!hello) ++access.in_queue;
      } else if (!hello) {
        Lose(1, at);
      }
      if (hello) {
        access.next_hello += setup_.hello;
      } else {
        access.next_message += FromSeconds(
            access.random.Exponential(links / (Load(at) * Capacity())));
      }
    }
  }

  uint32_t Stamp(const Access& access, Instant at) const {
    Duration clock = access.clock - (access.booted - kStart);
    if (setup_.clocks == Clocks::kDrift) {
      clock += access.sign * (at - kStart) / 10'000;
    }
    return StampOf(at + clock, setup_.tick);
  }

  void Disturb() {
    if (disturbed_ || now_ < middle_) return;
    disturbed_ = true;
    if (setup_.clocks == Clocks::kStep) {
      for (const auto& access : accesses_) {
        Send(*access);  // What was sent before has the stamps of before.
        access->clock += access->sign * std::chrono::hours(1);
      }
    } else if (setup_.clocks == Clocks::kRestart) {
      accesses_[0]->booted = now_;
      Close(*accesses_[0], kRestart);
    }
  }

  bool Tick() {
    if (now_ < next_tick_) return false;
    next_tick_ += kTickInterval;
    now_ += kTickWork;
    meter_.OtherWork(kTickWork);
    return true;
  }

  bool Turn(Access& access) {
    Send(access);
    bool any = false;
    int executed = 0;
    while (executed < kTurn && !access.queue.empty()) {
      any = true;
      const Frame frame = access.queue.front();
      access.queue.pop_front();
      if (frame.hello || setup_.stamped) Hello(access, frame.stamp);
      if (access.queue.empty() && now_ < access.online) break;  // Closed.
      if (frame.hello) {
        now_ += setup_.discard;
        continue;
      }
      --access.in_queue;
      if (Admit(access)) {
        Execute(access, frame);
        ++executed;
      } else {
        Drop(access);
        // The rest of the slice goes in one stretch.
        while (!access.queue.empty() && !access.queue.front().hello &&
               !setup_.stamped) {
          --access.in_queue;
          Drop(access);
          access.queue.pop_front();
        }
      }
    }
    Send(access);
    Announce(access);
    return any;
  }

  void Hello(Access& access, uint32_t stamp) {
    if (setup_.arm == Arm::kLoopTime) {
      const auto age = static_cast<int32_t>(StampOf(now_, setup_.tick) - stamp);
      access.expired = age * setup_.tick > setup_.threshold;
      return;
    }
    dropper_.Hello(*access.link, stamp, now_);
    if (setup_.arm == Arm::kDisconnect && access.link->dropping()) {
      Close(access, kReconnect);
      now_ += kRegister;
      meter_.OtherWork(kRegister);
    }
  }

  bool Admit(const Access& access) const {
    switch (setup_.arm) {
      case Arm::kNone:
        return true;
      case Arm::kLoopTime:
        return !long_loops_ || !access.expired;
      case Arm::kDynamic:
        return dropper_.Admit(*access.link, now_);
      case Arm::kDisconnect:
        return true;
    }
    return true;
  }

  void Execute(Access& access, const Frame& frame) {
    now_ += setup_.cost;
    meter_.Executed(1, setup_.cost);
    ++access.handled;
    const bool late = now_ - frame.sent > setup_.lifetime;
    if (late) last_bad_ = now_;
    if (now_ < begin_ || now_ >= end_) return;
    ++(late ? late_ : valid_);
    if (late || now_ < middle_) return;
    ++settled_;
    ++access.settled;
  }

  void Drop(Access& access) {
    now_ += setup_.discard;
    meter_.Dropped(1);
    ++access.handled;
    Lose(1, now_);
  }

  void Lose(uint64_t messages, Instant at) {
    if (messages == 0) return;
    if (at >= begin_ && at < end_) dropped_ += messages;
    if (setup_.arm != Arm::kNone) last_bad_ = std::max(last_bad_, at);
  }

  // All that is in the link goes with it, on both sides.
  void Close(Access& access, Duration offline) {
    Announce(access);
    Send(access);
    Lose(access.in_queue, now_);
    meter_.Dropped(static_cast<int64_t>(access.announced - access.handled));
    access.announced = access.handled;
    access.in_queue = 0;
    access.queue.clear();
    access.link = std::make_unique<SliceDropper::Link>(dropper_);
    access.expired = false;
    access.online = now_ + offline;
    access.next_hello = access.online;
  }

  void Announce(Access& access) {
    const uint64_t read =
        access.handled + std::min<uint64_t>(access.in_queue, setup_.visible);
    meter_.Arrived(static_cast<int64_t>(read - access.announced));
    access.announced = read;
  }

  void Judge(Duration loop) {
    loop_sum_ += loop;
    ++loops_;
    if (now_ >= loop_unit_end_) {
      const bool was_long = long_loops_;
      const bool dropping =
          std::any_of(accesses_.begin(), accesses_.end(),
                      [](const auto& access) { return access->expired; });
      long_loops_ = loop_sum_ / loops_ > kLongLoop || (was_long && dropping);
      loop_sum_ = Duration{};
      loops_ = 0;
      loop_unit_end_ = now_ + kLoopUnit;
    }
    if (meter_.Advance(now_) && setup_.arm != Arm::kNone &&
        setup_.arm != Arm::kLoopTime) {
      dropper_.Judge(meter_.reading(), now_);
    }
    const bool overloaded =
        dropper_.overloaded() || (setup_.arm == Arm::kLoopTime && long_loops_);
    if (overloaded) last_overloaded_ = now_;
    if (overloaded && detected_ < begin_ && now_ >= begin_) detected_ = now_;
  }

  Instant NextEvent() const {
    Instant next = next_tick_;
    for (const auto& access : accesses_) {
      next = std::min({next, access->next_message, access->next_hello});
    }
    return std::max(next, now_);
  }

  Outcome Report() const {
    Outcome outcome;
    const double possible =
        std::min(setup_.load, 1.) * Capacity() * ToSeconds(setup_.overload);
    const auto valid = static_cast<double>(valid_);
    const auto late = static_cast<double>(late_);
    outcome.valid_ratio = valid / possible;
    outcome.settled_ratio = static_cast<double>(settled_) / possible * 2;
    uint64_t worst = settled_;
    for (const auto& access : accesses_) {
      worst = std::min(worst, access->settled);
    }
    outcome.worst_link_ratio =
        static_cast<double>(worst) * setup_.links / possible * 2;
    outcome.late_ratio = valid + late > 0 ? late / (valid + late) : 0;
    outcome.dropped_ratio =
        static_cast<double>(dropped_) /
        (setup_.load * Capacity() * ToSeconds(setup_.overload));
    if (detected_ >= begin_) outcome.detect_s = ToSeconds(detected_ - begin_);
    const Instant last = std::max({last_bad_, last_overloaded_, end_});
    if (last < end_ + setup_.after - std::chrono::seconds(1)) {
      outcome.recover_s = ToSeconds(last - end_);
    }
    return outcome;
  }

  const Case setup_;
  const Instant begin_, end_, middle_;
  CapacityMeter meter_;
  SliceDropper dropper_;
  std::vector<std::unique_ptr<Access>> accesses_;
  Instant now_ = kStart;
  Instant next_tick_ = kStart;
  bool disturbed_ = false;

  bool long_loops_ = false;
  Duration loop_sum_{};
  int64_t loops_ = 0;
  Instant loop_unit_end_ = kStart;

  uint64_t valid_ = 0, settled_ = 0, late_ = 0, dropped_ = 0;
  Instant detected_ = Instant::min();
  Instant last_bad_ = kStart;
  Instant last_overloaded_ = kStart;
};

}  // namespace

Outcome Simulate(const Case& setup) { return World(setup).Run(); }

}  // namespace weir::game
