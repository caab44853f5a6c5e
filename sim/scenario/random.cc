#include "weir/scenario/random.h"

#include <bit>

namespace weir::scenario {

namespace {

// ln 2 in two parts; the first has 21 low bits of zero, so that its product
// with an exponent is exact.  Source: fdlibm, e_log.c.
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr uint64_t kMantissa = 0x000fffffffffffff;
constexpr uint64_t kOne = 0x3ff0000000000000;

}  // namespace

double Log(double x) {
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh(s).
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & kMantissa) | kOne);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double s2 = s * s;
  // |s| < 0.1716: the first term left out is below 2^-56 of the sum.  Added
  // up in pairs (Estrin), so that the processor need not wait for each term.
  const double s4 = s2 * s2;
  const double s8 = s4 * s4;
  const double low =
      (1.0 / 3 + s2 * (1.0 / 5)) + s4 * (1.0 / 7 + s2 * (1.0 / 9));
  const double middle =
      (1.0 / 11 + s2 * (1.0 / 13)) + s4 * (1.0 / 15 + s2 * (1.0 / 17));
  const double high = 1.0 / 19 + s2 * (1.0 / 21);
  const double series = low + s8 * (middle + s8 * high);
  const double ln_m = 2 * s + 2 * s * (s2 * series);
  const double e = exponent;
  return e * kLn2High + (ln_m + e * kLn2Low);
}

double Exp(double x) {
  // e^x = 2^k * e^r with |r| <= ln(2) / 2.
  const double scaled = x * 1.44269504088896338700 + (x < 0 ? -0.5 : 0.5);
  const int k = static_cast<int>(scaled);
  const double r = (x - k * kLn2High) - k * kLn2Low;
  double sum = 1;
  for (int n = 14; n >= 1; --n) sum = 1 + sum * r / n;
  return sum * std::bit_cast<double>(static_cast<uint64_t>(k + 1023) << 52);
}

}  // namespace weir::scenario
