// A word of the region under the explorer: each access is a point at which
// another thread may go on or the process may end.

#ifndef WEIR_CORE_EXPLORE_WORD_H_
#define WEIR_CORE_EXPLORE_WORD_H_

#include <atomic>
#include <cstdint>
#include <cstring>

namespace weir::explore {

// Before each access of any thread.  What it waits for is decided there.
void Point();
// The accesses themselves, as x86 does them: a plain store may become visible
// after loads that follow it; an exchange, or a store that is sequentially
// consistent, waits until all of the thread's have.  With no exploration under
// way they go to memory.
uint64_t Load(const void* word, size_t size);
void Store(void* word, size_t size, uint64_t value, bool wait);
void Settle();  // The stores of this thread become visible.

template <typename T>
class Word {
 public:
  constexpr Word() = default;
  constexpr Word(T value) : value_(value) {}  // NOLINT: as std::atomic.
  Word(const Word&) = delete;
  Word& operator=(const Word&) = delete;

  static constexpr bool is_always_lock_free = true;

  T load(std::memory_order = std::memory_order_seq_cst) const {
    Point();
    return FromBits(Load(&value_, sizeof(T)));
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) {
    Point();
    Store(&value_, sizeof(T), ToBits(value),
          order == std::memory_order_seq_cst);
  }
  T exchange(T value, std::memory_order = std::memory_order_seq_cst) {
    return Change([&](T) { return value; });
  }
  T fetch_add(T by, std::memory_order = std::memory_order_seq_cst) {
    return Change([&](T before) { return static_cast<T>(before + by); });
  }
  T fetch_or(T bits, std::memory_order = std::memory_order_seq_cst) {
    return Change([&](T before) { return static_cast<T>(before | bits); });
  }
  T fetch_and(T bits, std::memory_order = std::memory_order_seq_cst) {
    return Change([&](T before) { return static_cast<T>(before & bits); });
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order = {},
                               std::memory_order = {}) {
    const T wanted = expected;
    expected =
        Change([&](T before) { return before == wanted ? desired : before; });
    return expected == wanted;
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order = {},
                             std::memory_order = {}) {
    return compare_exchange_strong(expected, desired);
  }
  T operator=(T value) {
    store(value);
    return value;
  }
  operator T() const { return load(); }  // NOLINT: as std::atomic.

 private:
  static uint64_t ToBits(T value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
  }
  static T FromBits(uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
  }
  template <typename F>
  T Change(F change) {
    Point();
    Settle();
    const T before = value_;
    value_ = change(before);
    return before;
  }

  T value_{};
};

}  // namespace weir::explore

#endif  // WEIR_CORE_EXPLORE_WORD_H_
