#include "script.h"

#include <algorithm>

namespace weir::sim {

Prompter::Prompter(const Stage& stage, Metrics& metrics, Script* script)
    : events_(stage.events),
      metrics_(metrics),
      stages_(stage.scenario.tiers.front().stages.size()),
      oracle_(*this, stage.scenario.classes.size(), stage.resources,
              stage.longest_deadline,
              stage.scenario.tiers.front().reject_cost) {
  if (script != nullptr && script->complete()) {
    reading_ = script;
  } else {
    writing_ = script;
    arrivals_.emplace(stage.scenario, stage.seed);
  }
}

std::optional<scenario::Arrival> Prompter::Next() {
  if (reading_ == nullptr) return arrivals_->Next();
  if (next_entry_ == reading_->entries_.size()) return std::nullopt;
  return reading_->entries_[next_entry_++].arrival;
}

bool Prompter::Recall(Operation& operation) {
  if (reading_ == nullptr) return false;
  const auto index = static_cast<size_t>(operation.arrival.number);
  operation.work = reading_->entries_[index].work;
  std::copy_n(&reading_->demands_[index * stages_], stages_,
              operation.demand.begin());
  Read();
  return true;
}

void Prompter::Tell(const Operation& operation, const Need& need,
                    Duration budget) {
  if (writing_ != nullptr) {
    writing_->entries_.push_back({operation.arrival, operation.work});
    writing_->demands_.insert(
        writing_->demands_.end(), operation.demand.begin(),
        operation.demand.begin() + static_cast<std::ptrdiff_t>(stages_));
    if (writing_->entries_.size() > Script::kMostArrivals) {
      *writing_ = Script();
      writing_ = nullptr;
    }
  }
  oracle_.Arrive(operation.arrival.cls, need, budget,
                 events_.now().time_since_epoch());
}

void Prompter::SetCapacity(size_t resource, double capacity) {
  if (reading_ != nullptr) {
    Read();
  } else {
    oracle_.SetCapacity(resource, capacity, events_.now().time_since_epoch());
  }
}

void Prompter::Advance() {
  if (reading_ != nullptr) {
    Read();
  } else {
    oracle_.AdvanceTo(events_.now().time_since_epoch());
  }
}

void Prompter::Close() {
  if (writing_ != nullptr) writing_->complete_ = true;
}

void Prompter::OnIdeal(Duration slot, size_t cls, double work,
                       double requests) {
  metrics_.OnIdeal(slot, cls, work, requests);
  Keep({Now(), static_cast<uint32_t>(slot / oracle_.slot()),
        static_cast<uint16_t>(cls), false, work, requests});
}

void Prompter::OnIdealLoss(Duration arrived, Duration since) {
  metrics_.OnIdealLoss(arrived, since);
  // Instants of a simulation are far below 2^53 ns, a hundred days.
  Keep({Now(), 0, 0, true, static_cast<double>(arrived.count()),
        static_cast<double>(since.count())});
}

void Prompter::Keep(const Script::Verdict& verdict) {
  if (writing_ == nullptr) return;
  writing_->verdicts_.push_back(verdict);
  if (writing_->verdicts_.size() > Script::kMostVerdicts) {
    *writing_ = Script();
    writing_ = nullptr;
  }
}

// The oracle speaks when it is asked for the first time at or after some
// instant; it is asked at the same instants in each run.
void Prompter::Read() {
  const std::vector<Script::Verdict>& verdicts = reading_->verdicts_;
  const int64_t now = Now();
  for (; next_verdict_ < verdicts.size() && verdicts[next_verdict_].at <= now;
       ++next_verdict_) {
    const Script::Verdict& verdict = verdicts[next_verdict_];
    if (verdict.lost) {
      metrics_.OnIdealLoss(Duration(static_cast<int64_t>(verdict.work)),
                           Duration(static_cast<int64_t>(verdict.requests)));
    } else {
      metrics_.OnIdeal(oracle_.slot() * verdict.slot, verdict.cls, verdict.work,
                       verdict.requests);
    }
  }
}

}  // namespace weir::sim
