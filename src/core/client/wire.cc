#include "weir/client/wire.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

namespace weir::wire {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kTtl = ";ttl_ms=";

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool IsName(std::string_view name, std::string_view lower) {
  return name.size() == lower.size() &&
         std::equal(name.begin(), name.end(), lower.begin(),
                    [](char a, char b) { return Lower(a) == b; });
}

// All of `text` as a number of 32 bits, or nothing.
std::optional<int32_t> ParseNumber(std::string_view text) {
  int32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

template <typename Number>
std::string_view Digits(Number number, std::array<char, 24>& buffer) {
  const auto result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  return {buffer.data(), static_cast<size_t>(result.ptr - buffer.data())};
}

}  // namespace

Text& Text::operator<<(std::string_view text) {
  const size_t size = std::min(text.size(), bytes_.size() - size_);
  std::memcpy(bytes_.data() + size_, text.data(), size);
  size_ += size;
  return *this;
}

Text& Text::operator<<(int64_t number) {
  std::array<char, 24> buffer;
  return *this << Digits(number, buffer);
}

Text& Text::operator<<(uint64_t number) {
  std::array<char, 24> buffer;
  return *this << Digits(number, buffer);
}

Text FormatPushback(std::optional<Duration> retry_after) {
  if (!retry_after) return Text() << int64_t{-1};
  // Rounded up: to come a little late is harmless.
  const int64_t ms = (retry_after->count() + 999'999) / 1'000'000;
  return Text() << std::clamp<int64_t>(ms, 0,
                                       std::numeric_limits<int32_t>::max());
}

Text FormatLevel(const OverloadLevel& level) {
  return Text() << Name(level.hopeless) << kTtl
                << int64_t{level.ttl / milliseconds(1)};
}

std::optional<OverloadLevel> ParseLevel(std::string_view text) {
  const size_t split = text.find(kTtl);
  if (split == std::string_view::npos) return std::nullopt;
  const auto criticality = ParseCriticality(text.substr(0, split));
  const auto ttl_ms = ParseNumber(text.substr(split + kTtl.size()));
  if (!criticality || !ttl_ms || *ttl_ms <= 0) return std::nullopt;
  return OverloadLevel{*criticality, milliseconds(*ttl_ms)};
}

void ReadAnswerHeader(std::string_view name, std::string_view value,
                      Answer& answer) {
  if (IsName(name, kPushback)) {
    const auto ms = ParseNumber(value);
    if (ms && *ms >= 0) {
      answer.retry_after = milliseconds(*ms);
    } else {
      answer.never_retry = true;
    }
  } else if (IsName(name, kRetryAfter)) {
    // The push-back is finer, whichever comes first.
    const auto s = ParseNumber(value);
    if (s && *s >= 0 && !answer.retry_after) answer.retry_after = seconds(*s);
  } else if (IsName(name, kReason)) {
    answer.by_weir = true;
  } else if (IsName(name, kLevel)) {
    if (const auto level = ParseLevel(value)) answer.level = level;
  }
}

AnswerKind KindOfHttpStatus(int status) {
  switch (status) {
    case 429:
    case 503:
      return AnswerKind::kRefused;
    case 502:
      return AnswerKind::kUnavailable;
    case 504:
      return AnswerKind::kTimedOut;
    default:
      return status >= 500 ? AnswerKind::kError : AnswerKind::kOk;
  }
}

AnswerKind KindOfGrpcCode(int code) {
  switch (code) {
    case 1:
      return AnswerKind::kCancelled;
    case 4:
      return AnswerKind::kTimedOut;
    case 8:
      return AnswerKind::kRefused;
    case 14:
      return AnswerKind::kUnavailable;
    case 2:
    case 13:
    case 15:
      return AnswerKind::kError;
    default:
      return AnswerKind::kOk;
  }
}

}  // namespace weir::wire
