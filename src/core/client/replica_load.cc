#include "weir/client/replica_load.h"

#include <algorithm>

#include "../relaxed.h"

namespace weir {

void ReplicaLoad::OnEnded(AnswerKind kind, Instant now) {
  running_.fetch_sub(1, kRelaxed);
  // A caller that left says nothing about the replica.
  if (kind != AnswerKind::kOk && kind != AnswerKind::kCancelled) {
    failed_.Add(1, now);
  }
}

double ReplicaLoad::Load(Instant now) const {
  return running_.load(kRelaxed) + failed_.Get(now);
}

double ReplicaLoad::Share(Instant now) const {
  if (now - born_ >= slow_start_) return 1;
  return std::clamp(ToSeconds(now - born_) / ToSeconds(slow_start_),
                    kFirstShare, 1.0);
}

}  // namespace weir
