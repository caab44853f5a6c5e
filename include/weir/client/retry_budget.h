// What retries may cost: two budgets, both of which must have room.
//
// RetryTokens is the relative one.  Each failure takes a token, each success
// brings a fraction of one, and there are retries only while more than half of
// the tokens are there.  With the usual tenth, a backend that fails more than
// one call in eleven for long gets no retries: load grows by a tenth at most,
// where three attempts each would have tripled it.  What is over is forgotten:
// all of them come back within a minute without failures.
//
// RetryAllowance is the absolute one: so many a minute and process, whatever
// it calls.
//
// Source: [GRPC-A6] throttling of retries and hedges; [SRE2016] chapter 22, 60
// retries per minute and process.  A minute is any minute here, not one of the
// clock's.  That tokens come back with time is ours, as in [FINAGLE], whose
// budget grows by ten a second.

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

  // In which an empty budget fills by itself.  Chosen: as long as the absolute
  // one looks back; ten tokens so let one failure in six seconds go for
  // nothing.
  static constexpr Duration kRefill = std::chrono::minutes(1);

  // Full.  `config` must pass its check.
  explicit RetryTokens(const Config& config);

  void OnSuccess();
  // Returns whether a retry may follow.
  bool OnFailure(Instant now);
  bool allows(Instant now) const;

  // Takes a token now for a second attempt that answers no failure: a hedge.
  // [GRPC-A6] lets hedges go free until they fail.
  bool SpendForHedge(Instant now);

  // Keeps the share of tokens that is left.
  void Replace(const Config& config);

  double tokens(Instant now) const;

 private:
  void Add(int32_t milli);
  // What time has brought since the last failure.
  int32_t Earned(Instant now) const;
  void Settle(Instant now);

  // Thousandths of a token.
  std::atomic<int32_t> max_;
  std::atomic<int32_t> ratio_;
  std::atomic<int32_t> tokens_;
  std::atomic<int64_t> settled_at_{0};  // What it brought until then is in.
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

  // The one of this process, of the default size: for whoever has none.
  static std::shared_ptr<RetryAllowance> OfProcess();

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
