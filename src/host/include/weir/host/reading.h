// Reading<T>: what a sensor says, a value or the reason why there is none.
//
// A sensor never aborts a start-up and never invents a number.  It has no value
// for one of two causes, which callers treat alike (act as if the sensor did
// not exist) but people do not:
//   pending  it works, this reading has no value yet: a rate needs two readings
//   inert    it cannot work here, or does not work now; why() says what is
//   wrong
// An inert sensor goes on trying, so it comes to life by itself when it can.

#ifndef WEIR_HOST_READING_H_
#define WEIR_HOST_READING_H_

#include <optional>
#include <string>
#include <utility>

namespace weir::host {

template <typename T>
class [[nodiscard]] Reading {
 public:
  Reading() : why_("it was not read yet") {}
  // NOLINTNEXTLINE(google-explicit-constructor): returns read as values.
  Reading(T value) : value_(std::move(value)) {}

  static Reading Pending(std::string why) {
    return Reading(false, std::move(why));
  }
  static Reading Inert(std::string why) {
    return Reading(true, std::move(why));
  }
  // No value, for the same cause as `other`, which must not be ok().
  template <typename U>
  static Reading Because(const Reading<U>& other) {
    return Reading(other.inert(), other.why());
  }

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  bool inert() const { return inert_; }

  // Undefined unless ok().
  const T& value() const { return *value_; }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return &*value_; }

  // One line for a person, lower case, no full stop; the same cause always
  // reads the same.  Empty when ok().
  const std::string& why() const { return why_; }

 private:
  Reading(bool inert, std::string why) : inert_(inert), why_(std::move(why)) {}

  std::optional<T> value_;
  bool inert_ = false;
  std::string why_;
};

}  // namespace weir::host

#endif  // WEIR_HOST_READING_H_
