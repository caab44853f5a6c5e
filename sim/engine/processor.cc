#include "weir/sim/processor.h"

#include <algorithm>
#include <utility>

namespace weir::sim {

namespace {

__extension__ using Wide = __int128;

}  // namespace

Processor::Processor(EventQueue& events, Owner& owner, Discipline discipline,
                     int32_t workers)
    : events_(events),
      owner_(owner),
      discipline_(discipline),
      workers_(workers) {}

void Processor::Add(Work& work, Duration demand, bool urgent) {
  work.demand_ = demand;
  work.urgent_ = urgent;
  work.since_ = events_.now();
  const bool free = discipline_ == Discipline::kSharing ||
                    heap_.size() < static_cast<size_t>(workers_);
  if (free && (waiting_count_ == 0 || urgent)) {
    if (!owner_.OnWorkTurn(work, work.since_, work.since_)) return;
    Start(work);
    Reschedule();
    return;
  }
  work.state_ = Work::State::kWaiting;
  Line& line = LineOf(work);
  work.previous_ = line.last;
  work.next_ = nullptr;
  (line.last != nullptr ? line.last->next_ : line.first) = &work;
  line.last = &work;
  ++waiting_count_;
}

Duration Processor::Remove(Work& work) {
  switch (std::exchange(work.state_, Work::State::kIdle)) {
    case Work::State::kIdle:
      return {};
    case Work::State::kWaiting:
      Unlink(work);
      return {};
    case Work::State::kInService: {
      Advance();
      const int64_t left = std::max<int64_t>(work.finish_ - clock_, 0);
      HeapErase(work.heap_index_);
      StartWaiting();
      Reschedule();
      return work.demand_ - Duration(left >> kFraction);
    }
  }
  return {};
}

void Processor::SetWorkers(int32_t workers) {
  Advance();
  workers_ = workers;
  StartWaiting();
  Reschedule();
}

void Processor::SetSpeed(double speed) {
  Advance();
  speed_ = static_cast<int64_t>(speed * (1 << kFraction) + 0.5);
  Reschedule();
}

Duration Processor::busy() const {
  return busy_ + (events_.now() - clock_at_) * BusyWorkers();
}

void Processor::OnEvent(Instant now, uint64_t) {
  Advance();
  // All that is due leaves before the next ones start, so that work of zero
  // demand, and equal finishes, cost no further events.
  while (!heap_.empty() && heap_.front()->finish_ <= clock_) {
    Work& work = *heap_.front();
    HeapErase(0);
    work.state_ = Work::State::kIdle;
    owner_.OnWorkDone(work, now);
  }
  StartWaiting();
  Reschedule();
}

int64_t Processor::BusyWorkers() const {
  return std::min<int64_t>(static_cast<int64_t>(heap_.size()),
                           discipline_ == Discipline::kSharing
                               ? workers_
                               : static_cast<int64_t>(heap_.size()));
}

// Brings the virtual clock to now.
void Processor::Advance() {
  const Instant now = events_.now();
  const int64_t elapsed = (now - clock_at_).count();
  if (elapsed == 0) return;
  clock_at_ = now;
  if (heap_.empty()) return;
  busy_ += Duration(elapsed) * BusyWorkers();
  if (discipline_ == Discipline::kFcfs) {
    clock_ += elapsed * speed_;
  } else {
    clock_ += static_cast<int64_t>(Wide{elapsed} * speed_ * BusyWorkers() /
                                   static_cast<int64_t>(heap_.size()));
  }
}

void Processor::Start(Work& work) {
  Advance();
  work.state_ = Work::State::kInService;
  work.since_ = events_.now();
  work.finish_ = clock_ + (work.demand_.count() << kFraction);
  work.order_ = order_++;
  heap_.push_back(&work);
  Place(heap_.size() - 1, work);
  SiftUp(heap_.size() - 1);
}

void Processor::StartWaiting() {
  while (waiting_count_ > 0 && heap_.size() < static_cast<size_t>(workers_)) {
    Work& work = urgent_.first != nullptr ? *urgent_.first : *line_.first;
    Unlink(work);
    work.state_ = Work::State::kIdle;
    if (owner_.OnWorkTurn(work, work.since_, events_.now())) Start(work);
  }
}

// Puts the timer where the first piece in service ends.
void Processor::Reschedule() {
  if (heap_.empty()) {
    clock_ = 0;  // Keeps the clock small; nothing refers to it now.
    events_.Cancel(timer_);
    return;
  }
  const int64_t sharers = discipline_ == Discipline::kSharing
                              ? static_cast<int64_t>(heap_.size())
                              : 1;
  const int64_t servers =
      discipline_ == Discipline::kSharing ? BusyWorkers() : 1;
  const int64_t rate = speed_ * servers;
  if (rate == 0) {
    events_.Cancel(timer_);
    return;
  }
  const int64_t left = std::max<int64_t>(heap_.front()->finish_ - clock_, 0);
  const int64_t wait =
      sharers == 1
          ? (left + rate - 1) / rate
          : static_cast<int64_t>((Wide{left} * sharers + rate - 1) / rate);
  const Instant due = clock_at_ + Duration(wait);
  if (events_.Pending(timer_) && due == timer_at_) return;
  events_.Cancel(timer_);
  timer_ = events_.At(due, *this);
  timer_at_ = due;
}

void Processor::Unlink(Work& work) {
  Line& line = LineOf(work);
  (work.previous_ != nullptr ? work.previous_->next_ : line.first) = work.next_;
  (work.next_ != nullptr ? work.next_->previous_ : line.last) = work.previous_;
  --waiting_count_;
}

bool Processor::Before(const Work& a, const Work& b) {
  return a.finish_ != b.finish_ ? a.finish_ < b.finish_ : a.order_ < b.order_;
}

void Processor::Place(size_t index, Work& work) {
  heap_[index] = &work;
  work.heap_index_ = index;
}

void Processor::SiftUp(size_t index) {
  Work& work = *heap_[index];
  while (index > 0) {
    const size_t parent = (index - 1) / 2;
    if (!Before(work, *heap_[parent])) break;
    Place(index, *heap_[parent]);
    index = parent;
  }
  Place(index, work);
}

void Processor::SiftDown(size_t index) {
  Work& work = *heap_[index];
  for (;;) {
    size_t child = 2 * index + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && Before(*heap_[child + 1], *heap_[child])) {
      ++child;
    }
    if (!Before(*heap_[child], work)) break;
    Place(index, *heap_[child]);
    index = child;
  }
  Place(index, work);
}

void Processor::HeapErase(size_t index) {
  Work& last = *heap_.back();
  heap_.pop_back();
  if (index == heap_.size()) return;
  Place(index, last);
  SiftUp(index);
  SiftDown(last.heap_index_);
}

}  // namespace weir::sim
