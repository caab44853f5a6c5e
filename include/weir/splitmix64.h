// SplitMix64: random bits from a counter, and a good hash of 64 bits.
//
// Randomness is an argument everywhere here; this is where an adapter, a test
// or the simulator may get it.  The same seed gives the same draws on every
// compiler.
//
// Source: [STEELE2014], figure 16 with its constants (mix variant 13).

#ifndef WEIR_SPLITMIX64_H_
#define WEIR_SPLITMIX64_H_

#include <atomic>
#include <cstdint>

namespace weir {

// What the counter grows by.
inline constexpr uint64_t kGoldenGamma = 0x9e3779b97f4a7c15;

// Bijective; spreads every bit over the whole word.
constexpr uint64_t Mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// A draw as a number in [0, 1): its upper 53 bits.
constexpr double ToUnit(uint64_t draw) {
  return static_cast<double>(draw >> 11) * 0x1p-53;
}

// One thread at a time.
class SplitMix64 {
 public:
  explicit constexpr SplitMix64(uint64_t seed) : state_(seed) {}

  constexpr uint64_t Next() { return Mix64(state_ += kGoldenGamma); }
  constexpr double NextUnit() { return ToUnit(Next()); }

 private:
  uint64_t state_;
};

// The same for any number of threads, without locks.
class SharedSplitMix64 {
 public:
  explicit SharedSplitMix64(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    return Mix64(kGoldenGamma +
                 state_.fetch_add(kGoldenGamma, std::memory_order_relaxed));
  }

 private:
  std::atomic<uint64_t> state_;
};

}  // namespace weir

#endif  // WEIR_SPLITMIX64_H_
