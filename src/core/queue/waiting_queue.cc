#include "weir/queue/waiting_queue.h"

#include <bit>

namespace weir {

Criticality WaitingQueue::MostCritical() const {
  size_t i = 0;
  while (classes_[i].size == 0) ++i;
  return static_cast<Criticality>(i);
}

Criticality WaitingQueue::LeastCritical() const {
  size_t i = kCriticalities - 1;
  while (classes_[i].size == 0) --i;
  return static_cast<Criticality>(i);
}

void WaitingQueue::Append(List& list, Waiter& waiter,
                          Waiter::Link Waiter::*link) {
  (waiter.*link).next = nullptr;
  (waiter.*link).previous = list.last;
  (list.last != nullptr ? (list.last->*link).next : list.first) = &waiter;
  list.last = &waiter;
}

void WaitingQueue::Take(List& list, Waiter& waiter,
                        Waiter::Link Waiter::*link) {
  Waiter* const next = (waiter.*link).next;
  Waiter* const previous = (waiter.*link).previous;
  (previous != nullptr ? (previous->*link).next : list.first) = next;
  (next != nullptr ? (next->*link).previous : list.last) = previous;
  waiter.*link = {};
}

void WaitingQueue::Push(Waiter& waiter) {
  Class& c = classes_[Index(waiter.request_.criticality)];
  Append(c.all, waiter, &Waiter::by_class_);
  Append(c.by_rank[waiter.rank_], waiter, &Waiter::by_rank_);
  c.used_ranks |= uint64_t{1} << waiter.rank_;
  Append(c.by_row[waiter.row_], waiter, &Waiter::by_row_);
  c.used_rows |= uint64_t{1} << waiter.row_;
  ++c.size;
  ++size_;
  waiter.child_ = waiter.sibling_ = waiter.left_ = nullptr;
  if (waiter.expiry_ != kNever) heap_ = Meld(heap_, &waiter);
}

void WaitingQueue::Remove(Waiter& waiter) {
  Class& c = classes_[Index(waiter.request_.criticality)];
  Take(c.all, waiter, &Waiter::by_class_);
  List& level = c.by_rank[waiter.rank_];
  Take(level, waiter, &Waiter::by_rank_);
  if (level.first == nullptr) c.used_ranks &= ~(uint64_t{1} << waiter.rank_);
  List& row = c.by_row[waiter.row_];
  Take(row, waiter, &Waiter::by_row_);
  if (row.first == nullptr) c.used_rows &= ~(uint64_t{1} << waiter.row_);
  --c.size;
  --size_;
  if (waiter.expiry_ != kNever) HeapRemove(waiter);
}

Waiter* WaitingQueue::NextToRun(bool overloaded, uint64_t blocked) const {
  if (empty()) return nullptr;
  const Criticality most = MostCritical();
  const Class& c = classes_[Index(most)];
  Waiter* const next =
      overloaded && most == LeastCritical()
          ? c.by_rank[static_cast<size_t>(std::countr_zero(c.used_ranks))].first
          : c.all.first;
  if ((blocked >> next->row_ & 1) == 0) return next;
  Waiter* oldest = nullptr;
  for (uint64_t rows = c.used_rows & ~blocked; rows != 0; rows &= rows - 1) {
    Waiter* const first =
        c.by_row[static_cast<size_t>(std::countr_zero(rows))].first;
    if (oldest == nullptr ||
        first->request_.arrived < oldest->request_.arrived) {
      oldest = first;
    }
  }
  return oldest;
}

Waiter* WaitingQueue::NextToLeave() const {
  if (empty()) return nullptr;
  const Class& c = classes_[Index(LeastCritical())];
  return c.by_rank[static_cast<size_t>(std::bit_width(c.used_ranks)) - 1].first;
}

Waiter* WaitingQueue::Next(const Waiter* waiter) const {
  size_t next_class = 0;
  if (waiter != nullptr) {
    if (waiter->by_class_.next != nullptr) return waiter->by_class_.next;
    next_class = Index(waiter->request_.criticality) + 1;
  }
  for (; next_class < kCriticalities; ++next_class) {
    if (classes_[next_class].size > 0) return classes_[next_class].all.first;
  }
  return nullptr;
}

// The later of two heaps becomes the first child of the other.
Waiter* WaitingQueue::Meld(Waiter* a, Waiter* b) {
  if (a == nullptr) return b;
  if (b == nullptr) return a;
  if (b->expiry_ < a->expiry_) std::swap(a, b);
  b->left_ = a;
  b->sibling_ = a->child_;
  if (a->child_ != nullptr) a->child_->left_ = b;
  a->child_ = b;
  return a;
}

// Pairs neighbours from left to right, then melds the pairs from right to
// left; iterative, since a list of children can be as long as the queue.
Waiter* WaitingQueue::MeldChildren(Waiter* first) {
  Waiter* pairs = nullptr;  // The last pair first, linked by sibling_.
  while (first != nullptr) {
    Waiter* const a = first;
    Waiter* const b = a->sibling_;
    first = b != nullptr ? b->sibling_ : nullptr;
    a->sibling_ = a->left_ = nullptr;
    if (b != nullptr) b->sibling_ = b->left_ = nullptr;
    Waiter* const pair = Meld(a, b);
    pair->sibling_ = pairs;
    pairs = pair;
  }
  Waiter* root = nullptr;
  while (pairs != nullptr) {
    Waiter* const next = pairs->sibling_;
    pairs->sibling_ = nullptr;
    root = Meld(root, pairs);
    pairs = next;
  }
  return root;
}

void WaitingQueue::HeapRemove(Waiter& waiter) {
  Waiter* const rest = MeldChildren(waiter.child_);
  if (heap_ == &waiter) {
    heap_ = rest;
  } else {
    Waiter* const left = waiter.left_;
    (left->child_ == &waiter ? left->child_ : left->sibling_) = waiter.sibling_;
    if (waiter.sibling_ != nullptr) waiter.sibling_->left_ = left;
    heap_ = Meld(heap_, rest);
  }
  waiter.child_ = waiter.sibling_ = waiter.left_ = nullptr;
}

}  // namespace weir
