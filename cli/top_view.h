// What `weir top` shows, as text: pure functions of two readings.

#ifndef WEIR_CLI_TOP_VIEW_H_
#define WEIR_CLI_TOP_VIEW_H_

#include <string>
#include <string_view>
#include <vector>

#include "terminal.h"
#include "weir/snapshot.h"

namespace weir::cli {

enum class ServiceState {
  kLive,
  kNoWorkers,  // The region is there, but nobody works on it.
  kRemoved,    // The segment lost its name.
};

// Two readings of one region, and what lies between them.
struct TopFrame {
  Snapshot before;
  Snapshot now;
  // Between the two; 0 when there is only one reading: then no rate and no
  // quantile is known.
  double seconds = 0;
  std::vector<bool> alive;  // Of each of now.workers.
  ServiceState state = ServiceState::kLive;
  Instant at{};      // When `now` was read, on the region's timeline.
  std::string time;  // Of day, as the reader's clock shows it: "14:02:11".
};

// A screen of exactly size.rows lines, each of at most size.columns columns
// and without a line end after the last.  Rows of the table that never counted
// anything are left out; what does not fit in the height is cut at the bottom.
// Usable from 60 by 12; best from 80 by 24.
std::string RenderScreen(const TopFrame& frame, Size size, const Style& style);

// All counters and gauges with their help, from line `offset` on, which is
// moved into the range that there is.
std::string RenderCounters(const TopFrame& frame, Size size, const Style& style,
                           int& offset);

// One line, without a line end.
std::string RenderLine(const TopFrame& frame);

// One object in one line, without a line end.  docs/operating.md names its
// members; those made from counters.def bear its names.
std::string RenderJson(const TopFrame& frame);

// "850 us", "22.1 ms", "1.25 s".
std::string FormatDuration(Duration duration);
// "0", "0.4", "9980", "123k", "4.5M".
std::string FormatNumber(double number);

}  // namespace weir::cli

#endif  // WEIR_CLI_TOP_VIEW_H_
