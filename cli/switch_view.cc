#include "switch_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace weir::cli {
namespace {

using Action = Switch::Action;
using Json = nlohmann::ordered_json;

struct State {
  bool by_policy = false;  // Paused.
  bool paused = false;     // By hand.
  bool by_hand = false;    // Degraded, or kept in full.
  int level = 0;
};

State StateOf(const Snapshot::Resource& resource, Instant now) {
  State state{.by_policy = resource.paused, .level = resource.level};
  if (!resource.by_hand.ActiveAt(now)) return state;
  state.paused = resource.by_hand.action == Action::kPause;
  state.by_hand = resource.by_hand.action == Action::kDegrade;
  if (state.by_hand) {
    state.level = std::min(resource.by_hand.level, resource.levels);
  }
  return state;
}

std::string Left(const Switch& set, Instant now) {
  return set.until == kNever ? "" : FormatLeft(set.until - now);
}

}  // namespace

std::string FormatLeft(Duration left) {
  const int64_t s = std::max<int64_t>(
      std::chrono::ceil<std::chrono::seconds>(left).count(), 0);
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) {
    return s % 60 == 0 ? fmt::format("{}m", s / 60)
                       : fmt::format("{}m{}s", s / 60, s % 60);
  }
  return s / 60 % 60 == 0 ? fmt::format("{}h", s / 3600)
                          : fmt::format("{}h{}m", s / 3600, s / 60 % 60);
}

std::string SwitchState(const Snapshot::Resource& resource, Instant now) {
  const State state = StateOf(resource, now);
  const std::string left = Left(resource.by_hand, now);
  const std::string by_hand =
      "by hand" + (left.empty() ? "" : fmt::format(", {} left", left));
  std::string text;
  if (state.by_policy) text = "paused by the policy";
  if (state.paused) {
    text += fmt::format("{} {}", text.empty() ? "paused" : " and", by_hand);
  }
  if (text.empty() && state.by_hand) {
    text = state.level == 0
               ? fmt::format("in full {}", by_hand)
               : fmt::format("degraded to {} {}", state.level, by_hand);
  } else if (text.empty() && state.level > 0) {
    text = fmt::format("degraded to {} by overload", state.level);
  }
  if (text.empty()) return "open";
  return resource.deaf ? text +
                             "; without effect: it is exempt in the policy, "
                             "or its switch stage does not act"
                       : text;
}

std::string SwitchMark(const Snapshot::Resource& resource, Instant now) {
  const State state = StateOf(resource, now);
  const std::string left = Left(resource.by_hand, now);
  std::string mark;
  if (state.by_policy) return "paused";
  if (state.paused) {
    mark = "paused";
  } else if (state.by_hand || state.level > 0) {
    mark = fmt::format("degrade {}", state.level);
  }
  if ((state.paused || state.by_hand) && !left.empty()) mark += ' ' + left;
  return mark;
}

std::string SwitchesTable(const Snapshot& seen, Instant now) {
  std::string text = fmt::format("{:<32} {}\n", "resource", "state");
  for (const Snapshot::Resource& resource : seen.resources) {
    text +=
        fmt::format("{:<32} {}\n", resource.name, SwitchState(resource, now));
  }
  return text;
}

// To the millisecond, so that 30 s are 30.
static double Seconds(Duration left) {
  return static_cast<double>(left / std::chrono::milliseconds(1)) / 1000;
}

std::string SwitchesJson(const Snapshot& seen, Instant now) {
  Json list = Json::array();
  for (const Snapshot::Resource& resource : seen.resources) {
    const State state = StateOf(resource, now);
    const bool ends =
        resource.by_hand.ActiveAt(now) && resource.by_hand.until != kNever;
    list.push_back(
        {{"name", resource.name},
         {"paused_by_policy", state.by_policy},
         {"paused_by_hand", state.paused},
         {"degrade", state.level},
         {"degrade_by_hand", state.by_hand},
         {"degrade_levels", resource.levels},
         {"left_s",
          ends ? Json(Seconds(resource.by_hand.until - now)) : Json()},
         {"obeyed", !resource.deaf}});
  }
  const Json out{{"service", seen.service}, {"resources", list}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace weir::cli
