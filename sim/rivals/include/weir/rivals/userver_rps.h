// UserverRps: userver's congestion control of incoming requests per second.
//
// Once a second: a request that waited longer than `late` to run is an
// overload event.  Pressure is more than 2 of them (1 while overloaded).
// More than 3 s of pressure make it overloaded, more than 3 s without end it.
// The first limit is .75 of the present rate; under pressure it falls by 2 %
// a second; when not overloaded it grows by at most 2 %, at most 2^k after k
// calm seconds, and at least 1.  After 1000 calm seconds it is lifted.
//
// Source: [USERVER] core/src/congestion_control/controller.cpp with the values
// its documentation gives.  The rate is held by a bucket that holds a second's
// worth.  Deviations: `late` is 2 ms, the least its documentation advises; the
// rate is counted from admitted requests.

#ifndef WEIR_RIVALS_USERVER_RPS_H_
#define WEIR_RIVALS_USERVER_RPS_H_

#include <chrono>
#include <cstdint>
#include <optional>

#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class UserverRps final : public Gate, public Taker {
 public:
  struct Config {
    Duration late = std::chrono::milliseconds(2);
    int64_t floor = 10;
    double up_ratio = 0.02;
    double down_ratio = 0.02;
    double start_ratio = 0.75;
    int64_t up_level = 2;    // Overload events that are still calm;
    int64_t down_level = 1;  // the same while overloaded.
    int32_t overload_on_s = 3;
    int32_t overload_off_s = 3;
    int32_t lift_after_s = 1000;
  };
  struct Second {
    int64_t overload_events = 0;
    int64_t load = 0;  // Requests.
  };

  explicit UserverRps(const Config& config) : config_(config) {}

  bool Admit(const Arrival& arrival) override;
  // Refuses nothing; counts the late ones.
  bool Take(const Start& start) override;

  // One step of the controller.
  void Feed(const Second& second);
  std::optional<int64_t> rate_limit() const { return rate_limit_; }
  bool overloaded() const { return overloaded_; }

 private:
  void CatchUp(Instant now);
  bool UnderPressure(const Second& second) const;
  int64_t NextLimit(int64_t load) const;
  bool SpendToken(Instant now);

  Config config_;
  Second second_;
  std::optional<Instant> second_ends_;
  bool overloaded_ = false;
  int32_t pressed_s_ = 0;
  int32_t calm_s_ = 0;
  int64_t most_up_ = 1;
  std::optional<int64_t> rate_limit_;
  double tokens_ = 0;
  Instant refilled_{};
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_USERVER_RPS_H_
