#include <nlohmann/json.hpp>

#include "switch_view.h"
#include "top_figures.h"
#include "top_view.h"

namespace weir::cli {
namespace {

using Json = nlohmann::ordered_json;

template <typename Values>
Json ByName(const Values& values) {
  Json object;
  for (size_t c = 0; c < kCriticalities; ++c) {
    object[std::string(Name(static_cast<Criticality>(c)))] = values[c];
  }
  return object;
}

// null where nothing was recorded.
Json Quantiles(const TopFrame& frame, Histogram::Counts Snapshot::*which) {
  Json object;
  for (const auto& [name, share] :
       {std::pair{"p50", .5}, std::pair{"p99", .99}, std::pair{"p999", .999}}) {
    const auto value = Quantile(frame, which, share);
    object[name] = value ? Json(value->count() / 1000) : Json();
  }
  return object;
}

std::string_view StateName(ServiceState state) {
  switch (state) {
    case ServiceState::kLive:
      return "live";
    case ServiceState::kNoWorkers:
      return "stopped";
    case ServiceState::kRemoved:
      return "gone";
  }
  return "?";
}

Json Workers(const TopFrame& frame) {
  Json workers = Json::array();
  for (size_t i = 0; i < frame.now.workers.size(); ++i) {
    const Snapshot::Worker& worker = frame.now.workers[i];
    workers.push_back({{"pid", worker.owner.pid},
                       {"shard", worker.shard},
                       {"alive", i >= frame.alive.size() || frame.alive[i]},
                       {"inflight", worker.inflight},
                       {"waiting", worker.waiting}});
  }
  return workers;
}

Json Resources(const TopFrame& frame) {
  Json resources = Json::array();
  for (const Snapshot::Resource& resource : frame.now.resources) {
    resources.push_back({{"name", resource.name},
                         {"paused", resource.paused},
                         {"switch", SwitchState(resource, frame.at)},
                         {"offered_total", resource.offered},
                         {"shed_total", resource.shed}});
  }
  return resources;
}

}  // namespace

std::string RenderJson(const TopFrame& frame) {
  const Snapshot& now = frame.now;
  Json json;
  json["service"] = now.service;
  json["state"] = StateName(frame.state);
  json["policy_version"] = now.policy_version;
  json["interval_s"] = frame.seconds;
  json["inflight"] = now.inflight;
  json["waiting"] = ByName(now.waiting);
  for (size_t i = 0; i < kGauges; ++i) {
    json["gauges"][std::string(kGaugeInfo[i].name)] = now.gauges[i];
  }
  json["law"] = ModeName(now[Gauge::law_mode]);
  json["latency_us"] = Quantiles(frame, &Snapshot::latency);
  json["queue_delay_us"] = Quantiles(frame, &Snapshot::queue_delay);
  for (size_t i = 0; i < kClassCounters; ++i) {
    const std::string name(kClassCounterInfo[i].name);
    json["totals"][name] = ByName(now.by_class[i]);
    const auto rate = Rate(frame, i);
    json["per_second"][name] = rate ? ByName(*rate) : Json();
  }
  for (size_t i = 0; i < kCounters; ++i) {
    json["totals"][std::string(kCounterInfo[i].name)] = now.counters[i];
  }
  json["resources"] = Resources(frame);
  json["workers"] = Workers(frame);
  // Names come out of memory that others write: never fail on odd bytes.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace weir::cli
