// Counts what happens in a world, in memory that does not grow with time.

#ifndef WEIR_SIM_WORLD_METRICS_H_
#define WEIR_SIM_WORLD_METRICS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "oracle.h"
#include "weir/scenario/histogram.h"
#include "weir/scenario/scenario.h"
#include "weir/scenario/tally.h"
#include "weir/sim/outcome.h"
#include "weir/sim/visit.h"
#include "weir/time.h"

namespace weir::sim {

// What the world looks like at the end of a bin.
struct Gauges {
  double limit = 0;
  double best_limit = 0;
  int64_t waiting = 0;
};

class Metrics final : public OracleListener {
 public:
  static constexpr Duration kStep = std::chrono::milliseconds(100);

  // `scenario` must outlive this.  `bin`: a multiple of kStep, or zero.
  Metrics(const scenario::Scenario& scenario, uint64_t seed, Duration bin);

  // In order of time.
  void OnArrival(const Operation& operation);
  void OnAttempt(const Visit& visit, const Operation& operation);
  // An attempt that its own caller did not let out.
  void OnHeld(const Operation& operation, Instant now);
  void OnAdmitted(const Visit& visit, Instant now);
  void OnShed(const Visit& visit, Instant now);
  // An attempt was answered; `good`: in time, and the first that was.
  void OnAnswer(const Visit& visit, const Operation& operation, bool good,
                Instant now);
  // Nothing more will happen for it.
  void OnEnded(const Operation& operation, scenario::Ending ending,
               Instant now);
  // Service time of a visit and of all that it called.
  void OnSpent(Duration spent, bool useful);

  // Once for each kStep, after the oracle was brought there; `oracle_lag` is
  // how long after a slot it reports it.
  void CloseStep(Instant now, const Gauges& gauges, Duration oracle_lag);

  Outcomes Make(uint64_t events, uint64_t unanswered) const;

  void OnIdeal(Duration slot, size_t cls, double work,
               double requests) override;
  void OnIdealLoss(Duration arrived, Duration since) override;

 private:
  struct Sum {
    double work = 0;  // Seconds.
    double requests = 0;
  };
  // Of a phase or a class.
  struct Group {
    scenario::Figures counts;
    scenario::Histogram latency;
    Sum good;   // By the instant of the answer.
    Sum ideal;  // By the instant of the service.
    uint64_t calm_attempts = 0;
    uint64_t calm_shed = 0;
  };
  // Attempts by when they started, until it is known whether the oracle had to
  // give up anything of their time.
  struct Young {
    std::vector<uint32_t> attempts;  // By class.
    std::vector<uint32_t> shed;
    size_t phase = 0;
  };
  // A span in which the oracle gives up work.
  struct Overload {
    Duration from{};
    Duration last{};       // Something was given up.
    Duration converged{};  // Start of the first second from which on all are
                           // good; kUnknown: the last one was not.
    size_t phase = 0;
    // When, after the last of it, nothing went wrong for a second.
    std::optional<Duration> recovered{};
  };
  struct Client {
    uint32_t offered = 0;
    uint32_t good = 0;
    // Of these what belongs to phases that are over, and what was its due in
    // them.
    uint32_t past_offered = 0;
    uint32_t past_good = 0;
    double past_due = 0;
  };
  // Clients from `first_client` on, and what they are in clients_.
  struct Parties {
    uint32_t first_client;
    uint32_t first_party;
    bool one;  // All of them together.
  };
  struct Window {  // 50 ms, for inversions.
    std::vector<uint32_t> admitted;
    std::vector<uint32_t> shed;
  };

  // Keeps the longer; an absent one is shorter than any.
  static void Lengthen(std::optional<Duration>& longest, Duration other) {
    longest = std::max(longest.value_or(Duration{}), other);
  }

  static constexpr Duration kYoung = std::chrono::milliseconds(10);
  static constexpr Duration kInversion = std::chrono::milliseconds(50);
  static constexpr Duration kSecond = std::chrono::seconds(1);
  static constexpr Duration kUnknown = Duration::max();
  static constexpr size_t kStepsOfSecond = 10;

  // Clients with fewer requests, and classes with fewer answers for each, say
  // nothing about fairness.
  // Chosen: the deviation of what a client gets is then below a third.
  static constexpr uint32_t kMinForFairness = 10;

  void FindParties();
  Client& PartyOf(const scenario::Arrival& arrival);
  size_t PhaseAt(Duration at);
  Young& YoungAt(Duration at);
  void AgeUntil(int64_t keep);
  void CloseInversions(Duration at);
  void JudgeSecond(Duration end);
  void EndOverload(Duration now);
  void OnBad(Duration at);
  void EndRecovery(Duration until);
  Sum& StepGood(Duration at);
  Sum& StepIdeal(Duration at);
  Bin* BinAt(Duration at);
  void ShareOut(size_t phase);
  double Fairness() const;
  void Fill(scenario::Figures& figures, const Group& group) const;

  const scenario::Scenario& scenario_;
  const uint64_t seed_;
  const Duration bin_;
  const Duration deadline_;  // The longest.
  std::vector<Duration> phase_ends_;
  size_t phase_ = 0;  // Of the last PhaseAt().

  std::vector<Group> phases_;
  std::vector<Group> classes_;

  std::vector<Young> young_;
  int64_t oldest_young_ = 0;
  Duration last_loss_ = Duration::min();  // Arrival of what was given up.
  Duration last_loss_since_{};

  // Goodput and ideal of the last steps, until they are judged: rings.
  std::vector<Sum> step_good_;
  std::vector<Sum> step_ideal_;

  std::optional<Overload> overload_;
  std::optional<Duration> recovering_since_;
  size_t recovering_phase_ = 0;
  Duration last_bad_{};

  Window window_;
  int64_t window_index_ = 0;
  uint64_t inversions_ = 0;
  uint64_t admitted_ = 0;

  struct Moments {
    double count = 0;
    double sum = 0;
    double squares = 0;
  };
  std::vector<Moments> steadiness_;  // By phase.

  std::vector<Parties> parties_;              // Of hogs, then closed clients.
  std::vector<std::vector<Client>> clients_;  // By class, then party.
  size_t shared_out_ = 0;                     // Phases whose dues are in there.
  Duration spent_{};
  Duration useful_{};

  std::vector<Bin> series_;  // Counts; made rates at the end.
  scenario::Histogram bin_latency_;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_WORLD_METRICS_H_
