// The sample service without its sockets: workers, a queue, and time as an
// argument.
//
// It plays the first tier of a scenario: stages that queue first come first
// served, changes, pauses.  The queue has no bound and nothing in it is ever
// given up, because that is what real services do.
//
// Capacity is exact: work takes time, not cpu, and what waits when a worker
// becomes free starts at the instant at which that worker became free, however
// late somebody looks.

#ifndef WEIR_CLI_BACKEND_SERVICE_H_
#define WEIR_CLI_BACKEND_SERVICE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "weir/scenario/random.h"
#include "weir/scenario/scenario.h"
#include "weir/time.h"

namespace weir::cli {

class BackendService {
 public:
  struct Done {
    uint64_t token = 0;
    Instant at{};
    Duration service{};  // At speed 1, without waiting.
  };

  // `scenario` must outlive this; its first tier is played, its first replica.
  BackendService(const scenario::Scenario& scenario, uint64_t seed,
                 Instant start);

  // Work arrives.  `number` decides what it costs (scenario::DrawFor).  `now`
  // never goes back, here and below.
  void Arrive(Instant now, uint64_t number, uint16_t route, uint64_t token);

  // Appends what is done by `now`, in order.
  void Advance(Instant now, std::vector<Done>& done);

  // When something happens next; kNever when nothing will.
  Instant next() const;

  // The scenario began at `start`, not after `now`: its changes and pauses
  // count from there.  Work that is here stays.  Ends what the two below did.
  void Begin(Instant now, Instant start);
  void SetWorkers(Instant now, int32_t workers);
  void SetSpeed(Instant now, double speed);
  // Forgets all work that waits, and returns its tokens; what runs is finished.
  std::vector<uint64_t> Clear();

  int32_t workers() const { return stations_[0].servers; }
  double speed(Instant now) const;
  size_t waiting() const;
  size_t running() const { return running_.size(); }

 private:
  struct Job {
    uint64_t number = 0;
    uint64_t token = 0;
    Duration service{};
    uint16_t route = 0;
    uint16_t stage = 0;  // The one it is in, or waits for.
  };
  // Where jobs queue.  The first one has the workers.
  struct Station {
    int32_t servers = 0;
    int32_t busy = 0;
    std::deque<uint32_t> waiting;
  };
  struct Running {
    Instant end{};
    uint64_t order = 0;  // Of two at one instant the earlier started.
    uint32_t job = 0;
  };
  struct NextPause {
    Instant at = kNever;
    size_t index = 0;
  };
  struct Later {
    bool operator()(const Running& a, const Running& b) const {
      return a.end != b.end ? a.end > b.end : a.order > b.order;
    }
  };

  const scenario::Tier& tier() const { return scenario_.tiers[0]; }
  Station* StationOf(uint16_t stage);
  void Play(Instant now);
  void Enter(uint32_t job, Instant now);
  void Start(uint32_t job, Instant now);
  void Finish(const Running& running);
  void Fill(Station& station, Instant now);
  void ApplyChanges(Instant now);
  void BeginPause();
  void ScheduleNext(NextPause& pause);

  const scenario::Scenario& scenario_;
  uint64_t seed_;
  Instant start_;
  std::vector<Station> stations_;   // [0]: workers; then locks and pools.
  std::vector<size_t> station_of_;  // Per stage; io: SIZE_MAX.
  std::vector<Job> jobs_;
  std::vector<uint32_t> free_;
  std::vector<Running> running_;  // A heap, by Later.
  std::vector<Done> done_;
  uint64_t order_ = 0;
  std::optional<int32_t> set_workers_;
  std::optional<double> set_speed_;

  scenario::Random gaps_;
  std::vector<NextPause> pauses_;
  Instant paused_until_ = Instant::min();
  Instant next_change_ = kNever;
};

// What of a scenario the sample service does not play, as a list for a person;
// empty when it plays all of it.
std::string NotPlayed(const scenario::Scenario& scenario);

}  // namespace weir::cli

#endif  // WEIR_CLI_BACKEND_SERVICE_H_
