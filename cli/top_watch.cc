#include "top_watch.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "weir/shm/lease.h"

namespace weir::cli {

Result<TopWatch> TopWatch::Open(std::string_view service, Instant now) {
  auto region = shm::ObservedRegion::Open(service);
  if (!region) return region.error();
  return TopWatch(service, std::move(*region), now);
}

TopWatch::TopWatch(std::string_view service, shm::ObservedRegion region,
                   Instant now)
    : service_(service) {
  Attach(std::move(region), now);
}

void TopWatch::Attach(shm::ObservedRegion region, Instant now) {
  region_ = std::move(region);
  last_ = Read(**region_);
  last_at_ = now;
}

Result<TopFrame> TopWatch::Next(Instant now) {
  TopFrame frame;
  frame.at = now;
  if (region_ && region_->removed()) region_.reset();
  if (!region_ && ::access(shm::SegmentPath(service_).c_str(), F_OK) == 0) {
    auto region = shm::ObservedRegion::Open(service_);
    if (!region) return region.error();
    Attach(std::move(*region), now);
  }
  frame.before = last_;
  if (!region_) {
    frame.now = last_;
    frame.state = ServiceState::kRemoved;
    frame.alive.assign(last_.workers.size(), false);
    return frame;
  }
  if (auto wrong = region_->Refresh()) return *std::move(wrong);
  frame.now = Read(**region_);
  frame.seconds = ToSeconds(now - last_at_);
  // Pids of another namespace say nothing here; then trust the region.
  const bool can_see = shm::SameHost(**region_);
  for (const Snapshot::Worker& worker : frame.now.workers) {
    frame.alive.push_back(!can_see || shm::IsAlive(worker.owner));
  }
  if (std::count(frame.alive.begin(), frame.alive.end(), true) == 0) {
    frame.state = ServiceState::kNoWorkers;
  }
  last_ = frame.now;
  last_at_ = now;
  return frame;
}

}  // namespace weir::cli
