// AegisBbr: the shedder of Kratos, Little's law armed by the CPU.
//
//   most inflight = floor(best passes per bucket * least latency in ms
//                         * buckets per second / 1000 + .5)
//
// over 10 s in 100 buckets, the current one left out; a bucket's latency is
// its mean in ms, rounded up.  It refuses while more than that (and more than
// one) are inflight, if CPU >= 80 %, or if a first refusal was under a second
// ago.  CPU is an average with factor .05 every half second: a time constant
// of ten.
//
// Source: [AEGIS] ratelimit/bbr, its defaults, quirks included: failed
// requests count as passes, latencies below 1 ms count as passes only, and
// without any latency the least one is 1 ms, which leaves a cold server one
// request at a time when the CPU is high.  Best and least are computed once
// per bucket.  Deviations: buckets are aligned to the timeline's zero.

#ifndef WEIR_RIVALS_AEGIS_BBR_H_
#define WEIR_RIVALS_AEGIS_BBR_H_

#include <chrono>
#include <cstdint>
#include <optional>

#include "weir/rivals/bucket_window.h"
#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class AegisBbr final : public Gate, public Learner, public Watcher {
 public:
  struct Config {
    Duration window = std::chrono::seconds(10);
    int32_t buckets = 100;
    int32_t cpu_threshold_permille = 800;
  };

  explicit AegisBbr(const Config& config);

  bool Admit(const Arrival& arrival) override;
  void Learn(const Finish& finish) override;
  void Watch(const Signals& signals) override;
  Duration period() const override { return std::chrono::milliseconds(500); }

  int64_t BestPasses(Instant now);
  int64_t LeastLatencyMs(Instant now);
  int64_t MostInflight(Instant now);
  // For tests and for a start in the middle of things.
  void set_cpu_permille(int64_t cpu) { cpu_permille_ = cpu; }
  int64_t cpu_permille() const { return cpu_permille_; }

 private:
  struct Cached {
    Instant at;
    int64_t value;
  };
  bool Refuses(const Arrival& arrival);
  bool Fresh(const std::optional<Cached>& cached, Instant now) const;

  Config config_;
  Duration bucket_;
  BucketWindow passes_;     // count.
  BucketWindow latencies_;  // count and sum, in ms.
  std::optional<Cached> best_;
  std::optional<Cached> least_;
  std::optional<Instant> first_refusal_;
  int64_t cpu_permille_ = 0;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_AEGIS_BBR_H_
