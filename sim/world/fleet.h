// The replicas of one tier, and how callers choose among them.

#ifndef WEIR_SIM_WORLD_FLEET_H_
#define WEIR_SIM_WORLD_FLEET_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "replica.h"
#include "weir/scenario/random.h"
#include "weir/scenario/scenario.h"

namespace weir::sim {

class Fleet {
 public:
  Fleet(Fabric& fabric, size_t tier);

  // Chooses where the next visit goes.  A replica that answered with an error
  // is passed over until it is up again, as by a health check.
  size_t Choose();
  // A visit was sent there; its answer came back.
  void OnSent(size_t replica) { ++open_[replica]; }
  void OnAnswered(size_t replica, bool error);

  Replica& operator[](size_t replica) { return *replicas_[replica]; }
  const Replica& operator[](size_t replica) const {
    return *replicas_[replica];
  }
  size_t size() const { return replicas_.size(); }

 private:
  bool Usable(size_t replica);

  const scenario::Balancer balancer_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<int64_t> open_;      // Sent and not answered, by replica.
  std::vector<int64_t> reported_;  // Load as told by its newest answer.
  std::vector<bool> out_;
  scenario::Random random_;
  size_t next_ = 0;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_WORLD_FLEET_H_
