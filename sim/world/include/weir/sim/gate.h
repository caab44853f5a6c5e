// A gate stands before a replica and says which visits may run: weir's guard,
// a rival's law, or nothing.

#ifndef WEIR_SIM_GATE_H_
#define WEIR_SIM_GATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "weir/decision.h"
#include "weir/rivals/registry.h"
#include "weir/scenario/scenario.h"
#include "weir/sim/event_queue.h"
#include "weir/sim/visit.h"
#include "weir/time.h"

namespace weir::sim {

// What a gate may ask of its replica, and tell it.
class GateHost {
 public:
  // A visit that waits in the gate may run, or is refused.
  virtual void RunWaiting(Visit& visit) = 0;
  virtual void RefuseWaiting(Visit& visit, const Decision& decision) = 0;

  // For laws that look at the machine: worker-time spent so far, the workers
  // there are, the work that waits for one, and how long the first of it has.
  virtual Duration cpu_busy() const = 0;
  virtual int32_t workers() const = 0;
  virtual int32_t cpu_waiting() const = 0;
  virtual int32_t cpu_load() const = 0;  // The same, with what has a worker.
  virtual Duration cpu_queue_delay() const = 0;

 protected:
  ~GateHost() = default;
};

class Gate {
 public:
  virtual ~Gate() = default;

  // kQueue: the visit waits in the gate until it tells the host.
  virtual Decision Offer(Visit& visit, Instant now) = 0;

  // Tells the host what else that decided; the host knows by then what has
  // become of the visit that was offered.
  virtual void Settle(Instant now) = 0;

  // A visit that was admitted ended.  May tell the host of others.
  virtual void Finish(Visit& visit, Outcome outcome, Instant now) = 0;

  // A visit that waits in the gate is no longer wanted.  May tell the host of
  // others.
  virtual void Cancel(Visit& visit, Instant now) = 0;

  // An admitted visit has waited `queue_delay` for its first worker and may
  // now have it.  False: it is refused instead.  Only laws that sit inside the
  // server see this.
  virtual bool Turn(Visit& visit, Duration queue_delay, Instant now) = 0;

  // Whether it sits inside the server, where nobody tells it that a caller of
  // what runs has left.
  virtual bool inside() const { return false; }

  // Most visits it lets run at once; infinite when it does not count.
  virtual double limit() const = 0;
  virtual int64_t waiting() const = 0;
};

struct GateContext {
  const scenario::Scenario& scenario;
  size_t tier;
  size_t replica;
  uint64_t seed;
  EventQueue& events;
  GateHost& host;
};

// Makes the gate of one replica, when the world begins and whenever the
// replica comes up again.
using GateFactory = std::function<std::unique_ptr<Gate>(const GateContext&)>;

// What stands at the callers.
struct CallerSide {
  enum class Kind : uint8_t {
    kPlain,  // They try again as the scenario says.
    kGuard,  // A client guard.
    kLaw,    // The same as plain, under a rival's law.
  };
  Kind kind = Kind::kPlain;
  // At all clients; else at the callers of those tiers that ask for it.
  bool everywhere = false;
  const rivals::Entry* law = nullptr;  // Of kLaw, which only clients have.
};

// What `weir sim` compares: a name, its gates, and what its callers do.
struct Algorithm {
  std::string name;
  GateFactory make;
  CallerSide callers{};
  // Whether answers carry the level that its gates imply.
  bool tells_level = false;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_GATE_H_
