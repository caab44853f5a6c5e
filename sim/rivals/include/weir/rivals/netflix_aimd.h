// NetflixAimd: additive increase, multiplicative decrease.
//
//   dropped or latency > timeout:  limit = int(limit * backoff)
//   2 * inflight >= limit:         limit = limit + 1
//
// Source: [NETFLIX-CL] AIMDLimit, its defaults.  As there, `inflight` is what
// was running when the request started, itself counted.  Deviations: none.

#ifndef WEIR_RIVALS_NETFLIX_AIMD_H_
#define WEIR_RIVALS_NETFLIX_AIMD_H_

#include <chrono>
#include <cstdint>

#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class NetflixAimd final : public Limiter, public Learner {
 public:
  struct Config {
    int32_t initial = 20;
    int32_t floor = 20;
    int32_t ceiling = 200;
    double backoff = 0.9;
    Duration timeout = std::chrono::seconds(5);
  };

  explicit NetflixAimd(const Config& config);

  int32_t Limit(Instant) override { return limit_; }
  void Learn(const Finish& finish) override;

 private:
  Config config_;
  int32_t limit_;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_NETFLIX_AIMD_H_
