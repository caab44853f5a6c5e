// What retries may cost: two budgets, both of which must have room.
//
// RetryTokens is the relative one.  Each failure takes a token, each success
// brings a fraction of one, and there are retries only while more than half of
// the tokens are there.  With the usual tenth, a backend that fails more than
// one call in eleven for long gets no retries: load grows by a tenth at most,
// where three attempts each would have tripled it.
//
// RetryAllowance is the absolute one: so many a minute and process, whatever
// it calls.
//
// Source: [GRPC-A6] throttling of retries and hedges; [SRE2016] chapter 22, 60
// retries per minute and process.  A minute is any minute here, not one of the
// clock's.

#ifndef WEIR_CLIENT_RETRY_BUDGET_H_
#define WEIR_CLIENT_RETRY_BUDGET_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "weir/result.h"
#include "weir/time.h"

namespace weir {

// Of one backend.  Threads: any, without locks.
class RetryTokens {
 public:
  struct Config {
    // Source: [GRPC-A6], the example.
    int32_t max_tokens = 10;   // [1, 1000].
    double token_ratio = 0.1;  // (0, 1000]; a thousandth is the least.

    std::optional<Error> Check() const;
    bool operator==(const Config&) const = default;
  };

  // Full.  `config` must pass its check.
  explicit RetryTokens(const Config& config);

  void OnSuccess();
  // Returns whether a retry may follow.
  bool OnFailure();
  bool allows() const;

  // Takes a token now for a second attempt that answers no failure: a hedge.
  // [GRPC-A6] lets hedges go free until they fail.
  bool SpendForHedge();

  // Keeps the share of tokens that is left.
  void Replace(const Config& config);

  double tokens() const;

 private:
  void Add(int32_t milli);

  // Thousandths of a token.
  std::atomic<int32_t> max_;
  std::atomic<int32_t> ratio_;
  std::atomic<int32_t> tokens_;
};

// Of one process.  Threads: any, without locks.
class RetryAllowance {
 public:
  struct Config {
    int32_t retries = 60;                       // [0, 100'000]; 0: none at all.
    Duration window = std::chrono::minutes(1);  // (0, 1 h].

    std::optional<Error> Check() const;
    bool operator==(const Config&) const = default;
  };

  explicit RetryAllowance(const Config& config);

  // Takes one if fewer than `retries` were taken in the window before `now`.
  bool Spend(Instant now);

 private:
  const Config config_;
  // When the last `retries` ones were taken, ns; the oldest is overwritten.
  std::unique_ptr<std::atomic<int64_t>[]> taken_;
  std::atomic<uint64_t> next_{0};
};

}  // namespace weir

#endif  // WEIR_CLIENT_RETRY_BUDGET_H_
