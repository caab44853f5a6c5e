// Follows one service through its life: attached, stopped, gone, back again.

#ifndef WEIR_CLI_TOP_WATCH_H_
#define WEIR_CLI_TOP_WATCH_H_

#include <optional>
#include <string>
#include <string_view>

#include "top_view.h"
#include "weir/result.h"
#include "weir/shm/segment.h"
#include "weir/time.h"

namespace weir::cli {

class TopWatch {
 public:
  // Fails when there is no such service, or it may not be observed.
  static Result<TopWatch> Open(std::string_view service, Instant now);

  // A new reading, with rates since the last one.  When the segment is gone,
  // the last reading again with state kRemoved, and what comes back under its
  // name is taken up by the next call.  Fails when that cannot be read.
  Result<TopFrame> Next(Instant now);

 private:
  TopWatch(std::string_view service, shm::ObservedRegion region, Instant now);
  void Attach(shm::ObservedRegion region, Instant now);

  std::string service_;
  std::optional<shm::ObservedRegion> region_;
  Snapshot last_;
  Instant last_at_;
};

}  // namespace weir::cli

#endif  // WEIR_CLI_TOP_WATCH_H_
