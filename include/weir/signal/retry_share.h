// RetryShare tells from the attempts that requests bring whether retries
// abound.
//
// It is the histogram of attempts in two bins, first or later, with a memory of
// two seconds.  When most callers are refused, most arrivals are retries; when
// one task of many is overloaded, few are, since a retry goes elsewhere:
//
//   share = retries / arrivals, both decaying
//   abound from share > 0.15 on, until share < 0.1; not below 50 arrivals
//
// A caller that keeps to a budget of one retry in ten requests makes one in
// eleven of what arrives a retry, 0.09.  More than half as much again means
// that budgets are spent or were never there, so that trying again anywhere
// adds load and no answers.
//
// Source: [SRE2016] chapter 21, "Deciding to Retry": servers keep a histogram
// of attempts and answer "overloaded; don't retry" when it shows many.  The
// bounds are ours; the budget of a tenth is the book's.
//
// State and input only; belongs to whoever steps it.  O(1).

#ifndef WEIR_SIGNAL_RETRY_SHARE_H_
#define WEIR_SIGNAL_RETRY_SHARE_H_

#include <cmath>
#include <cstdint>

#include "weir/time.h"

namespace weir {

class RetryShare {
 public:
  static constexpr double kAbound = .15;
  static constexpr double kOver = .1;
  // Chosen: below it one retry more or less is two hundredths.
  static constexpr double kFewest = 50;
  // Chosen: a backoff or two, and long enough to count some at 50/s.
  static constexpr double kMemory = 2;  // s

  // Takes what arrived since the last call.  If `now` steps back, no time has
  // passed.
  void Add(int64_t arrivals, int64_t retries, Instant now) {
    const double seconds = now > at_ ? ToSeconds(now - at_) : 0;
    if (now > at_) at_ = now;
    const double keep = std::exp(-seconds / kMemory);
    arrivals_ = arrivals_ * keep + static_cast<double>(arrivals);
    retries_ = retries_ * keep + static_cast<double>(retries);
    abound_ = arrivals_ >= kFewest && share() > (abound_ ? kOver : kAbound);
  }

  double share() const { return arrivals_ > 0 ? retries_ / arrivals_ : 0; }
  bool abound() const { return abound_; }

 private:
  double arrivals_ = 0;
  double retries_ = 0;
  Instant at_{};
  bool abound_ = false;
};

}  // namespace weir

#endif  // WEIR_SIGNAL_RETRY_SHARE_H_
