// Random numbers that are the same everywhere: one seeded stream per entity.
//
// The standard library's engines are specified to the bit but its
// distributions are not, so those are written out here.  Each entity (the
// arrivals, the clients, the service times of one stage) draws from a stream of
// its own: what one of them draws never changes what another one gets.
//
// std::log and std::exp are not used: libraries differ in their last bit, and
// glibc's own do from one CPU to another.  sqrt is exact by IEEE 754.
//
// Source: [BLACKMAN2021] xoshiro256++ and [STEELE2014] splitmix64, as in the
// authors' reference code.

#ifndef WEIR_SCENARIO_RANDOM_H_
#define WEIR_SCENARIO_RANDOM_H_

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "weir/splitmix64.h"

namespace weir::scenario {

// One step of splitmix64: a good hash of 64 bits, and the way to seed others.
constexpr uint64_t Mix(uint64_t x) { return Mix64(x + kGoldenGamma); }

// Which entity draws; `Random(seed, stream)` gives each its own sequence.
// Numbered entities add their number: kService + 256 * tier + stage.
enum Stream : uint64_t {
  kArrivals = 1,
  kAttributes = 2,  // Class, client and route of each arrival.
  kBursts = 3,
  kRetries = 4,
  kCallers = 5,        // Client guards, and the laws of callers.
  kThinking = 6,       // Of closed clients.
  kHogs = 1 << 10,     // + its number.
  kNetwork = 1 << 12,  // + the tier's.
  kPauses = 1 << 14,   // + the tier's.
  kBalance = 1 << 16,  // + the tier's.
  kService = 1 << 20,  // + 256 * tier + stage.
};

// Natural logarithm and exponential within a few units in the last place, made
// of +, -, * and / alone.
double Log(double x);  // x > 0 and normal.
double Exp(double x);  // |x| <= 700.

class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0) {
    uint64_t x = Mix(seed) ^ Mix(~stream);
    for (uint64_t& word : state_) {
      word = Mix(x);
      x += kGoldenGamma;
    }
  }

  uint64_t Next() {
    const uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // In (0, 1), never an end: the middle of one of 2^53 equal intervals.
  double Uniform() {
    return (static_cast<double>(Next() >> 11) + 0.5) * 0x1p-53;
  }

  // In [0, n), n >= 1.  Off uniform by less than n / 2^64.
  uint64_t Below(uint64_t n) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(Next()) * n) >> 64);
  }

  // Mean 1.
  double Exponential() { return -Log(Uniform()); }

  // Mean 0, deviation 1 (the polar method, one of the pair).
  double Normal() {
    for (;;) {
      const double x = 2 * Uniform() - 1;
      const double y = 2 * Uniform() - 1;
      const double square = x * x + y * y;
      if (square < 1) return x * std::sqrt(-2 * Log(square) / square);
    }
  }

 private:
  std::array<uint64_t, 4> state_{};
};

}  // namespace weir::scenario

#endif  // WEIR_SCENARIO_RANDOM_H_
