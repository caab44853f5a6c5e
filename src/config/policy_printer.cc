#include <string>
#include <string_view>

#include "policy_stages.h"
#include "weir/config/policy.h"
#include "weir/config/units.h"

namespace weir::config {
namespace {

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string Line(std::string_view key, const std::string& value) {
  return std::string(key) + " = " + value + '\n';
}

std::string Line(std::string_view key, Duration value) {
  return Line(key, Quoted(FormatDuration(value)));
}

std::string Line(std::string_view key, int32_t value) {
  return Line(key, std::to_string(value));
}

template <typename T>
std::string Line(std::string_view key, const std::vector<T>& items,
                 std::string (*format)(const T&)) {
  std::string list;
  for (const T& item : items) {
    if (!list.empty()) list += ", ";
    list += Quoted(format(item));
  }
  return Line(key, '[' + list + ']');
}

// The modes that differ from the default, kEnforce.
std::string Stages(const StageModes& modes) {
  std::string list;
  for (size_t i = 0; i < kStages; ++i) {
    if (modes[i] == StageMode::kEnforce) continue;
    if (!list.empty()) list += ", ";
    list += std::string(Name(static_cast<Stage>(i))) + " = " +
            Quoted(Name(modes[i]));
  }
  return list.empty() ? "" : Line("stages", "{ " + list + " }");
}

std::string Print(const Resource& resource) {
  std::string out = "\n[resource." + Quoted(resource.name) + "]\n";
  out += Line("criticality", Quoted(Name(resource.criticality)));
  if (resource.deadline) out += Line("deadline", *resource.deadline);
  if (resource.exempt) out += Line("exempt", "true");
  if (resource.paused) out += Line("paused", "true");
  if (resource.stream) out += Line("stream", "true");
  out += PrintResourceStages(resource) + Stages(resource.stages);
  for (const DegradeLevel& level : resource.degrade) {
    out += "\n[[resource." + Quoted(resource.name) + ".degrade]]\n" +
           Line("name", Quoted(level.name)) +
           Line("excess", FormatNumber(level.excess));
  }
  return out;
}

}  // namespace

std::string PrintPolicy(const Policy& policy) {
  std::string out = Line("service", Quoted(policy.service));
  out += "\n[deadline]\n" + Line("default", policy.deadline) +
         Line("ceiling", policy.deadline_ceiling) +
         Line("from", policy.deadline_from, FormatSource);
  out +=
      "\n[criticality]\n" + Line("from", policy.criticality_from, FormatSource);
  out += "\n[client]\n" + Line("from", policy.client_from, FormatSource);
  if (policy.client_quota) {
    out += "\n[client_quota]\n" +
           Line("calls", static_cast<int32_t>(policy.client_quota->calls)) +
           Line("window", policy.client_quota->window);
  }
  out += "\n[trust]\n" + Line("networks", policy.trusted, FormatNetwork);
  out += "\n[limit]\n";
  if (policy.workers > 0) out += Line("workers", policy.workers);
  out +=
      Line("floor", policy.limit_floor) + Line("ceiling", policy.limit_ceiling);
  out += "\n[answer]\n" + Line("status", policy.shed_status);
  if (policy.try_elsewhere) out += Line("elsewhere", "true");
  out += PrintServiceStages(policy);
  for (const Resource& resource : policy.resources) out += Print(resource);
  return out;
}

}  // namespace weir::config
