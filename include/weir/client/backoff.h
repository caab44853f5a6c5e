// When to try again: exponential periods, the wait random in each.
//
// Source: [SRE2016] chapter 22, randomised exponential backoff (3, 6, 12 s are
// `first` = 3 s and `factor` = 2); [BROOKER2015], full jitter: a wait anywhere
// in the period spreads a crowd best for the work it makes.

#ifndef WEIR_CLIENT_BACKOFF_H_
#define WEIR_CLIENT_BACKOFF_H_

#include <chrono>
#include <cstdint>
#include <optional>

#include "weir/result.h"
#include "weir/time.h"

namespace weir {

struct Backoff {
  // Chosen: some ten times what a call in a data centre takes.
  Duration first = std::chrono::milliseconds(100);  // > 0.
  double factor = 2;                                // [1, 10].
  Duration ceiling = std::chrono::seconds(10);      // >= first.

  // The period before retry `retry`, from 0 on.
  Duration Period(int32_t retry) const;

  // The wait before it: uniform in [0, Period()).
  Duration Wait(int32_t retry, uint64_t draw) const;

  // The wait when the server said when it expects room: never less, and more
  // by up to one first period, so that those who were told the same do not all
  // come back at once.
  Duration WaitFor(Duration told, uint64_t draw) const;

  std::optional<Error> Check() const;
  bool operator==(const Backoff&) const = default;
};

}  // namespace weir

#endif  // WEIR_CLIENT_BACKOFF_H_
