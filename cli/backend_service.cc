#include "backend_service.h"

#include <algorithm>
#include <limits>

#include "weir/scenario/capacity.h"
#include "weir/scenario/service_time.h"

namespace weir::cli {
namespace {

using scenario::Change;
using scenario::Pause;
using scenario::Stage;

constexpr size_t kNoStation = std::numeric_limits<size_t>::max();

}  // namespace

BackendService::BackendService(const scenario::Scenario& scenario,
                               uint64_t seed, Instant start)
    : scenario_(scenario),
      seed_(seed),
      stations_(1),
      gaps_(seed, scenario::kPauses) {
  for (const Stage& stage : tier().stages) {
    if (stage.kind == Stage::Kind::kIo) {
      station_of_.push_back(kNoStation);
    } else if (stage.kind == Stage::Kind::kCpu) {
      station_of_.push_back(0);
    } else {
      station_of_.push_back(stations_.size());
      stations_.emplace_back();
      stations_.back().servers =
          stage.kind == Stage::Kind::kPool ? stage.size : 1;
    }
  }
  Begin(start, start);
}

void BackendService::Begin(Instant now, Instant start) {
  Play(now);
  start_ = start;
  set_workers_.reset();
  set_speed_.reset();
  gaps_ = scenario::Random(seed_, scenario::kPauses);
  pauses_.clear();
  for (size_t i = 0; i < tier().pauses.size(); ++i) {
    pauses_.push_back({start + tier().pauses[i].first, i});
    while (pauses_[i].at < now) ScheduleNext(pauses_[i]);
  }
  ApplyChanges(now);
}

void BackendService::SetWorkers(Instant now, int32_t workers) {
  Play(now);
  set_workers_ = workers;
  ApplyChanges(now);
}

void BackendService::SetSpeed(Instant now, double speed) {
  Play(now);
  set_speed_ = speed;
}

std::vector<uint64_t> BackendService::Clear() {
  std::vector<uint64_t> tokens;
  for (Station& station : stations_) {
    for (const uint32_t job : station.waiting) {
      tokens.push_back(jobs_[job].token);
      free_.push_back(job);
    }
    station.waiting.clear();
  }
  return tokens;
}

double BackendService::speed(Instant now) const {
  return set_speed_ ? *set_speed_
                    : scenario::ReplicaAt(tier(), 0, now - start_).speed;
}

size_t BackendService::waiting() const {
  size_t sum = 0;
  for (const Station& station : stations_) sum += station.waiting.size();
  return sum;
}

Instant BackendService::next() const {
  Instant next = running_.empty() ? kNever : running_.front().end;
  next = std::min(next, next_change_);
  for (const NextPause& pause : pauses_) next = std::min(next, pause.at);
  return next;
}

void BackendService::Arrive(Instant now, uint64_t number, uint16_t route,
                            uint64_t token) {
  Play(now);
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(jobs_.size()));
    jobs_.emplace_back();
  }
  const uint32_t job = free_.back();
  free_.pop_back();
  jobs_[job] = {.number = number, .token = token, .route = route};
  Enter(job, now);
}

void BackendService::Advance(Instant now, std::vector<Done>& done) {
  Play(now);
  done.insert(done.end(), done_.begin(), done_.end());
  done_.clear();
}

// Lets everything happen that is due by `now`, each at its own instant.
void BackendService::Play(Instant now) {
  for (;;) {
    const Instant at = next();
    if (at > now || at == kNever) return;
    if (at == next_change_) {
      ApplyChanges(at);
    } else if (!running_.empty() && running_.front().end == at) {
      const Running running = running_.front();
      std::pop_heap(running_.begin(), running_.end(), Later{});
      running_.pop_back();
      Finish(running);
    } else {
      BeginPause();
    }
  }
}

BackendService::Station* BackendService::StationOf(uint16_t stage) {
  const size_t station = station_of_[stage];
  return station == kNoStation ? nullptr : &stations_[station];
}

// Takes a job to its next stage, from jobs_[job].stage on.
void BackendService::Enter(uint32_t job, Instant now) {
  Job& j = jobs_[job];
  while (j.stage < tier().stages.size() &&
         !scenario::Takes(tier().stages[j.stage], j.route, seed_, 0, j.stage,
                          j.number)) {
    ++j.stage;
  }
  if (j.stage == tier().stages.size()) {
    done_.push_back({.token = j.token, .at = now, .service = j.service});
    free_.push_back(job);
    return;
  }
  Station* station = StationOf(j.stage);
  if (station == nullptr) {
    Start(job, now);
  } else {
    station->waiting.push_back(job);
    Fill(*station, now);
  }
}

void BackendService::Start(uint32_t job, Instant now) {
  Job& j = jobs_[job];
  const Duration time =
      scenario::DrawFor(scenario::SpanAt(tier(), j.stage, now - start_), seed_,
                        0, j.stage, j.number);
  j.service += time;
  Duration takes = time;
  if (tier().stages[j.stage].kind == Stage::Kind::kCpu) {
    takes = FromSeconds(ToSeconds(time) / speed(now));
  }
  running_.push_back({.end = std::max(now, paused_until_) + takes,
                      .order = order_++,
                      .job = job});
  std::push_heap(running_.begin(), running_.end(), Later{});
}

void BackendService::Finish(const Running& running) {
  Station* station = StationOf(jobs_[running.job].stage);
  if (station != nullptr) --station->busy;
  ++jobs_[running.job].stage;
  Enter(running.job, running.end);
  if (station != nullptr) Fill(*station, running.end);
}

void BackendService::Fill(Station& station, Instant now) {
  while (station.busy < station.servers && !station.waiting.empty()) {
    const uint32_t job = station.waiting.front();
    station.waiting.pop_front();
    ++station.busy;
    Start(job, now);
  }
}

void BackendService::ApplyChanges(Instant now) {
  next_change_ = kNever;
  for (const Change& change : tier().changes) {
    if (!change.workers && !change.up) continue;
    if (start_ + change.at > now) {
      next_change_ = std::min(next_change_, start_ + change.at);
    }
  }
  stations_[0].servers =
      set_workers_ ? *set_workers_
                   : scenario::ReplicaAt(tier(), 0, now - start_).workers;
  Fill(stations_[0], now);
}

void BackendService::BeginPause() {
  NextPause* first = nullptr;
  for (NextPause& pause : pauses_) {
    if (first == nullptr || pause.at < first->at) first = &pause;
  }
  const Pause& pause = tier().pauses[first->index];
  // All that runs ends later by as much, so the heap stays a heap.
  for (Running& running : running_) running.end += pause.length;
  paused_until_ = std::max(paused_until_, first->at) + pause.length;
  ScheduleNext(*first);
}

void BackendService::ScheduleNext(NextPause& next) {
  const Pause& pause = tier().pauses[next.index];
  if (pause.every == Duration{}) {
    next.at = kNever;
  } else if (pause.regular) {
    next.at += pause.every;
  } else {
    const Duration gap = pause.every - pause.length;
    next.at += pause.length + FromSeconds(ToSeconds(gap) * gaps_.Exponential());
  }
}

std::string NotPlayed(const scenario::Scenario& scenario) {
  const scenario::Tier& tier = scenario.tiers[0];
  std::string list;
  const auto add = [&](bool is, std::string_view what) {
    if (is) list += (list.empty() ? "" : ", ") + std::string(what);
  };
  add(scenario.tiers.size() > 1, "tiers after the first");
  add(tier.replicas > 1, "more than one replica");
  add(tier.discipline != scenario::Discipline::kFcfs, "discipline");
  add(tier.cancel_at_deadline, "cancel_at_deadline");
  add(tier.reject_cost > Duration{}, "reject_cost");
  add(tier.network.mean > Duration{}, "network");
  add(tier.client_guard, "client_guard");
  add(!scenario.clients.closed.empty(), "clients.closed");
  add(!tier.failures.empty(), "failures");
  add(scenario.proxy_timeout.has_value(), "proxy_timeout");
  add(std::any_of(scenario.phases.begin(), scenario.phases.end(),
                  [](const auto& phase) { return !phase.mix.empty(); }),
      "phases.mix");
  return list;
}

}  // namespace weir::cli
