// One server: its gate, its cores, its locks and pools, and how they change.

#ifndef WEIR_SIM_WORLD_REPLICA_H_
#define WEIR_SIM_WORLD_REPLICA_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fabric.h"
#include "weir/client/overload_level.h"
#include "weir/scenario/random.h"
#include "weir/scenario/scenario.h"
#include "weir/sim/gate.h"
#include "weir/sim/processor.h"
#include "weir/sim/visit.h"

namespace weir::sim {

class Replica final : public GateHost,
                      private Processor::Owner,
                      private Handler {
 public:
  // `fabric` must outlive it.
  Replica(Fabric& fabric, size_t tier, size_t index);

  // A visit arrives.
  void Receive(Visit& visit);
  // All that the visit called has answered.
  void Resume(Visit& visit);
  // Its caller gave up, and said so.
  void Abandon(Visit& visit);

  // What the oracle has of it: workers by speed, 0 when it stands or is down.
  double cpu_capacity() const;
  // Whether its locks and pools move.
  bool moves() const { return up_ && stopped_ == 0; }
  bool up() const { return up_; }
  // Visits here, wherever they are.
  int64_t load() const { return load_; }
  double limit() const { return gate_ ? gate_->limit() : 0; }
  int64_t waiting() const { return gate_ ? gate_->waiting() : 0; }

  Duration cpu_busy() const override { return cpu_.busy(); }
  int32_t workers() const override { return cpu_.workers(); }
  int32_t cpu_waiting() const override {
    return static_cast<int32_t>(cpu_.waiting());
  }
  int32_t cpu_load() const override {
    return static_cast<int32_t>(cpu_.waiting() + cpu_.in_service());
  }
  Duration cpu_queue_delay() const override { return cpu_.head_delay(); }

 private:
  enum class Event : uint64_t {
    kIo,
    kFailed,
    kDeadline,
    kProxyTimeout,
    kChange,
    kPause,
    kResume
  };

  void OnEvent(Instant now, uint64_t arg) override;
  void OnWorkDone(Work& work, Instant now) override;
  bool OnWorkTurn(Work& work, Instant since, Instant now) override;
  void RunWaiting(Visit& visit) override;
  void RefuseWaiting(Visit& visit, const Decision& decision) override;

  void Run(Visit& visit);
  void RunStage(Visit& visit);
  void Refuse(Visit& visit, const Decision& decision);
  void Complete(Visit& visit, Reply reply);
  void Leave(Visit& visit);
  void TellEnd(Visit& visit, Outcome outcome);
  void GiveUp(Visit& visit);
  void Drop(Visit& visit, Reply reply, Outcome outcome);
  void Log(const Visit& visit, const Decision& decision);
  void ApplyChanges();
  void SchedulePause(size_t pause, Duration start);
  void SetSpeeds();
  void MakeGate();
  Timer Later(Instant when, Event event, uint64_t index);

  Fabric& fabric_;
  const scenario::Tier& tier_;
  const size_t tier_index_;
  const size_t index_;
  Processor cpu_;
  std::vector<std::unique_ptr<Processor>> stations_;  // By stage; null: none.
  std::unique_ptr<Gate> gate_;
  LevelMeter level_;  // Of what the gate decided.
  std::vector<scenario::Random> pauses_;
  double speed_ = 1;
  int stopped_ = 0;  // Pauses in force.
  bool up_ = true;
  int64_t load_ = 0;
  Visit* first_ = nullptr;  // Of all visits here.
};

}  // namespace weir::sim

#endif  // WEIR_SIM_WORLD_REPLICA_H_
