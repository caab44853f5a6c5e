#include "text.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace weir::sim_report {
namespace {

constexpr std::string_view kUnknown = "\xEF\xBF\xBD";  // U+FFFD.
constexpr std::string_view kNarrowSpace = "\xE2\x80\xAF";
constexpr std::string_view kMinus = "\xE2\x88\x92";

// Bytes of the UTF-8 character at the start of `text`; 0: it is none.
size_t CharacterLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  uint32_t code = lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  const bool overlong =
      (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  const bool c1 = code < 0xA0;
  return overlong || surrogate || c1 || code > 0x10FFFF ? 0 : length;
}

void AddEscaped(std::string& out, char c) {
  switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\'':
      out += "&#39;";
      break;
    default:
      const bool control = static_cast<uint8_t>(c) < 0x20 && c != '\n';
      if (control || c == 0x7F) {
        out += kUnknown;
      } else {
        out += c;
      }
  }
}

// Trailing zeros say nothing here.
std::string Trimmed(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

// Digits behind the point that leave three significant figures.
int DigitsOf(double value) {
  const double size = std::fabs(value);
  return size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
}

}  // namespace

std::string Escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    if (length == 1) {
      AddEscaped(out, text[0]);
    } else if (length == 0) {
      out += kUnknown;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string Breakable(std::string_view name) {
  constexpr std::string_view kSeparators = "-+@_/.";
  std::string out;
  while (!name.empty()) {
    const size_t separator = name.find_first_of(kSeparators);
    const size_t end =
        separator == std::string_view::npos ? name.size() : separator + 1;
    out += Escaped(name.substr(0, end));
    name.remove_prefix(end);
    if (!name.empty()) out += "<wbr>";
  }
  return out;
}

std::string Shortened(std::string_view text, size_t most) {
  std::vector<size_t> begins;  // Of each character.
  for (size_t i = 0; i < text.size();) {
    begins.push_back(i);
    const size_t length = CharacterLength(text.substr(i));
    i += length == 0 ? 1 : length;
  }
  if (begins.size() <= most) return std::string(text);
  const size_t tail = most / 3;
  const size_t head = most - 1 - tail;
  return std::string(text.substr(0, begins[head])) + "…" +
         (tail == 0 ? std::string()
                    : std::string(text.substr(begins[begins.size() - tail])));
}

std::string Grouped(double value, int digits) {
  std::string text = fmt::format("{:.{}f}", std::fabs(value), digits);
  const bool zero = text.find_first_not_of("0.") == std::string::npos;
  size_t end = text.find('.');
  if (end == std::string::npos) end = text.size();
  // Four digits read well without a space.
  for (size_t at = end; at > 3 && end > 4;) {
    at -= 3;
    text.insert(at, kNarrowSpace);
  }
  return (value < 0 && !zero ? std::string(kMinus) : std::string()) + text;
}

std::string Compact(double value) {
  constexpr std::pair<double, std::string_view> kMultipliers[] = {
      {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [size, letter] : kMultipliers) {
    if (std::fabs(value) < size * .99995) continue;
    const double scaled = value / size;
    return Trimmed(fmt::format("{:.{}f}", scaled, DigitsOf(scaled))) +
           std::string(letter);
  }
  return Trimmed(fmt::format("{:.{}f}", value, DigitsOf(value)));
}

std::string OfMilliseconds(double milliseconds) {
  const bool seconds = milliseconds >= 999.5;
  const double value = seconds ? milliseconds / 1000 : milliseconds;
  return Trimmed(fmt::format("{:.{}f}", value, DigitsOf(value))) +
         (seconds ? " s" : " ms");
}

std::string Ranges(const std::vector<uint64_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() &&
           numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    if (!text.empty()) text += ", ";
    text += fmt::to_string(numbers[i]);
    if (last > i) {
      text += (last > i + 1 ? "–" : ", ") + fmt::to_string(numbers[last]);
    }
    i = last + 1;
  }
  return text;
}

}  // namespace weir::sim_report
