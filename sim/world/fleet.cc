#include "fleet.h"

namespace weir::sim {

using scenario::Balancer;

Fleet::Fleet(Fabric& fabric, size_t tier)
    : balancer_(fabric.scenario.tiers[tier].balancer),
      random_(fabric.seed, scenario::kBalance + tier) {
  const auto count = static_cast<size_t>(fabric.scenario.tiers[tier].replicas);
  for (size_t i = 0; i < count; ++i) {
    replicas_.push_back(std::make_unique<Replica>(fabric, tier, i));
  }
  open_.resize(count);
  reported_.resize(count);
  out_.resize(count);
}

bool Fleet::Usable(size_t replica) {
  if (out_[replica] && replicas_[replica]->up()) {
    out_[replica] = false;
    reported_[replica] = 0;
  }
  return !out_[replica];
}

size_t Fleet::Choose() {
  const size_t count = replicas_.size();
  if (count == 1) return 0;
  const size_t start = next_;
  next_ = (next_ + 1) % count;
  if (balancer_ == Balancer::kTwoChoices) {
    const size_t a = random_.Below(count);
    const size_t b = (a + 1 + random_.Below(count - 1)) % count;
    const bool a_usable = Usable(a);
    if (a_usable && Usable(b)) return open_[b] < open_[a] ? b : a;
    if (a_usable) return a;
    if (Usable(b)) return b;
    // Both are gone: whoever comes first, as below.
  }
  size_t best = count;
  for (size_t i = 0; i < count; ++i) {
    const size_t replica = (start + i) % count;
    if (!Usable(replica)) continue;
    if (balancer_ != Balancer::kLeastLoaded) {
      next_ = (replica + 1) % count;
      return replica;
    }
    if (best == count || reported_[replica] < reported_[best]) best = replica;
  }
  return best == count ? start : best;
}

void Fleet::OnAnswered(size_t replica, bool error) {
  --open_[replica];
  reported_[replica] = replicas_[replica]->load();
  if (error && !replicas_[replica]->up()) out_[replica] = true;
}

}  // namespace weir::sim
