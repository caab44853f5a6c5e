#include "weir/rate/quota.h"

#include <algorithm>

namespace weir {
namespace {

constexpr uint64_t Mask(int bits) { return (uint64_t{1} << bits) - 1; }

// A window in whole microseconds: with 20 bits of calls the products below
// stay under 2^57.
constexpr int64_t Micros(Duration d) { return d.count() / 1000; }
constexpr int64_t CeilMicros(Duration d) { return (d.count() + 999) / 1000; }

}  // namespace

std::optional<Error> Quota::Check(const Config& config) {
  if (config.calls < 0 || config.calls > kMostCalls) {
    return Error{"`calls` of a quota must lie between 0 and 2000000000"};
  }
  if (config.kind == Kind::kSliding && config.calls > kMostSlidingCalls) {
    return Error{
        "`calls` of a sliding quota must not exceed 1000000; take a shorter "
        "window, or kind \"fixed\""};
  }
  if (config.kind != Kind::kCalendar &&
      (config.window < kShortestWindow || config.window > kLongestWindow ||
       config.window.count() % 1000 != 0)) {
    return Error{
        "`window` of a quota must lie between 10ms and 24h, in whole "
        "microseconds"};
  }
  return std::nullopt;
}

Quota::Answer Quota::JudgeFixed(const Config& config,
                                const WindowWord<32>::Reading& reading,
                                Duration left) {
  Answer answer;
  answer.window = static_cast<uint32_t>(reading.window);
  answer.counted = static_cast<int64_t>(reading.value);
  answer.admitted = answer.counted < config.calls;
  if (!answer.admitted) {
    answer.retry_after = config.calls > 0 ? left : kForEver;
  }
  return answer;
}

Quota::Sliding Quota::ReadSliding(uint64_t word, uint64_t window) {
  window &= Mask(kNumberBits);
  const Sliding stored{word >> (2 * kCallsBits),
                       word >> kCallsBits & Mask(kCallsBits),
                       word & Mask(kCallsBits)};
  const uint64_t behind = (stored.window - window) & Mask(kNumberBits);
  if (behind <= WindowWord<32>::kLate) return stored;
  if (behind == Mask(kNumberBits)) return {window, stored.current, 0};
  return {window, 0, 0};
}

Quota::Answer Quota::JudgeSliding(const Config& config, const Sliding& state,
                                  Instant now) {
  const int64_t window = Micros(config.window);
  // One whose clock is late stands at the beginning of the word's window.
  const bool late =
      state.window != (WindowNumber(now, config.window) & Mask(kNumberBits));
  const Duration left = late ? config.window : WindowLeft(now, config.window);
  const auto previous = static_cast<int64_t>(state.previous);
  const auto current = static_cast<int64_t>(state.current);
  const int64_t covered = CeilMicros(left);
  Answer answer;
  answer.window = static_cast<uint32_t>(state.window);
  answer.counted = current + (previous * covered + window - 1) / window;
  answer.admitted = answer.counted < config.calls;
  if (answer.admitted) return answer;
  if (config.calls == 0) {
    answer.retry_after = kForEver;
    return answer;
  }
  // When the part of the earlier window that is still covered has become small
  // enough: in this window, or with this as the earlier one in the next.
  const auto most_covered = [&](int64_t earlier, int64_t own) {
    return std::chrono::microseconds((config.calls - 1 - own) * window /
                                     std::max<int64_t>(earlier, 1));
  };
  answer.retry_after =
      current < config.calls
          ? left - most_covered(previous, current)
          : left + config.window -
                std::min<Duration>(most_covered(current, 0), config.window);
  return answer;
}

Quota::Answer Quota::Take(const Config& config, Instant now) {
  if (config.kind == Kind::kFixed) {
    return Take(config,
                Period{static_cast<uint32_t>(WindowNumber(now, config.window)),
                       WindowLeft(now, config.window)});
  }
  const uint64_t window = WindowNumber(now, config.window);
  uint64_t seen = sliding_.load(std::memory_order_relaxed);
  while (true) {
    const Sliding state = ReadSliding(seen, window);
    Answer answer = JudgeSliding(config, state, now);
    if (!answer.admitted) return answer;
    const uint64_t next = state.window << (2 * kCallsBits) |
                          state.previous << kCallsBits | (state.current + 1);
    if (sliding_.compare_exchange_weak(seen, next, std::memory_order_relaxed)) {
      return answer;
    }
  }
}

// How many windows a caller can be behind others whose clocks are as right.
// Workers learn of a calendar's edge within some seconds of each other; one
// who is behind by more sees a word of a clock that was ahead.
uint64_t Quota::LatePeriods(const Config& config, const Period& period) {
  if (config.kind != Kind::kCalendar) return WindowWord<32>::kLate;
  // Chosen: the calendar is told each second, and a worker may be slow.
  return period.left <= std::chrono::seconds(5) ? 1 : 0;
}

Quota::Answer Quota::Take(const Config& config, const Period& period) {
  const auto reading = calls_.Update(
      period.number,
      [&](uint64_t calls) -> std::optional<uint64_t> {
        if (static_cast<int64_t>(calls) >= config.calls) return std::nullopt;
        return calls + 1;
      },
      LatePeriods(config, period));
  return JudgeFixed(config, reading, period.left);
}

Quota::Answer Quota::Peek(const Config& config, Instant now) const {
  if (config.kind == Kind::kFixed) {
    return Peek(config,
                Period{static_cast<uint32_t>(WindowNumber(now, config.window)),
                       WindowLeft(now, config.window)});
  }
  return JudgeSliding(config,
                      ReadSliding(sliding_.load(std::memory_order_relaxed),
                                  WindowNumber(now, config.window)),
                      now);
}

Quota::Answer Quota::Peek(const Config& config, const Period& period) const {
  return JudgeFixed(config,
                    calls_.Read(period.number, LatePeriods(config, period)),
                    period.left);
}

void Quota::GiveBack(const Config& config, uint32_t window) {
  if (config.kind != Kind::kSliding) return calls_.TakeAway(window);
  uint64_t seen = sliding_.load(std::memory_order_relaxed);
  while (true) {
    const uint64_t stored = seen >> (2 * kCallsBits);
    const uint64_t later = (stored - window) & Mask(kNumberBits);
    if (later > 1) return;
    const int shift = later == 1 ? kCallsBits : 0;
    if ((seen >> shift & Mask(kCallsBits)) == 0) return;
    if (sliding_.compare_exchange_weak(seen, seen - (uint64_t{1} << shift),
                                       std::memory_order_relaxed)) {
      return;
    }
  }
}

}  // namespace weir
