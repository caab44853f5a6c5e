#include "oracle.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace weir::sim {

namespace {

constexpr double kEpsilon = 1e-12;

// Chosen: a thousandth of the longest deadline, so that what a slot rounds
// away cannot be seen, but not below 1 ms, where the fluid is finer than what
// it stands for.
Duration SlotFor(Duration longest_deadline) {
  return std::max<Duration>(longest_deadline / 1000,
                            std::chrono::milliseconds(1));
}

}  // namespace

void Need::Then(const Need& other) {
  latency += other.latency;
  work += other.work;
  used |= other.used;
  for (size_t r = 0; r < of.size(); ++r) of[r] += other.of[r];
}

void Need::Beside(const Need& other) {
  const Duration longer = std::max(latency, other.latency);
  Then(other);
  latency = longer;
}

Oracle::Oracle(OracleListener& listener, size_t classes, size_t resources,
               Duration longest_deadline, Duration reject_cost)
    : listener_(listener),
      resources_(resources),
      slot_(SlotFor(longest_deadline)),
      ring_slots_(static_cast<size_t>(longest_deadline / slot_) + 2),
      kept_slots_(2 * ring_slots_),
      ring_size_(std::bit_ceil(ring_slots_)),
      kept_size_(std::bit_ceil(kept_slots_)),
      reject_cost_(ToSeconds(reject_cost)),
      capacity_(resources, 0),
      room_(resources, 0) {
  lines_.reserve(classes);
}

void Oracle::SetCapacity(size_t resource, double capacity, Duration now) {
  AdvanceTo(now);
  // The open slot gets what the old capacity gave until now.
  const Duration slot_start = slot_ * now_slot_;
  const Duration from = std::max(charged_until_, slot_start);
  if (now > from) {
    for (size_t r = 0; r < resources_; ++r) {
      room_[r] += capacity_[r] * ToSeconds(now - from);
    }
    charged_until_ = now;
  }
  capacity_[resource] = capacity;
}

bool Oracle::Arrive(size_t cls, const Need& need, Duration budget,
                    Duration now) {
  AdvanceTo(now);
  room_[0] -= reject_cost_;
  if (need.latency > budget) return false;
  Line& line = LineOf(cls, need.used);
  // As a fluid, work is done at once; only what does not queue takes time.
  const Duration unqueued = std::max(need.latency - need.work, Duration{});
  const int64_t last = (now + budget - unqueued) / slot_;
  Amount& waiting = line.waiting[CellAt(last)];
  double* const needed = &line.need[CellAt(last) * resources_];
  for (size_t r = 0; r < resources_; ++r) needed[r] += ToSeconds(need.of[r]);
  needed[0] -= std::min(reject_cost_, ToSeconds(need.of[0]));
  const double work = ToSeconds(need.work);
  Amount amount{work, mean_work_ > 0 ? work / mean_work_ : 1, 0};
  amount.arrived = amount.requests * ToSeconds(now) / ToSeconds(slot_);
  Add(waiting, amount);
  if (amount.requests <= 0) return true;
  if (line.total.requests < kEpsilon) line.earliest = last;
  Add(line.total, amount);
  line.earliest = std::min(line.earliest, last);
  return true;
}

void Oracle::AdvanceTo(Duration now) {
  while (slot_ * (now_slot_ + 1) <= now) PlaySlot();
}

void Oracle::Add(Amount& to, Amount amount) {
  to.work += amount.work;
  to.requests += amount.requests;
  to.arrived += amount.arrived;
}

// What rounding leaves below zero is nothing.
void Oracle::Subtract(Amount& from, Amount amount) {
  from.work = std::max(0., from.work - amount.work);
  from.requests = std::max(0., from.requests - amount.requests);
  from.arrived = std::max(0., from.arrived - amount.arrived);
}

Oracle::Line& Oracle::LineOf(size_t cls, uint32_t used) {
  for (Line& line : lines_) {
    if (line.cls == cls && line.used == used) return line;
  }
  Line line;
  line.cls = cls;
  line.used = used;
  line.waiting.resize(ring_size_);
  line.need.resize(ring_size_ * resources_);
  line.done.resize(kept_size_);
  line.freed.resize(kept_size_);
  line.earliest = line.oldest_done = now_slot_;
  const auto place =
      std::find_if(lines_.begin(), lines_.end(),
                   [cls](const Line& other) { return other.cls > cls; });
  return *lines_.insert(place, std::move(line));
}

void Oracle::PlaySlot() {
  const Duration end = slot_ * (now_slot_ + 1);
  const Duration from = std::max(charged_until_, slot_ * now_slot_);
  for (size_t r = 0; r < resources_; ++r) {
    room_[r] += capacity_[r] * ToSeconds(end - from);
  }
  charged_until_ = end;
  for (Line& line : lines_) {
    line.blocked = false;
    line.oldest_done = std::max(
        line.oldest_done, now_slot_ + 1 - static_cast<int64_t>(ring_slots_));
  }
  while (Line* line = NextToServe()) Serve(*line);
  ++now_slot_;

  bool waiting = false;
  // Least critical first: what they lose, nobody has to make up for.
  for (size_t i = lines_.size(); i-- > 0;) {
    Expire(lines_[i]);
    waiting = waiting || lines_[i].total.requests > kEpsilon;
  }
  if (!waiting) waiting_since_ = end;
  Report(now_slot_ - static_cast<int64_t>(kept_slots_));
  // Refusals that cost more than there was are paid from the next slot;
  // capacity that nobody needed is gone.
  for (double& room : room_) room = std::min(room, 0.);
}

// The line whose first requests become useless first; among equals the more
// critical one.
Oracle::Line* Oracle::NextToServe() {
  Line* next = nullptr;
  for (Line& line : lines_) {
    if (line.blocked || line.total.requests < kEpsilon) continue;
    while (line.waiting[CellAt(line.earliest)].requests <= 0) {
      if (++line.earliest > now_slot_ + static_cast<int64_t>(ring_slots_)) {
        line.total = Amount{};  // Only rounding was left.
        break;
      }
    }
    if (line.total.requests < kEpsilon) continue;
    if (next == nullptr || line.earliest < next->earliest) next = &line;
  }
  return next;
}

void Oracle::Serve(Line& line) {
  Amount& waiting = line.waiting[CellAt(line.earliest)];
  double* const need = &line.need[CellAt(line.earliest) * resources_];
  double share = 1;
  for (size_t r = 0; r < resources_; ++r) {
    if (need[r] > room_[r]) {
      share = std::min(share, std::max(room_[r], 0.) / need[r]);
    }
  }
  for (size_t r = 0; r < resources_; ++r) room_[r] -= share * need[r];
  const Amount done = Share(waiting, share);
  Add(DoneIn(line, now_slot_), done);
  Subtract(line.total, done);
  if (share < 1) {
    line.blocked = true;
    for (size_t r = 0; r < resources_; ++r) need[r] *= 1 - share;
    waiting = Share(waiting, 1 - share);
  } else {
    waiting = Amount{};
    std::fill_n(need, resources_, 0.);
    ++line.earliest;
  }
}

// Gives up what should have been done in the slot that has just ended.
void Oracle::Expire(Line& line) {
  const int64_t slot = now_slot_ - 1;
  Amount& waiting = line.waiting[CellAt(slot)];
  const Amount lost = std::exchange(waiting, Amount{});
  std::fill_n(&line.need[CellAt(slot) * resources_], resources_, 0.);
  if (lost.requests < kEpsilon) return;
  Subtract(line.total, lost);
  last_lost_ = std::max(last_lost_, lost.arrival());
  listener_.OnIdealLoss(FromSeconds(lost.arrival() * ToSeconds(slot_)),
                        waiting_since_);
  MakeUp(line, lost);
}

// Work that a more critical request lost is taken from the least critical one
// that was served while it waited, the longest ago first.
void Oracle::MakeUp(Line& line, Amount lost) {
  for (size_t i = lines_.size(); i-- > 0 && lines_[i].cls > line.cls;) {
    Line& other = lines_[i];
    if (other.used != line.used || lost.requests < kEpsilon) continue;
    other.oldest_done =
        std::max(other.oldest_done, static_cast<int64_t>(lost.arrival()));
    for (; other.oldest_done < now_slot_ && lost.work > kEpsilon;
         ++other.oldest_done) {
      Amount& done = DoneIn(other, other.oldest_done);
      if (done.work <= 0) continue;
      const double share = std::min(1., lost.work / done.work);
      const Amount taken = Share(done, share);
      const Amount given = Share(lost, taken.work / lost.work);
      Add(DoneIn(line, other.oldest_done), given);
      line.oldest_done = std::min(line.oldest_done, other.oldest_done);
      Subtract(done, taken);
      Subtract(lost, given);
      if (share < 1) break;
    }
  }
}

// What was done in `slot`, unless it came in an overload that was over then:
// its place takes what came since and would have been done later.
void Oracle::Report(int64_t slot) {
  if (slot < 0) return;
  const bool overloaded = last_lost_ >= static_cast<double>(slot);
  for (Line& line : lines_) {
    Amount& done = DoneIn(line, slot);
    if (overloaded || done.requests <= 0 || done.arrival() > last_lost_) {
      continue;
    }
    FreedIn(line, slot) += std::exchange(done, Amount{}).work;
  }
  for (Line& line : lines_) {
    double room = std::exchange(FreedIn(line, slot), 0);
    for (Line& other : lines_) {
      if (room <= kEpsilon) break;
      if (other.used == line.used) DoEarlier(other, slot, room);
    }
  }
  for (Line& line : lines_) {
    const Amount done = std::exchange(DoneIn(line, slot), Amount{});
    if (done.requests > 0) {
      listener_.OnIdeal(slot_ * slot, line.cls, done.work, done.requests);
    }
  }
}

// Moves work of `line` that has come by `slot` there from the slots in which it
// was done, as much as there is room for.
void Oracle::DoEarlier(Line& line, int64_t slot, double& room) {
  const bool overloaded = last_lost_ >= static_cast<double>(slot);
  line.next_early = std::max(line.next_early, slot + 1);
  for (; line.next_early < now_slot_ && room > kEpsilon; ++line.next_early) {
    Amount& done = DoneIn(line, line.next_early);
    // What is going to be forgotten stays where it is.
    if (done.work <= 0 || (!overloaded && done.arrival() <= last_lost_)) {
      continue;
    }
    if (done.arrival() > static_cast<double>(slot + 1)) return;
    const double share = std::min(1., room / done.work);
    const Amount moved = Share(done, share);
    Add(DoneIn(line, slot), moved);
    Subtract(done, moved);
    FreedIn(line, line.next_early) += moved.work;
    room -= moved.work;
    if (share < 1) return;
  }
}

}  // namespace weir::sim
