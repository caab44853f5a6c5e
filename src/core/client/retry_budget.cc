#include "weir/client/retry_budget.h"

#include <algorithm>

#include "../relaxed.h"

namespace weir {
namespace {

constexpr int32_t kMilli = 1000;

// Digits past the third are dropped, as [GRPC-A6] says; what is left of
// 0.3 * 1000 in binary must not be.
int32_t MilliOf(double ratio) {
  return static_cast<int32_t>(ratio * kMilli + 1e-6);
}

}  // namespace

std::optional<Error> RetryTokens::Config::Check() const {
  if (max_tokens < 1 || max_tokens > 1000) {
    return Error{"`retries.max_tokens` must lie between 1 and 1000"};
  }
  if (!(token_ratio <= 1000) || MilliOf(token_ratio) < 1) {
    return Error{"`retries.token_ratio` must lie between 0.001 and 1000"};
  }
  return std::nullopt;
}

RetryTokens::RetryTokens(const Config& config)
    : max_(config.max_tokens * kMilli),
      ratio_(MilliOf(config.token_ratio)),
      tokens_(config.max_tokens * kMilli) {}

void RetryTokens::Add(int32_t milli) {
  const int32_t max = max_.load(kRelaxed);
  int32_t seen = tokens_.load(kRelaxed);
  int32_t wanted = 0;
  do {
    wanted = std::clamp(seen + milli, 0, max);
    if (wanted == seen) return;  // Full, as nearly always.
  } while (!tokens_.compare_exchange_weak(seen, wanted, kRelaxed));
}

int32_t RetryTokens::Earned(Instant now) const {
  const int64_t max = max_.load(kRelaxed);
  const int64_t left = max - tokens_.load(kRelaxed);
  if (left <= 0) return 0;
  const int64_t passed =
      now.time_since_epoch().count() - settled_at_.load(kRelaxed);
  if (passed >= kRefill.count()) return static_cast<int32_t>(left);
  return static_cast<int32_t>(
      std::clamp<int64_t>(passed * max / kRefill.count(), 0, left));
}

// Before tokens are taken.  A time too short for a thousandth goes on.
void RetryTokens::Settle(Instant now) {
  const int64_t at = now.time_since_epoch().count();
  int64_t since = settled_at_.load(kRelaxed);
  const int32_t earned = Earned(now);
  const bool full = tokens_.load(kRelaxed) >= max_.load(kRelaxed);
  if (at <= since || (earned == 0 && !full)) return;
  if (settled_at_.compare_exchange_strong(since, at, kRelaxed)) Add(earned);
}

void RetryTokens::OnSuccess() { Add(ratio_.load(kRelaxed)); }

bool RetryTokens::OnFailure(Instant now) {
  Settle(now);
  Add(-kMilli);
  return allows(now);
}

bool RetryTokens::allows(Instant now) const {
  return 2 * (tokens_.load(kRelaxed) + Earned(now)) > max_.load(kRelaxed);
}

bool RetryTokens::SpendForHedge(Instant now) {
  if (!allows(now)) return false;
  Settle(now);
  Add(-kMilli);
  return true;
}

void RetryTokens::Replace(const Config& config) {
  const int64_t max = config.max_tokens * kMilli;
  const int64_t left = tokens_.load(kRelaxed);
  const int64_t old_max = max_.load(kRelaxed);
  max_.store(static_cast<int32_t>(max), kRelaxed);
  ratio_.store(MilliOf(config.token_ratio), kRelaxed);
  tokens_.store(static_cast<int32_t>(left * max / old_max), kRelaxed);
}

double RetryTokens::tokens(Instant now) const {
  return static_cast<double>(tokens_.load(kRelaxed) + Earned(now)) / kMilli;
}

std::optional<Error> RetryAllowance::Config::Check() const {
  if (retries < 0 || retries > 100'000) {
    return Error{"`retries.per_window` must lie between 0 and 100000"};
  }
  if (window <= Duration{} || window > std::chrono::hours(1)) {
    return Error{"`retries.window` must be above 0s and at most 1h"};
  }
  return std::nullopt;
}

RetryAllowance::RetryAllowance(const Config& config)
    : config_(config),
      taken_(std::make_unique<std::atomic<int64_t>[]>(
          static_cast<size_t>(config.retries))) {
  for (int32_t i = 0; i < config.retries; ++i) {
    taken_[static_cast<size_t>(i)].store(INT64_MIN / 2, kRelaxed);
  }
}

std::shared_ptr<RetryAllowance> RetryAllowance::OfProcess() {
  static const auto allowance = std::make_shared<RetryAllowance>(Config());
  return allowance;
}

bool RetryAllowance::Spend(Instant now) {
  if (config_.retries == 0) return false;
  const int64_t at = now.time_since_epoch().count();
  for (;;) {
    uint64_t next = next_.load(std::memory_order_acquire);
    auto& oldest = taken_[next % static_cast<uint64_t>(config_.retries)];
    int64_t seen = oldest.load(kRelaxed);
    if (next != next_.load(std::memory_order_acquire)) continue;
    if (at - seen < config_.window.count()) return false;
    // Whoever takes the place may be stopped before it moves on, so all help.
    const bool taken = oldest.compare_exchange_strong(seen, at, kRelaxed);
    next_.compare_exchange_strong(next, next + 1, std::memory_order_acq_rel);
    if (taken) return true;
  }
}

}  // namespace weir
