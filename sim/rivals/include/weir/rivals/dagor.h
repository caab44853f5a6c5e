// Dagor: WeChat's overload control: a cut along business priority and user
// priority, moved by the mean queueing time.
//
// A request has a level: 128 * business + user, 0 the most important; it
// passes when that is not above the cursor.  A window ends after `window` or
// 2000 requests.  With a mean queueing time above 20 ms it was overloaded:
//
//   expected = (1 - .05) * admitted        when overloaded
//   expected = admitted + ceil(.01 * all)  when not
//
// and the cursor walks from where it stands, level by level of the window's
// histogram of arrivals, until the admitted would have been the expected.
//
// Source: [ZHOU2018] sections 4.2.2 and 4.2.3; the walk and its rounding as in
// [DAGOR-GRPC].  Business is the criticality, user a hash of client and hour.
// Deviations: one server; callers are not told the level (level() lets a
// simulated caller ask).

#ifndef WEIR_RIVALS_DAGOR_H_
#define WEIR_RIVALS_DAGOR_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "weir/request.h"
#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class Dagor final : public Gate, public Taker {
 public:
  static constexpr int32_t kUsers = 128;
  static constexpr int32_t kLevels =
      kUsers * static_cast<int32_t>(kCriticalities);

  struct Config {
    Duration window = std::chrono::seconds(1);
    int64_t window_requests = 2000;
    Duration threshold = std::chrono::milliseconds(20);
    double alpha = 0.05;
    double beta = 0.01;
  };

  explicit Dagor(const Config& config) : config_(config) {}

  bool Admit(const Arrival& arrival) override;
  // Refuses nothing; measures the queueing time.
  bool Take(const Start& start) override;

  // The least important level that still passes.
  int32_t level() const { return cursor_; }
  static int32_t LevelOf(const Arrival& arrival);

 private:
  void EndWindow(Instant now);

  Config config_;
  std::array<int64_t, kLevels> arrivals_{};
  int64_t all_ = 0;
  int64_t admitted_ = 0;
  Duration queueing_{};
  int64_t started_ = 0;
  Instant window_start_{};
  int32_t cursor_ = kLevels - 1;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_DAGOR_H_
