#include "top_figures.h"

#include <algorithm>
#include <numeric>

#include "weir/capacity_look.h"

namespace weir::cli {
namespace {

uint64_t Grown(uint64_t before, uint64_t now) {
  return now > before ? now - before : 0;
}

constexpr std::string_view kShed = "shed_";
constexpr std::string_view kTotal = "_total";

}  // namespace

std::optional<ByClass> Rate(const TopFrame& frame, size_t class_counter) {
  if (frame.seconds <= 0) return std::nullopt;
  ByClass rate{};
  for (size_t c = 0; c < kCriticalities; ++c) {
    rate[c] = static_cast<double>(Grown(frame.before.by_class[class_counter][c],
                                        frame.now.by_class[class_counter][c])) /
              frame.seconds;
  }
  return rate;
}

double Sum(const ByClass& rates) {
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

std::optional<Duration> Quantile(const TopFrame& frame,
                                 Histogram::Counts Snapshot::*which,
                                 double share) {
  if (frame.seconds <= 0) return std::nullopt;
  Histogram::Counts gained{};
  uint64_t total = 0;
  for (size_t i = 0; i < gained.size(); ++i) {
    gained[i] = Grown((frame.before.*which)[i], (frame.now.*which)[i]);
    total += gained[i];
  }
  if (total == 0) return std::nullopt;
  return Histogram::Quantile(gained, share);
}

ByClass ShedRate(const TopFrame& frame) {
  ByClass sum{};
  for (size_t i = 0; i < kClassCounters; ++i) {
    if (!StartsWith(kClassCounterInfo[i].name, kShed)) continue;
    const ByClass rate = Rate(frame, i).value_or(ByClass{});
    for (size_t c = 0; c < kCriticalities; ++c) sum[c] += rate[c];
  }
  return sum;
}

std::string_view MainReason(const TopFrame& frame) {
  double most = 0;
  std::string_view reason;
  for (size_t i = 0; i < kClassCounters; ++i) {
    std::string_view name = kClassCounterInfo[i].name;
    if (!StartsWith(name, kShed)) continue;
    const double rate = Sum(Rate(frame, i).value_or(ByClass{}));
    if (rate <= most) continue;
    most = rate;
    name.remove_prefix(kShed.size());
    name.remove_suffix(kTotal.size());
    reason = name;
  }
  return reason;
}

std::string_view ModeName(double law_mode) {
  constexpr std::array<std::string_view, 7> kNames = {
      "start", "cruise", "up", "drain", "drain", "drain", "known"};
  const auto mode = static_cast<size_t>(law_mode);
  return law_mode >= 0 && mode < kNames.size() ? kNames[mode] : "?";
}

std::optional<Criticality> CutClass(double level) {
  if (!(level >= 1)) return std::nullopt;
  return Level::ClassOf(static_cast<int64_t>(level));
}

std::string Label(std::string_view counter) {
  const bool total = counter.size() > kTotal.size() &&
                     counter.substr(counter.size() - kTotal.size()) == kTotal;
  if (total) counter.remove_suffix(kTotal.size());
  std::string label(counter);
  std::replace(label.begin(), label.end(), '_', ' ');
  return label;
}

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

}  // namespace weir::cli
