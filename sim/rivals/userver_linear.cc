#include "weir/rivals/userver_linear.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace weir::rivals {
namespace {

// Source of all: [USERVER] controllers/linear.cpp.
constexpr size_t kLoadSeconds = 3;
constexpr size_t kShortSeconds = 3;
constexpr size_t kLongSeconds = 30;
constexpr double kDown = 0.95;

}  // namespace

UserverLinear::UserverLinear(const Config& config)
    : config_(config),
      load_(kLoadSeconds),
      short_latency_(kShortSeconds),
      long_latency_(kLongSeconds) {}

void UserverLinear::Ring::Add(int64_t value) {
  values_[next_] = value;
  next_ = (next_ + 1) % values_.size();
}

int64_t UserverLinear::Ring::Mean() const {
  return std::accumulate(values_.begin(), values_.end(), int64_t{0}) /
         static_cast<int64_t>(values_.size());
}

int64_t UserverLinear::Ring::Least() const {
  return *std::min_element(values_.begin(), values_.end());
}

int32_t UserverLinear::Limit(Instant now) {
  CatchUp(now);
  return limit_ ? static_cast<int32_t>(*limit_) : kNoLimit;
}

void UserverLinear::Learn(const Finish& finish) {
  CatchUp(finish.now);
  if (!Teaches(finish.outcome)) return;
  ++second_.total;
  if (finish.outcome != Outcome::kOk) ++second_.failed;
  latency_ms_ += finish.latency / std::chrono::milliseconds(1);
  second_.load = finish.inflight;
}

void UserverLinear::CatchUp(Instant now) {
  constexpr Duration kSecond = std::chrono::seconds(1);
  if (!second_ends_) second_ends_ = now + kSecond;
  // A minute of nothing settles whatever was there before.
  constexpr int64_t kMostSteps = 60;
  for (int64_t steps = 0; now >= *second_ends_; ++steps) {
    if (steps > kMostSteps) {
      second_ends_ = now + kSecond;
      return;
    }
    if (second_.total > 0)
      second_.mean_latency_ms = latency_ms_ / second_.total;
    Feed(second_);
    second_ = Second{};
    latency_ms_ = 0;
    *second_ends_ += kSecond;
  }
}

void UserverLinear::Feed(const Second& second) {
  short_latency_.Add(second.mean_latency_ms);
  load_.Add(second.load);
  if (second.total < config_.least_requests && !limit_) return;
  if (warmed_s_ < config_.warm_up_s) {
    ++warmed_s_;
    long_latency_.Add(second.mean_latency_ms);
    return;
  }
  const int64_t load = load_.Mean();
  if (Overloaded(second)) {
    limit_ = limit_ ? static_cast<int64_t>(static_cast<double>(*limit_) * kDown)
                    : load;
  } else if (limit_ && *limit_ > load + config_.safe_margin) {
    limit_.reset();
  } else if (limit_) {
    ++*limit_;
  }
  if (limit_) limit_ = std::max(*limit_, config_.floor);
}

bool UserverLinear::Overloaded(const Second& second) {
  const int64_t normal = std::max(long_latency_.Mean(), config_.least_mean_ms);
  if (short_latency_.Least() > config_.burst_factor * normal) return true;
  long_latency_.Add(second.mean_latency_ms);
  return second.total > 0 &&
         static_cast<double>(second.failed) >
             config_.most_failures * static_cast<double>(second.total);
}

}  // namespace weir::rivals
