// What weir answers to a request, and why.

#ifndef WEIR_DECISION_H_
#define WEIR_DECISION_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/time.h"

namespace weir {

enum class Verdict : uint8_t {
  kAdmit,  // Run it now.
  kQueue,  // It waits; a later decision, admit or shed, follows.
  kShed,   // Refuse it.
};

// The closed list of reasons.  The first four go with kAdmit and kQueue, the
// others with kShed.  New ones are added before kCount only.
enum class Reason : uint8_t {
  kRoom,       // There was room to run.
  kWaited,     // It waited, then there was room.
  kExempt,     // Its resource is exempt: no stage looks at it.
  kQueued,     // No room to run; it may wait.
  kPaused,     // An operator paused its resource.
  kDeadline,   // It cannot be answered in time any more.
  kLevel,      // Demand exceeds capacity and it is below the cut.
  kLimit,      // No room to run, and no room to wait.
  kCancelled,  // Its caller went away while it waited.
  kShutdown,   // The guard was stopped while it waited.
  kStale,      // The link it came on is too far behind.
  kQuota,      // Its resource has spent its calls for the window.
  kTiers,      // The rate is in a band that drops a share, and this is of it.
  kSystem,     // The system rule: rate, threads, latency, load or CPU.
  kCount,
};
inline constexpr size_t kReasons = static_cast<size_t>(Reason::kCount);
inline constexpr size_t kFirstShedReason = static_cast<size_t>(Reason::kPaused);

constexpr size_t Index(Reason reason) { return static_cast<size_t>(reason); }

// The steps of a decision, in their order.
enum class Stage : uint8_t {
  kExempt,
  kSwitch,
  kDeadline,
  kStale,
  kQuota,
  kTiers,
  kSystem,
  kLevel,
  kLimit,
  kCount
};
inline constexpr size_t kStages = static_cast<size_t>(Stage::kCount);

constexpr size_t Index(Stage stage) { return static_cast<size_t>(stage); }

// Whether a stage acts, only counts what it would have refused, or is skipped.
enum class StageMode : uint8_t { kEnforce, kShadow, kOff };

std::string_view Name(Verdict verdict);  // "admit", "queue", "shed"
std::string_view Name(Reason reason);    // "room", "waited", ... as above
std::string_view Name(Stage stage);      // "exempt", "switch", ... as above
std::string_view Name(StageMode mode);   // "enforce", "shadow", "off"

struct Decision {
  Verdict verdict = Verdict::kAdmit;
  Reason reason = Reason::kRoom;
  // When shed: after what time a new attempt is likely to meet room.  An
  // estimate without jitter; adapters add that.  Zero when not shed, and when
  // nothing can be said (cancelled, deadline).
  Duration retry_after{};
  // When shed: retries abound, so others are short too; let the caller give up
  // or answer with less, and nobody above it try again.
  bool never_retry = false;
  // When admitted: how much cheaper than in full to answer it, as its
  // resource's degrade levels are numbered.  0: in full.
  uint8_t degrade = 0;
};

// How an admitted request ended.
enum class Outcome : uint8_t {
  kOk,         // Answered.  Its latency teaches.
  kError,      // Failed.  Is no answer: teaches nothing.
  kTimedOut,   // Cut off by a timeout.  It would have taken at least so long,
               // and the service may still be at work for it.
  kCancelled,  // Its caller went away.  The same.
  kIgnored,    // A fast failure, a stream, an upgrade: teaches nothing.
  kCount,
};
inline constexpr size_t kOutcomes = static_cast<size_t>(Outcome::kCount);

constexpr size_t Index(Outcome outcome) { return static_cast<size_t>(outcome); }
std::string_view Name(Outcome outcome);  // "ok", "error", "timed_out", ...

}  // namespace weir

#endif  // WEIR_DECISION_H_
