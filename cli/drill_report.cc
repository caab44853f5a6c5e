#include "drill_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace weir::cli {
namespace {

using Json = nlohmann::ordered_json;

double Ended(const Snapshot::Drilled& side) {
  return static_cast<double>(side.ok + side.error + side.late + side.other);
}

double Failed(const Snapshot::Drilled& side) {
  return static_cast<double>(side.error + side.late + side.other);
}

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

double MeanMs(const Snapshot::Drilled& side) {
  return Ratio(static_cast<double>(side.latency_us) / 1000,
               static_cast<double>(side.ok + side.error + side.late));
}

std::string Line(std::string_view name, const Snapshot::Drilled& side) {
  return fmt::format("{:<10}{:>9}{:>9}{:>9}{:>9}{:>9}{:>12.4f}{:>10.1f} ms\n",
                     name, side.started, side.ok, side.error, side.late,
                     side.other, Ratio(Failed(side), Ended(side)),
                     MeanMs(side));
}

std::string_view Name(DrillVerdict verdict) {
  switch (verdict) {
    case DrillVerdict::kWorks:
      return "works";
    case DrillVerdict::kWorse:
      return "worse";
    case DrillVerdict::kTooFew:
      return "too few";
  }
  return "?";
}

std::string_view Name(DrillEnd end) {
  switch (end) {
    case DrillEnd::kTime:
      return "time";
    case DrillEnd::kOverload:
      return "overload";
    case DrillEnd::kInterrupted:
      return "interrupted";
  }
  return "?";
}

std::string Sentence(const DrillReport& report) {
  const double drilled = Ratio(Failed(report.drilled), Ended(report.drilled));
  const double control = Ratio(Failed(report.control), Ended(report.control));
  switch (Judge(report)) {
    case DrillVerdict::kWorks:
      return fmt::format(
          "works: {:.4f} of the drilled failed, {:.4f} of the others", drilled,
          control);
    case DrillVerdict::kWorse:
      return fmt::format(
          "WORSE: {:.4f} of the drilled failed, only {:.4f} of the others; "
          "this level would not help",
          drilled, control);
    case DrillVerdict::kTooFew:
      return fmt::format(
          "too few to tell: {:.0f} drilled ended, {} others ended well, {} of "
          "each are needed; give it a larger share or more time",
          Ended(report.drilled), report.control.ok, DrillReport::kFewest);
  }
  return "";
}

Json ToJson(const Snapshot::Drilled& side) {
  return {{"started", side.started},
          {"ok", side.ok},
          {"error", side.error},
          {"late", side.late},
          {"other", side.other},
          {"failed_ratio", Ratio(Failed(side), Ended(side))},
          {"latency_ms", MeanMs(side)}};
}

}  // namespace

DrillVerdict Judge(const DrillReport& report) {
  const double drilled = Ended(report.drilled);
  const double control = Ended(report.control);
  if (drilled < DrillReport::kFewest ||
      report.control.ok < DrillReport::kFewest) {
    return DrillVerdict::kTooFew;
  }
  const double pooled =
      (Failed(report.drilled) + Failed(report.control)) / (drilled + control);
  const double error =
      std::sqrt(pooled * (1 - pooled) * (1 / drilled + 1 / control));
  const double apart =
      Failed(report.drilled) / drilled - Failed(report.control) / control;
  return apart > DrillReport::kErrors * error ? DrillVerdict::kWorse
                                              : DrillVerdict::kWorks;
}

Snapshot::Drilled Since(const Snapshot::Drilled& now,
                        const Snapshot::Drilled& before) {
  return {.started = now.started - before.started,
          .ok = now.ok - before.ok,
          .error = now.error - before.error,
          .late = now.late - before.late,
          .other = now.other - before.other,
          .latency_us = now.latency_us - before.latency_us};
}

std::string Render(const DrillReport& report) {
  std::string text = fmt::format(
      "{:<10}{:>9}{:>9}{:>9}{:>9}{:>9}{:>12}{:>13}\n", "", "started", "ok",
      "error", "late", "other", "failed", "latency");
  text += Line("drilled", report.drilled);
  text += Line("others", report.control);
  if (report.end == DrillEnd::kOverload) {
    text +=
        "stopped: the service became overloaded; all is answered as before\n";
  }
  if (report.end == DrillEnd::kInterrupted) text += "stopped before its time\n";
  return text + Sentence(report) + '\n';
}

std::string RenderJson(const DrillReport& report) {
  const Json out{{"end", Name(report.end)},
                 {"verdict", Name(Judge(report))},
                 {"drilled", ToJson(report.drilled)},
                 {"others", ToJson(report.control)}};
  return out.dump() + '\n';
}

}  // namespace weir::cli
