// The figures that `weir top` shows, from two readings of a region.

#ifndef WEIR_CLI_TOP_FIGURES_H_
#define WEIR_CLI_TOP_FIGURES_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "top_view.h"
#include "weir/request.h"
#include "weir/snapshot.h"

namespace weir::cli {

using ByClass = std::array<double, kCriticalities>;

// Per second; nothing when there is only one reading.
std::optional<ByClass> Rate(const TopFrame& frame, size_t class_counter);
double Sum(const ByClass& rates);

// A quantile of what a histogram of the snapshot (its member `which`) gained
// between the readings; nothing when that is nothing.
std::optional<Duration> Quantile(const TopFrame& frame,
                                 Histogram::Counts Snapshot::*which,
                                 double share);

// Of all shed_ counters together.
ByClass ShedRate(const TopFrame& frame);
// The reason most are shed for ("level"), or nothing.
std::string_view MainReason(const TopFrame& frame);

// "start", "cruise", "up", "drain", "known".
std::string_view ModeName(double law_mode);

// The class that the admission level cuts through; nothing below level 1.
std::optional<Criticality> CutClass(double level);

// "shed_level_total" is "shed level".
std::string Label(std::string_view counter);
bool StartsWith(std::string_view text, std::string_view prefix);

}  // namespace weir::cli

#endif  // WEIR_CLI_TOP_FIGURES_H_
