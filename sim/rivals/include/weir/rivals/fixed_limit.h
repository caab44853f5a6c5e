// A limit that somebody tuned by hand, and a limit that stopped learning.
//
// FixedLimit is the baseline that matters: the operator's number, right for
// the day it was measured.  With the least and the largest number it is also
// two of the mutants a scenario must fail, or it proves nothing; FrozenLimit
// is the third.

#ifndef WEIR_RIVALS_FIXED_LIMIT_H_
#define WEIR_RIVALS_FIXED_LIMIT_H_

#include <cstdint>
#include <optional>

#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class FixedLimit final : public Limiter {
 public:
  explicit FixedLimit(int32_t limit) : limit_(limit) {}

  int32_t Limit(Instant) override { return limit_; }

 private:
  int32_t limit_;
};

// The limit of `inner` as it is `thaw` after the first event, for ever.
class FrozenLimit final : public Limiter, public Learner {
 public:
  FrozenLimit(Rival inner, Duration thaw)
      : inner_(std::move(inner)), thaw_(thaw) {}

  int32_t Limit(Instant now) override;
  void Learn(const Finish& finish) override;

 private:
  bool Frozen(Instant now);

  Rival inner_;
  Duration thaw_;
  std::optional<Instant> freezes_at_;
  std::optional<int32_t> frozen_;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_FIXED_LIMIT_H_
