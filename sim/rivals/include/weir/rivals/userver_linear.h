// UserverLinear: userver's congestion control for the clients of a database,
// a limit on inflight that falls by 5 % and grows by one a second.
//
// Once a second: overloaded when more than 5 % timed out, or when the least of
// the last three mean latencies exceeds five times max(20 ms, the mean of the
// last 30), which is frozen meanwhile.  The first limit is the mean load of
// three seconds.  When calm, it is lifted above load + 10.  It never goes
// below 10, and seconds with fewer than 10 requests count only while a limit
// is in force.  The first 30 such seconds only warm it up.
//
// Source: [USERVER] controllers/linear.cpp at c2f43b4e.  As there, averages
// begin with zeros.  Deviations: load is the inflight at the end of the
// second; errors are timeouts and failures alike.

#ifndef WEIR_RIVALS_USERVER_LINEAR_H_
#define WEIR_RIVALS_USERVER_LINEAR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class UserverLinear final : public Limiter, public Learner {
 public:
  struct Config {
    double most_failures = 0.05;
    int64_t safe_margin = 10;
    int64_t floor = 10;
    int64_t least_requests = 10;
    int32_t warm_up_s = 30;
    int64_t least_mean_ms = 20;
    int64_t burst_factor = 5;
  };
  struct Second {
    int64_t total = 0;
    int64_t failed = 0;
    int64_t mean_latency_ms = 0;
    int64_t load = 0;
  };

  explicit UserverLinear(const Config& config);

  int32_t Limit(Instant now) override;
  void Learn(const Finish& finish) override;

  // One step of the controller.
  void Feed(const Second& second);

 private:
  // The last n values; those not yet given are 0.
  class Ring {
   public:
    explicit Ring(size_t size) : values_(size) {}
    void Add(int64_t value);
    int64_t Mean() const;
    int64_t Least() const;

   private:
    std::vector<int64_t> values_;
    size_t next_ = 0;
  };

  void CatchUp(Instant now);
  bool Overloaded(const Second& second);

  Config config_;
  Ring load_;
  Ring short_latency_;
  Ring long_latency_;
  int32_t warmed_s_ = 0;
  std::optional<int64_t> limit_;
  Second second_;
  int64_t latency_ms_ = 0;
  std::optional<Instant> second_ends_;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_USERVER_LINEAR_H_
