#include "weir/scenario/service_time.h"

namespace weir::scenario {
namespace {

Duration Times(Duration mean, double factor) {
  return Duration(
      static_cast<int64_t>(static_cast<double>(mean.count()) * factor + .5));
}

}  // namespace

Duration Draw(const Span& span, Random& random) {
  switch (span.distribution) {
    case Span::Distribution::kConstant:
      return span.mean;
    case Span::Distribution::kExponential:
      return Times(span.mean, random.Exponential());
    case Span::Distribution::kLognormal:
      // E[exp(sigma z)] = exp(sigma^2 / 2), which the second term takes out.
      return Times(span.mean, Exp(span.sigma * random.Normal() -
                                  span.sigma * span.sigma / 2));
    case Span::Distribution::kUniform:
      return Times(span.mean, 2 * random.Uniform());
    case Span::Distribution::kBimodal:
      return random.Uniform() < span.slow_ratio ? span.slow : span.fast;
  }
  return span.mean;
}

Duration DrawFor(const Span& span, uint64_t seed, size_t tier, size_t stage,
                 uint64_t number) {
  if (span.distribution == Span::Distribution::kConstant) return span.mean;
  Random random(Mix(seed) + number, kService + 256 * tier + stage);
  return Draw(span, random);
}

bool Takes(const Stage& stage, uint16_t route, uint64_t seed, size_t tier,
           size_t index, uint64_t number) {
  if (stage.route && *stage.route != route) return false;
  if (stage.ratio >= 1) return true;
  // A stream apart from the time's: there are at most 128 stages.
  Random random(Mix(seed) + number, kService + 256 * tier + 128 + index);
  return random.Uniform() < stage.ratio;
}

const Failure* FailureOf(const Tier& tier, uint16_t route, uint64_t seed,
                         size_t index, uint64_t number, Duration at) {
  for (size_t i = 0; i < tier.failures.size(); ++i) {
    const Failure& failure = tier.failures[i];
    if (at < failure.from || (failure.until && at >= *failure.until) ||
        (failure.route && *failure.route != route)) {
      continue;
    }
    if (failure.ratio >= 1) return &failure;
    // The last of the tier's streams, which no stage draws from.
    Random random(Mix(seed) + number, kService + 256 * index + 255);
    return random.Uniform() < failure.ratio ? &failure : nullptr;
  }
  return nullptr;
}

}  // namespace weir::scenario
