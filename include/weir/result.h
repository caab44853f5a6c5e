// Result<T>: a value, or an Error that says what is wrong.  Result<T, E>: the
// same with another type for what is wrong, which has an EndWithError() too.

#ifndef WEIR_RESULT_H_
#define WEIR_RESULT_H_

#include <string>
#include <utility>
#include <variant>

namespace weir {

// One message for a person: lower case, no full stop, says where, what, why
// and how to fix it.
struct Error {
  std::string message;
};

// Ends the program with the message on the standard error: somebody took the
// value of an error.  A policy that is not there then says so, where a null
// pointer would only crash.
[[noreturn]] void EndWithError(const Error& error);

template <typename T, typename E = Error>
class [[nodiscard]] Result {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): returns read as values.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // When not ok(), the program ends with the error's message.
  T& value() & {
    Check();
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    Check();
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    Check();
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Undefined when ok().
  const E& error() const { return *std::get_if<1>(&state_); }

 private:
  void Check() const {
    if (!ok()) EndWithError(error());
  }

  std::variant<T, E> state_;
};

}  // namespace weir

#endif  // WEIR_RESULT_H_
