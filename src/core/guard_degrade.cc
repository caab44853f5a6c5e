// Guard: what is answered cheaper than in full, and why.

#include "relaxed.h"
#include "weir/guard.h"

namespace weir {
namespace {

// How often the ladders are looked at.  Chosen: a tenth of their memory.
constexpr Duration kLadderInterval = std::chrono::milliseconds(100);

DegradeLadder::Levels LevelsOf(const Resource& resource) {
  DegradeLadder::Levels levels{};
  for (size_t i = 0; i < resource.degrade.size(); ++i) {
    levels[i] = resource.degrade[i].excess;
  }
  return levels;
}

}  // namespace

// An operator's word stands above the ladder's, and the higher of that and a
// drill counts.
void Guard::Degrade(const Request& request, Instant now, Admission& admission) {
  const Resource& resource = policy_->resources[request.resource];
  if (resource.degrade.empty() || !Enforces(request, Stage::kSwitch)) return;
  const uint16_t row = rows_[request.resource];
  const Region::Resource& shared = region_.resources[row];
  uint8_t level = shared.level.load(kRelaxed);
  const Switch set = Switch::Unpack(shared.by_hand.load(kRelaxed));
  if (set.action == Switch::Action::kDegrade && set.ActiveAt(now)) {
    level = set.level;
  }
  admission.permit.data_.drill = SideOf(request, row, now, level);
  admission.decision.degrade =
      std::min(level, static_cast<uint8_t>(resource.degrade.size()));
  if (admission.decision.degrade > 0) {
    Count(ClassCounter::degraded_total, request.criticality);
  }
}

// Raises `level` to that of the drill, if it takes this request.
DrillSide Guard::SideOf(const Request& request, uint16_t row, Instant now,
                        uint8_t& level) {
  uint64_t word = region_.flags.drill.load(kRelaxed);
  if (word == 0) return DrillSide::kNone;
  const Drill drill = Drill::Unpack(word);
  if (drill.row != row || !drill.ActiveAt(now)) return DrillSide::kNone;
  // Never in a real overload: whoever meets both ends the drill for all.
  if (region_.flags.overloaded.load(kRelaxed) != 0) {
    if (region_.flags.drill.compare_exchange_strong(word, 0)) {
      Count(Counter::drills_stopped_total);
    }
    return DrillSide::kNone;
  }
  const DrillSide side =
      drill.Takes(request) ? DrillSide::kDrilled : DrillSide::kControl;
  if (side == DrillSide::kDrilled) level = std::max(level, drill.level);
  Increment(shard_.drilled[static_cast<size_t>(side)].started);
  return side;
}

void Guard::CountDrilled(const Permit::Data& permit, Outcome outcome,
                         Instant now) {
  Region::Drilled& count = shard_.drilled[static_cast<size_t>(permit.drill)];
  if (outcome >= Outcome::kCancelled) return Increment(count.other);
  const auto us = static_cast<uint64_t>((now - permit.arrived).count() / 1000);
  count.latency_us.store(count.latency_us.load(kRelaxed) + us, kRelaxed);
  if (outcome != Outcome::kOk) return Increment(count.error);
  Increment(now > permit.deadline ? count.late : count.ok);
}

// For the holder of the turn.
void Guard::StepLadders(const LimitLaw& law, Instant now) {
  if (now - last_ladders_ < kLadderInterval) return;
  last_ladders_ = now;
  const DegradeLadder::Load load{
      .overloaded = region_.flags.overloaded.load(kRelaxed) != 0,
      .demand = law.demand.rate(),
      .capacity = law.capacity};
  for (size_t i = 0; i < policy_->resources.size(); ++i) {
    const Resource& resource = policy_->resources[i];
    if (resource.degrade.empty()) continue;
    Region::Resource& row = region_.resources[rows_[i]];
    const uint8_t before = row.ladder.level();
    const uint8_t level = row.ladder.Step(LevelsOf(resource), load, now);
    if (level == before) continue;
    row.level.store(level, kRelaxed);
    Count(Counter::degrade_steps_total);
  }
}

}  // namespace weir
