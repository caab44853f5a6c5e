#include "text.h"

#include <charconv>
#include <cmath>

namespace weir::host {
namespace {

constexpr std::string_view kBlanks = " \t\n";

template <typename T>
std::optional<T> ToNumber(std::string_view word) {
  T value{};
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return line;
}

std::string_view TakeWord(std::string_view& text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) {
    text = {};
    return {};
  }
  text.remove_prefix(begin);
  const size_t end = text.find_first_of(kBlanks);
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(word.size());
  return word;
}

std::optional<uint64_t> ToCount(std::string_view word) {
  return ToNumber<uint64_t>(word);
}

std::optional<double> ToReal(std::string_view word) {
  const auto value = ToNumber<double>(word);
  if (!value || !std::isfinite(*value) || std::signbit(*value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<Duration> ToTime(std::string_view word, Duration unit) {
  const auto count = ToCount(word);
  const auto most = static_cast<uint64_t>(Duration::max() / 2 / unit);
  if (!count || *count > most) return std::nullopt;
  return static_cast<int64_t>(*count) * unit;
}

std::string_view ValueOf(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = TakeLine(text);
    if (TakeWord(line) == key) return TakeWord(line);
  }
  return {};
}

bool ListHas(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    if (list.substr(0, comma) == item) return true;
    list.remove_prefix(comma == list.npos ? list.size() : comma + 1);
  }
  return false;
}

std::optional<int> CountCpus(std::string_view list) {
  uint64_t count = 0;
  if (!ForEachCpuRange(list, [&](uint64_t first, uint64_t last) {
        count += last - first + 1;
      })) {
    return std::nullopt;
  }
  return static_cast<int>(count);
}

}  // namespace weir::host
