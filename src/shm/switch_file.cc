#include "switch_file.h"

#include <array>
#include <charconv>

#include "weir/policy.h"

namespace weir::shm {
namespace {

using Action = Switch::Action;

constexpr std::string_view kHead = "weir-switches 1\n";

// The part of `text` up to `end`, which is taken away with it; nothing when
// there is none.
std::optional<std::string_view> Take(std::string_view& text, char end) {
  const size_t at = text.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at + 1);
  return part;
}

std::optional<int64_t> Number(std::optional<std::string_view> text,
                              int64_t most) {
  int64_t number = 0;
  if (!text) return std::nullopt;
  const char* const end = text->data() + text->size();
  const auto read = std::from_chars(text->data(), end, number);
  if (read.ec != std::errc() || read.ptr != end || number < 0 ||
      number > most) {
    return std::nullopt;
  }
  return number;
}

std::optional<NamedSwitch> ParseLine(std::string_view line) {
  NamedSwitch named;
  const auto action = Take(line, ' ');
  if (action == "pause") {
    named.second.action = Action::kPause;
  } else if (action == "degrade") {
    named.second.action = Action::kDegrade;
    const auto level = Number(Take(line, ' '), Switch::kMaxLevel);
    if (!level) return std::nullopt;
    named.second.level = static_cast<uint8_t>(*level);
  } else {
    return std::nullopt;
  }
  const auto until = Take(line, ' ');
  if (until != "-") {
    const auto ms = Number(until, INT64_MAX / 1'000'000);
    if (!ms) return std::nullopt;
    named.second.until = Instant(std::chrono::milliseconds(*ms));
  }
  if (line.empty() || line.size() > kMaxNameBytes ||
      line.find(' ') != std::string_view::npos) {
    return std::nullopt;
  }
  named.first = line;
  return named;
}

}  // namespace

std::string PrintSwitches(const std::vector<NamedSwitch>& switches) {
  std::string text(kHead);
  for (const auto& [name, set] : switches) {
    text += set.action == Action::kPause
                ? "pause "
                : "degrade " + std::to_string(set.level) + ' ';
    text += set.until == kNever ? "-"
                                : std::to_string(set.until.time_since_epoch() /
                                                 std::chrono::milliseconds(1));
    text += ' ' + name + '\n';
  }
  return text + "end " + std::to_string(switches.size()) + '\n';
}

std::optional<std::vector<NamedSwitch>> ParseSwitches(std::string_view text) {
  if (text.substr(0, kHead.size()) != kHead) return std::nullopt;
  text.remove_prefix(kHead.size());
  std::vector<NamedSwitch> switches;
  while (const auto line = Take(text, '\n')) {
    if (*line == "end " + std::to_string(switches.size())) {
      return text.empty() ? std::optional(switches) : std::nullopt;
    }
    const auto named = ParseLine(*line);
    if (!named) return std::nullopt;
    switches.push_back(*named);
  }
  return std::nullopt;
}

}  // namespace weir::shm
