// The right to run, and the place of a request that waits for it.

#ifndef WEIR_PERMIT_H_
#define WEIR_PERMIT_H_

#include <cstdint>
#include <utility>

#include "weir/decision.h"
#include "weir/degrade/drill.h"
#include "weir/request.h"
#include "weir/time.h"

namespace weir {

class Guard;

// What a request has taken of the stages that count, to be given back if a
// later stage refuses it.
struct Taken {
  uint32_t quota_window = 0;
  uint32_t system_window = 0;
  uint32_t client_window = 0;
  bool quota = false;
  bool client = false;
  bool system = false;
};

// Given by Guard::Admit() or Waiter::TakePermit(); ended by Guard::Finish().
// A permit that is destroyed unfinished ends as Outcome::kIgnored at the last
// instant that its guard was told; ending one twice does nothing.  Must not
// outlive its guard.  Belongs to the guard's thread.
class Permit {
 public:
  Permit() = default;
  Permit(Permit&& other) noexcept : data_(other.data_) {
    other.data_.guard = nullptr;
  }
  Permit& operator=(Permit&& other) noexcept {
    if (this != &other) {
      if (data_.guard != nullptr) Abandon();
      data_ = other.data_;
      other.data_.guard = nullptr;
    }
    return *this;
  }
  ~Permit() {
    if (data_.guard != nullptr) Abandon();
  }

  // False for a default, moved-from or finished permit.
  explicit operator bool() const { return data_.guard != nullptr; }

  Instant admitted_at() const { return data_.admitted_at; }

 private:
  friend class Guard;
  struct Data {
    Guard* guard = nullptr;
    Instant arrived{};
    Instant admitted_at{};
    Instant deadline = kNever;
    int32_t inflight_before = 0;  // Inflight when it was admitted, itself not.
    uint32_t due = 0;             // Its bucket in DuePlaces; 0: none.
    uint16_t row = 0;             // Of its resource in the region.
    Criticality criticality = Criticality::kImportant;
    bool counted = false;  // Holds a place under the limit.
    bool exempt = false;
    bool started = true;  // The caller did not leave before it was told.
    bool in_row = false;  // Counted among the places of its resource.
    DrillSide drill = DrillSide::kNone;
    bool in_system = false;  // Counts as inflight for the system rule.
  };
  explicit Permit(const Data& data) : data_(data) {}
  void Abandon();

  Data data_;
};

}  // namespace weir

#endif  // WEIR_PERMIT_H_
