// UsualLatency follows how long requests of one kind take, and how much that
// scatters, with a memory of about twenty answers.
//
// An answer that was cut off after `t` says "at least t": it raises the mean
// where t is above it, and says nothing where it is below.
//
// State and input only; belongs to whoever steps it.  O(1).

#ifndef WEIR_SIGNAL_USUAL_LATENCY_H_
#define WEIR_SIGNAL_USUAL_LATENCY_H_

#include <cmath>

namespace weir {

class UsualLatency {
 public:
  // Chosen: follows a change within some tens of answers.
  static constexpr double kGain = .05;

  // `latency` in s, above 0.
  void Add(double latency) {
    if (mean_ <= 0) {
      mean_ = latency;
      return;
    }
    const double off = latency - mean_;
    mean_ += off * kGain;
    // Source: [WEST1979], for a constant gain.
    variance_ = (1 - kGain) * (variance_ + kGain * off * off);
  }
  void AddAtLeast(double latency) {
    if (latency > mean_) Add(latency);
  }

  double mean() const { return mean_; }  // s; 0: unknown.
  // What most answers stay below: the mean and one deviation.  Six of seven do
  // where latency is exponential, and nearly all where it is constant.
  double likely() const { return mean_ + std::sqrt(variance_); }

 private:
  double mean_ = 0;
  double variance_ = 0;
};

}  // namespace weir

#endif  // WEIR_SIGNAL_USUAL_LATENCY_H_
