// GrpcRetryThrottle: retries only while more than half of the tokens are there.
//
// A failure takes a token, a success brings `token_ratio` of one.
//
// Source: [GRPC-A6], the example: 10 tokens, 0.1.  Deviations: asked when a
// retry is due, where gRPC asks when the attempt before it has failed; one
// instance is one process that calls one backend.

#ifndef WEIR_RIVALS_GRPC_RETRY_THROTTLE_H_
#define WEIR_RIVALS_GRPC_RETRY_THROTTLE_H_

#include <cstdint>

#include "weir/rivals/rival.h"

namespace weir::rivals {

class GrpcRetryThrottle final : public Gate, public Learner {
 public:
  struct Config {
    int32_t max_milli = 10'000;  // Thousandths of a token, as gRPC keeps them.
    int32_t ratio_milli = 100;
  };

  explicit GrpcRetryThrottle(const Config& config)
      : config_(config), tokens_(config.max_milli) {}

  bool Admit(const Arrival& arrival) override;
  void Learn(const Finish& finish) override;

  int32_t tokens_milli() const { return tokens_; }

 private:
  Config config_;
  int32_t tokens_;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_GRPC_RETRY_THROTTLE_H_
