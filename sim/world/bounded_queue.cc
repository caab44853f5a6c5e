#include "bounded_queue.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weir::sim {

namespace {

// All constants: docs/algorithms/law.md, section on constants.
constexpr int64_t kCompletions = 32;
constexpr int64_t kArrivals = 32;
constexpr Duration kArrivalsTime = std::chrono::milliseconds(5);
constexpr double kDemandMemory = 1;  // Seconds.
constexpr double kTarget = 8;
constexpr double kLeastTarget = 4;
constexpr double kCalm = 0.9;

}  // namespace

void BoundedQueue::OnArrival(Instant now) {
  ++arrivals_;
  const Duration elapsed = now - arrivals_since_;
  if (arrivals_ < kArrivals && elapsed < kArrivalsTime) return;
  const double seconds = ToSeconds(elapsed);
  if (seconds > 0) {
    const double share = seconds / (kDemandMemory + seconds);
    demand_ += share * (static_cast<double>(arrivals_) / seconds - demand_);
  }
  arrivals_ = 0;
  arrivals_since_ = now;
}

void BoundedQueue::OnFinish(Duration latency, Instant now) {
  latency_ = latency_ == 0 ? ToSeconds(latency)
                           : latency_ + .05 * (ToSeconds(latency) - latency_);
  if (size_ == 0) {
    always_waiting_ = false;
    shedding_ = false;
  }
  if (demand_ < kCalm * capacity_) shedding_ = false;
  if (++completions_ < kCompletions) return;
  const double seconds = ToSeconds(now - completions_since_);
  if (seconds > 0) {
    const double rate = static_cast<double>(completions_) / seconds;
    if (always_waiting_ && capacity_ > 0) {
      capacity_ += (rate - capacity_) / 4;
    } else {
      capacity_ = std::max(capacity_, rate);
    }
  }
  completions_ = 0;
  completions_since_ = now;
  always_waiting_ = true;
}

double BoundedQueue::Target() const {
  return std::max(kLeastTarget,
                  std::min(kTarget * std::sqrt(capacity_ * latency_),
                           capacity_ * deadline_ / 5));
}

double BoundedQueue::Bound() const {
  if (capacity_ == 0) return std::numeric_limits<double>::infinity();
  return shedding_ ? Target() : std::max(1., capacity_ * deadline_ / 2);
}

Visit* BoundedQueue::Push(Visit& visit, Instant) {
  const auto size = static_cast<double>(size_);
  if (kind_ == Kind::kPriority && capacity_ > 0 && size > Target() &&
      demand_ > capacity_) {
    shedding_ = true;
  }
  if (size + 1 > Bound()) {
    Visit* const victim = LeastCritical();
    if (kind_ == Kind::kFifo || victim == nullptr) return &visit;
    const Criticality theirs = victim->request.criticality;
    const Criticality own = visit.request.criticality;
    if (theirs < own || (theirs == own && !shedding_)) return &visit;
    Remove(*victim);
    return victim;
  }
  Line& line = lines_[LineOf(visit)];
  visit.next_waiting = nullptr;
  visit.previous_waiting = line.last;
  (line.last != nullptr ? line.last->next_waiting : line.first) = &visit;
  line.last = &visit;
  ++size_;
  return nullptr;
}

Visit* BoundedQueue::Next(bool newest) const {
  for (const Line& line : lines_) {
    if (line.first != nullptr) return newest ? line.last : line.first;
  }
  return nullptr;
}

Visit* BoundedQueue::LeastCritical() const {
  for (size_t i = lines_.size(); i-- > 0;) {
    if (lines_[i].first != nullptr) return lines_[i].first;
  }
  return nullptr;
}

void BoundedQueue::Remove(Visit& visit) {
  Line& line = lines_[LineOf(visit)];
  (visit.previous_waiting != nullptr ? visit.previous_waiting->next_waiting
                                     : line.first) = visit.next_waiting;
  (visit.next_waiting != nullptr ? visit.next_waiting->previous_waiting
                                 : line.last) = visit.previous_waiting;
  --size_;
}

Visit* BoundedQueue::NextHopeless(Instant now) const {
  const Duration latency =
      kind_ == Kind::kFifo ? Duration{} : FromSeconds(latency_);
  for (const Line& line : lines_) {
    if (line.first != nullptr && line.first->request.deadline < kNever &&
        now + latency >= line.first->request.deadline) {
      return line.first;
    }
  }
  return nullptr;
}

Instant BoundedQueue::NextDeadline() const {
  Instant next = kNever;
  for (const Line& line : lines_) {
    if (line.first != nullptr) {
      next = std::min(next, line.first->request.deadline);
    }
  }
  return next;
}

Duration BoundedQueue::HeadDelay(Instant now) const {
  Duration longest{};
  for (const Line& line : lines_) {
    if (line.first != nullptr) {
      longest = std::max(longest, now - line.first->request.arrived);
    }
  }
  return longest;
}

}  // namespace weir::sim
