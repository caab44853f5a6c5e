// The words for the enumerators of the API, and back.

#include <array>
#include <cctype>
#include <string>

#include "weir/decision.h"
#include "weir/request.h"

namespace weir {
namespace {

constexpr std::array<std::string_view, kCriticalities> kCriticalityNames = {
    "vital", "important", "deferrable", "sheddable"};
constexpr std::array<std::string_view, kCriticalities> kSreNames = {
    "critical_plus", "critical", "sheddable_plus", "sheddable"};
constexpr std::array<std::string_view, 3> kVerdictNames = {"admit", "queue",
                                                           "shed"};
constexpr std::array<std::string_view, kReasons> kReasonNames = {
    "room",  "waited",    "exempt",   "queued", "paused", "deadline", "level",
    "limit", "cancelled", "shutdown", "stale",  "quota",  "tiers",    "system"};
constexpr std::array<std::string_view, kStages> kStageNames = {
    "exempt", "switch", "deadline", "stale", "quota",
    "tiers",  "system", "level",    "limit"};
constexpr std::array<std::string_view, 3> kModeNames = {"enforce", "shadow",
                                                        "off"};
constexpr std::array<std::string_view, kOutcomes> kOutcomeNames = {
    "ok", "error", "timed_out", "cancelled", "ignored"};

}  // namespace

std::string_view Name(Criticality c) { return kCriticalityNames[Index(c)]; }
std::string_view Name(Verdict verdict) {
  return kVerdictNames[static_cast<size_t>(verdict)];
}
std::string_view Name(Reason reason) { return kReasonNames[Index(reason)]; }
std::string_view Name(Stage stage) { return kStageNames[Index(stage)]; }
std::string_view Name(StageMode mode) {
  return kModeNames[static_cast<size_t>(mode)];
}
std::string_view Name(Outcome outcome) { return kOutcomeNames[Index(outcome)]; }

std::optional<Criticality> ParseCriticality(std::string_view name) {
  std::string folded(name);
  for (char& c : folded) {
    c = c == '-'
            ? '_'
            : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (size_t i = 0; i < kCriticalities; ++i) {
    if (folded == kCriticalityNames[i] || folded == kSreNames[i]) {
      return static_cast<Criticality>(i);
    }
  }
  return std::nullopt;
}

}  // namespace weir
