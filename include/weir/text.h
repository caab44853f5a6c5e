// The few things about text that more than one folder needs.

#ifndef WEIR_TEXT_H_
#define WEIR_TEXT_H_

#include <algorithm>
#include <string_view>

namespace weir::text {

// Without blanks, tabs and ends of lines at both ends.  By hand: searching for
// one of a set costs a call for each letter.
constexpr std::string_view Trim(std::string_view text) {
  const auto blank = [](char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
  };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// `lower` is in lower case already.  ASCII letters alone have a case.
constexpr bool EqualsIgnoringCase(std::string_view text,
                                  std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) {
                      return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b;
                    });
}

}  // namespace weir::text

#endif  // WEIR_TEXT_H_
