#include "utf8.h"

#include <cstdint>

namespace weir::config {
namespace {

struct Form {
  unsigned char mask, lead;
  size_t size;
  uint32_t smallest;  // Below it the form is overlong.
};
constexpr Form kForms[] = {{0x80, 0x00, 1, 0},
                           {0xe0, 0xc0, 2, 0x80},
                           {0xf0, 0xe0, 3, 0x800},
                           {0xf8, 0xf0, 4, 0x10000}};

bool IsScalar(uint32_t value) {
  return value <= 0x10ffff && (value < 0xd800 || value > 0xdfff);
}

}  // namespace

size_t CodePointSize(std::string_view text) {
  if (text.empty()) return 0;
  const auto lead = static_cast<unsigned char>(text[0]);
  for (const Form& form : kForms) {
    if ((lead & form.mask) != form.lead) continue;
    if (text.size() < form.size) return 0;
    uint32_t value = lead & static_cast<unsigned char>(~form.mask);
    for (size_t i = 1; i < form.size; ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      if ((byte & 0xc0) != 0x80) return 0;
      value = value << 6 | (byte & 0x3f);
    }
    return value >= form.smallest && IsScalar(value) ? form.size : 0;
  }
  return 0;
}

std::vector<std::string_view> SplitCodePoints(std::string_view text) {
  std::vector<std::string_view> points;
  while (!text.empty()) {
    const size_t size = CodePointSize(text);
    points.push_back(text.substr(0, size == 0 ? 1 : size));
    text.remove_prefix(points.back().size());
  }
  return points;
}

int CountCodePoints(std::string_view text) {
  int count = 0;
  while (!text.empty()) {
    const size_t size = CodePointSize(text);
    text.remove_prefix(size == 0 ? 1 : size);
    ++count;
  }
  return count;
}

std::optional<size_t> FirstBadByte(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t size = CodePointSize(text.substr(at));
    if (size == 0) return at;
    at += size;
  }
  return std::nullopt;
}

std::string_view Printable(std::string_view code_point) {
  if (code_point == "\t") return " ";
  if (CodePointSize(code_point) == 0) return "?";
  const auto first = static_cast<unsigned char>(code_point[0]);
  const bool c0 = first < 0x20 || first == 0x7f;
  const bool c1 = first == 0xc2 &&  // U+0080 to U+009F: terminals obey them.
                  static_cast<unsigned char>(code_point[1]) < 0xa0;
  return c0 || c1 ? "?" : code_point;
}

std::string PrintableText(std::string_view text) {
  std::string out;
  for (const std::string_view point : SplitCodePoints(text)) {
    out += Printable(point);
  }
  return out;
}

}  // namespace weir::config
