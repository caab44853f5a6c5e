#include "weir/rivals/brpc_window.h"

#include <cmath>

namespace weir::rivals {
namespace {

int64_t Microseconds(Duration d) {
  return std::chrono::duration_cast<std::chrono::microseconds>(d).count();
}

}  // namespace

bool BrpcWindow::Sampled(const Finish& finish) {
  if (finish.outcome == Outcome::kOk) ++total_succeeded_;
  if (last_sample_ && finish.now - *last_sample_ < config_.sampling_interval) {
    return false;
  }
  last_sample_ = finish.now;
  return true;
}

std::optional<BrpcWindow::Summary> BrpcWindow::Add(const Finish& finish) {
  if (!start_) start_ = finish.now;
  if (finish.outcome == Outcome::kOk) {
    ++succeeded_;
    succeeded_us_ += Microseconds(finish.latency);
  } else {
    ++failed_;
    failed_us_ += Microseconds(finish.latency);
  }
  const int32_t samples = succeeded_ + failed_;
  const bool old = finish.now - *start_ >= config_.length;
  if (samples < config_.least_samples) {
    if (old) Reset(finish.now);
    return std::nullopt;
  }
  if (!old && samples < config_.most_samples) return std::nullopt;
  const Summary summary = Summarize(finish.now);
  Reset(finish.now);
  return summary;
}

void BrpcWindow::Reset(Instant now) {
  start_ = now;
  succeeded_ = 0;
  failed_ = 0;
  succeeded_us_ = 0;
  failed_us_ = 0;
  total_succeeded_ = 0;
}

BrpcWindow::Summary BrpcWindow::Summarize(Instant now) const {
  Summary summary{.succeeded = succeeded_, .failed = failed_};
  if (succeeded_ == 0) return summary;

  double charged = static_cast<double>(failed_us_) * config_.failure_punishment;
  if (config_.tolerated_failures > 0) {
    const double share = static_cast<double>(failed_) / (succeeded_ + failed_);
    charged *= share <= config_.tolerated_failures
                   ? 0.0
                   : (share - config_.tolerated_failures) /
                         (1 - config_.tolerated_failures);
  }
  summary.average_us = static_cast<int64_t>(
      std::ceil((charged + static_cast<double>(succeeded_us_)) / succeeded_));
  const int64_t elapsed_us = Microseconds(now - *start_);
  if (elapsed_us > 0) {
    summary.qps = 1e6 * static_cast<double>(total_succeeded_) /
                  static_cast<double>(elapsed_us);
  }
  return summary;
}

}  // namespace weir::rivals
