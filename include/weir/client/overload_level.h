// What an overloaded server tells its callers about whom it refuses.
//
// Its answers carry a level: the most critical class of which it has admitted
// nothing for a while.  Requests of that class and of those below are hopeless
// and can be dropped before they are sent.  A level holds for a short time
// (`ttl`) and fades: a caller drops all but a few of the hopeless at first and
// none at the end, unless a new answer renews it.  The few that are sent all
// the same are how the server learns that it may admit them again, and their
// callers that it does: with the first one that is taken on the level is over.
//
// Source: [ZHOU2018] for levels that travel in answers, [CHO2020] for demand
// that is kept at home; that a level fades, and the probes, are ours.

#ifndef WEIR_CLIENT_OVERLOAD_LEVEL_H_
#define WEIR_CLIENT_OVERLOAD_LEVEL_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "weir/decision.h"
#include "weir/request.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir {

struct OverloadLevel {
  Criticality hopeless = Criticality::kSheddable;  // And all that is below it.
  Duration ttl{};

  bool operator==(const OverloadLevel&) const = default;
};

// The server's half: finds the level from what its guard decided.  One for all
// threads of a process; without locks.
class LevelMeter {
 public:
  // A class is hopeless when it was refused for so long, without a gap as long,
  // and nothing of it or below it was admitted meanwhile.  Chosen: ten times as
  // long as a queue lasts that a guard keeps.
  static constexpr Duration kSilence = std::chrono::milliseconds(100);
  // And when so many of it were refused.  Chosen: at a true share of a half,
  // once in a million.
  static constexpr int32_t kLeastRefused = 20;
  // Chosen: two silences, so that the level outlives the gaps between answers.
  static constexpr Duration kTtl = std::chrono::milliseconds(200);

  void OnAdmitted(Criticality criticality, Instant now);
  // Refused for lack of capacity: Reason::kLevel or kLimit.
  void OnRefused(Criticality criticality, Instant now);

  // What to send with an answer; nothing when no class is hopeless.  The ttl
  // is random in kTtl +- 50 %, so that callers do not come back together.
  std::optional<OverloadLevel> Read(Instant now, uint64_t draw) const;

 private:
  struct Class {
    // Since the newest admission of it, or of one below.
    std::atomic<int32_t> refused{0};
    std::atomic<int64_t> first_at{0};  // The first of those, ns, and
    std::atomic<int64_t> last_at{0};   // the last.
  };
  std::array<Class, kCriticalities> classes_;
};

// The caller's half, for one backend.  Threads: any, without locks.
class LearnedLevel {
 public:
  struct Config {
    StageMode mode = StageMode::kEnforce;
    // Share of the hopeless that is sent all the same.  Chosen: enough for the
    // server to see demand, too few to cost it anything.  [0, 1].
    double probe_ratio = 0.01;
    // And one after so long a time without any.  (0, 1 min].
    Duration probe_interval = LevelMeter::kTtl;

    std::optional<Error> Check() const;
    bool operator==(const Config&) const = default;
  };

  explicit LearnedLevel(const Config& config) : config_(config) {}

  // An answer brought a level.  A ttl above a second is taken as a second.
  void Learn(const OverloadLevel& level, Instant now);

  // The server took on a request that was sent at `sent_at`, and said nothing
  // of a level.  One that was sent before the level was learned says nothing.
  void OnTaken(Criticality criticality, Instant sent_at);

  // Whether to send a request.
  [[nodiscard]] bool Admit(Criticality criticality, Instant now, uint64_t draw);

  // Whether any level is in force.
  bool active(Instant now) const { return Get(now).strength > 0; }

 private:
  struct Known {
    Criticality hopeless = Criticality::kSheddable;
    double strength = 0;  // 1 when new, 0 when it has faded.
  };
  Known Get(Instant now) const;

  const Config config_;
  // Learned at (us) << 16 | ttl (ms) << 2 | class; 0: nothing yet.
  std::atomic<uint64_t> level_{0};
  std::atomic<int64_t> last_probe_{INT64_MIN / 2};
};

}  // namespace weir

#endif  // WEIR_CLIENT_OVERLOAD_LEVEL_H_
