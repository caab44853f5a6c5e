#include "weir/rivals/fixed_limit.h"

namespace weir::rivals {

int32_t FrozenLimit::Limit(Instant now) {
  return Frozen(now) ? *frozen_ : inner_.Limit(now);
}

void FrozenLimit::Learn(const Finish& finish) {
  if (!Frozen(finish.now)) inner_.Learn(finish);
}

bool FrozenLimit::Frozen(Instant now) {
  if (frozen_) return true;
  if (!freezes_at_) freezes_at_ = now + thaw_;
  if (now < *freezes_at_) return false;
  frozen_ = inner_.Limit(*freezes_at_);
  return true;
}

}  // namespace weir::rivals
