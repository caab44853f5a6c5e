// SplitMix64: a seeded stream of 64 random bits at a time.
//
// Source: [STEELE2014], figure 16 with its constants (mix variant 13).  Two
// controllers with the same seed see the same draws on every compiler.

#ifndef WEIR_RIVALS_RANDOM_H_
#define WEIR_RIVALS_RANDOM_H_

#include <cstdint>

namespace weir::rivals {

// Bijective; spreads every input bit over the whole word.
constexpr uint64_t Mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// A draw as a number in [0, 1): its upper 53 bits.
constexpr double ToUnit(uint64_t draw) {
  return static_cast<double>(draw >> 11) * 0x1p-53;
}

class SplitMix64 {
 public:
  explicit constexpr SplitMix64(uint64_t seed) : state_(seed) {}

  constexpr uint64_t Next() { return Mix64(state_ += 0x9e3779b97f4a7c15u); }
  constexpr double NextUnit() { return ToUnit(Next()); }

 private:
  uint64_t state_;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_RANDOM_H_
