// Randomness as an argument: 64 uniform bits that the caller brings.

#ifndef WEIR_CLIENT_DRAWS_H_
#define WEIR_CLIENT_DRAWS_H_

#include <cstdint>

namespace weir {

// Where an adapter may get its draws: splitmix64, one for each thread, seeded
// with something that differs between processes.  Source: [STEELE2014].
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t x = state_ += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

 private:
  uint64_t state_;
};

// In [0, 1).
constexpr double UnitOf(uint64_t draw) {
  return static_cast<double>(draw >> 11) * 0x1p-53;
}

}  // namespace weir

#endif  // WEIR_CLIENT_DRAWS_H_
