// Texts as code points, which is how positions count.

#ifndef WEIR_CONFIG_SRC_UTF8_H_
#define WEIR_CONFIG_SRC_UTF8_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

// Bytes of the code point at the front of `text`; 0 when these bytes are not
// UTF-8 (overlong forms, surrogates and values past U+10FFFF included).
size_t CodePointSize(std::string_view text);

// A byte that is not UTF-8 is a code point of its own.
std::vector<std::string_view> SplitCodePoints(std::string_view text);

// Number of code points.
int CountCodePoints(std::string_view text);

// Where `text` first stops being UTF-8.
std::optional<size_t> FirstBadByte(std::string_view text);

// The code point as it may go to a terminal: '?' for bytes that are not UTF-8
// and for control characters, one blank for a tab.
std::string_view Printable(std::string_view code_point);

// The same for a whole text.
std::string PrintableText(std::string_view text);

}  // namespace weir::config

#endif  // WEIR_CONFIG_SRC_UTF8_H_
