#include "weir/rivals/sentinel_system.h"

namespace weir::rivals {

SentinelSystem::SentinelSystem(const Config& config)
    : rule_config_{.qps = config.qps,
                   .threads = config.threads,
                   .latency_ms = config.mean_latency_ms,
                   .load = config.load1,
                   .cpu_ratio = config.cpu_ratio,
                   .robust = config.robust} {}

bool SentinelSystem::Admit(const Arrival& arrival) {
  return rule_
      .Admit(rule_config_, signals_, arrival.inflight + arrival.queued,
             arrival.now)
      .admitted();
}

void SentinelSystem::Learn(const Finish& finish) {
  rule_.Complete(rule_config_, signals_, SinceAdmitted(finish),
                 Teaches(finish.outcome), finish.now);
}

void SentinelSystem::Watch(const Signals& signals) {
  const double load = signals.load1;
  signals_ = {
      .load = load,
      .recent_load = load < 0 ? -1 : recent_load_.Add(load, signals.now),
      .cpu_ratio = signals.cpu_ratio};
}

double SentinelSystem::BestQps(Instant now) const {
  return rule_.Read(rule_config_.robust, now).best_per_s;
}

double SentinelSystem::LeastLatencyMs(Instant now) const {
  return rule_.Read(rule_config_.robust, now).least_latency_ms;
}

}  // namespace weir::rivals
