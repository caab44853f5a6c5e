// Reading numbers out of the kernel's text files: strict, without allocation.

#ifndef WEIR_HOST_TEXT_H_
#define WEIR_HOST_TEXT_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/time.h"

namespace weir::host {

// Takes the next line, without its newline, off the front of `text`.
std::string_view TakeLine(std::string_view& text);

// Takes the next word off the front of `text`; empty when none is left.
std::string_view TakeWord(std::string_view& text);

// The whole of `word` as a number.  Nothing for anything else: signs, blanks,
// units, overflow; for ToReal also for NaN, infinity and what is below zero.
std::optional<uint64_t> ToCount(std::string_view word);
std::optional<double> ToReal(std::string_view word);

// The whole of `word` as a time counted in `unit`.  Nothing above 146 years,
// half of what a Duration holds, so that differences never overflow.
std::optional<Duration> ToTime(std::string_view word, Duration unit);

// The second word of the line whose first is `key`; empty when there is none.
std::string_view ValueOf(std::string_view text, std::string_view key);

// Whether `list`, comma-separated, has `item`.
bool ListHas(std::string_view list, std::string_view item);

// CPU numbers of a list as the kernel writes it ("0-2,7") go to `add(first,
// last)`.  False when it is no such list, or empty, or has a number of 2^20
// or above.
template <typename Add>
bool ForEachCpuRange(std::string_view list, Add add) {
  constexpr uint64_t kMaxCpus = 1 << 20;
  if (list.empty()) return false;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    std::string_view range = list.substr(0, comma);
    if (comma == list.size() - 1) return false;
    list = comma == list.npos ? std::string_view() : list.substr(comma + 1);
    const size_t dash = range.find('-');
    const auto first = ToCount(range.substr(0, dash));
    const auto last =
        dash == range.npos ? first : ToCount(range.substr(dash + 1));
    if (!first || !last || *first > *last || *last >= kMaxCpus) return false;
    add(*first, *last);
  }
  return true;
}

// How many CPUs such a list names; nothing when it is not one.
std::optional<int> CountCpus(std::string_view list);

}  // namespace weir::host

#endif  // WEIR_HOST_TEXT_H_
