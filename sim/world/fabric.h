// What the parts of a world share, and the roads between them.

#ifndef WEIR_SIM_WORLD_FABRIC_H_
#define WEIR_SIM_WORLD_FABRIC_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "guard_caller.h"
#include "metrics.h"
#include "oracle.h"
#include "script.h"
#include "weir/scenario/scenario.h"
#include "weir/sim/event_queue.h"
#include "weir/sim/gate.h"
#include "weir/sim/visit.h"
#include "weir/sim/world.h"

namespace weir::sim {

class Fleet;

// Where answers to first-tier visits go.
class EntryCaller {
 public:
  virtual void OnAnswer(Visit& visit) = 0;

 protected:
  ~EntryCaller() = default;
};

class Fabric final : private Handler {
 public:
  Fabric(const scenario::Scenario& scenario, const Algorithm& algorithm,
         const RunOptions& options);
  ~Fabric();

  // Sends a visit, whose tier is set, to one of that tier's replicas.
  void Send(Visit& visit);
  // The replica is done with the visit, whose ending is set: brings the answer
  // back to whoever made it, and the visit back to the pool.
  void Answer(Visit& visit);

  // Answers with an error in place of a visit of the entry tier, whose work
  // goes on.
  void AnswerFor(Visit& visit);

  // Its caller does not wait for the visit any more.
  void Abandon(Visit& visit);

  // The calls that `parent`'s tier makes, one after another or at once.
  // False when there is none left and none open: the visit can be answered.
  bool CallNext(Visit& parent);

  // SplitMix64 what each stage takes of attempt `number` at this instant.
  Demand DrawDemand(size_t tier, uint64_t number, uint16_t route) const;
  // The same of the stage that `visit` is in, as drawn when it was sent; most
  // attempts of a storm are refused and need none.
  Duration DemandOf(const Visit& visit);
  // All that a request which demands so much of a tier's own stages will ask
  // of the whole world, calls included.
  Need Foresee(size_t tier, uint64_t number, uint16_t route,
               const Demand& demand) const;

  // Seconds of queueing stages that a request takes on average, calls
  // included, at this instant.
  double MeanWork(size_t tier) const;

  // A replica can do more or less from now on.
  void CapacityChanged();

  // Whether the callers of a tier carry a client guard.
  bool Guarded(size_t tier) const;

  // Sums over all replicas of the entry tier.
  double limit() const;
  int64_t waiting() const;

  const scenario::Scenario& scenario;
  const Algorithm& algorithm;
  const uint64_t seed;
  DecisionLog* const log;
  EventQueue events;
  Pool<Visit> visits;
  Pool<Operation> operations;
  Metrics metrics;
  Prompter prompter;
  std::vector<std::unique_ptr<Fleet>> fleets;
  EntryCaller* entry = nullptr;

 private:
  void OnEvent(Instant now, uint64_t arg) override;
  void Deliver(Visit& visit);
  void MakeCall(Visit& parent, size_t tier, uint32_t ordinal);
  void SendCall(Visit& parent, Visit& child);
  void OnChildAnswer(Visit& parent, Visit& child);
  void EndCall(Visit& parent, Visit& child);
  GuardCaller& CallerOf(const Visit& parent, size_t tier);
  Duration DrawStage(size_t tier, size_t stage, uint64_t number, uint16_t route,
                     Instant at) const;
  Duration DrawDelay(size_t tier, uint64_t number, uint64_t way) const;

  // Index of each stage's resource in the oracle; kNone for io.
  std::vector<std::vector<uint32_t>> resources_;
  // Client guards of replicas, by what they call and who they are.
  std::map<std::array<size_t, 3>, std::unique_ptr<GuardCaller>> callers_;
  std::map<std::array<size_t, 2>, std::shared_ptr<RetryAllowance>> allowances_;
  std::vector<bool> varies_;  // Whether the tier's stages ever change.
};

}  // namespace weir::sim

#endif  // WEIR_SIM_WORLD_FABRIC_H_
