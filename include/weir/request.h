// A request: a unit of work that asks to start.

#ifndef WEIR_REQUEST_H_
#define WEIR_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/time.h"

namespace weir {

// How much it hurts to shed a request.  Smaller values are shed last; the
// values themselves are an index into arrays and never leave the program.
enum class Criticality : uint8_t {
  kVital = 0,
  kImportant = 1,
  kDeferrable = 2,
  kSheddable = 3,
};
inline constexpr size_t kCriticalities = 4;

constexpr size_t Index(Criticality c) { return static_cast<size_t>(c); }

// "vital", "important", "deferrable", "sheddable".
std::string_view Name(Criticality criticality);

// Accepts those names in any case, and the names of the SRE book in the same
// order: critical_plus, critical, sheddable_plus, sheddable ('-' for '_' too).
// Both sets give "sheddable" the same meaning.
std::optional<Criticality> ParseCriticality(std::string_view name);

struct Request {
  // Index into Policy::resources.
  uint16_t resource = 0;
  Criticality criticality = Criticality::kImportant;
  // A stable hash of who asks, for fairness; 0 when unknown (all of those share
  // one usage; see weir/shed/fair_usage.h).
  uint64_t client = 0;
  // When it reached this process, on the timeline of `now`.
  Instant arrived{};
  // When its answer becomes useless; kNever if its caller waits for ever.
  Instant deadline = kNever;
  // How often it was tried before, as its caller says: 0 is the first time.
  uint8_t attempt = 0;
  // How far behind the link is that it came on (HelloTimeline::delay()); zero
  // when that is unknown or no matter, as while the server is not overloaded.
  Duration behind{};
};

}  // namespace weir

#endif  // WEIR_REQUEST_H_
