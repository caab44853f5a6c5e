// What the standard streams can show.

#ifndef WEIR_CLI_TERMINAL_H_
#define WEIR_CLI_TERMINAL_H_

#include <cstdio>
#include <string_view>

namespace weir::cli {

bool IsTerminal(std::FILE* stream);

// Whether to write colours to `stream`: it is a terminal other than a "dumb"
// one, and NO_COLOR (no-color.org) is unset or empty.
bool UsesColor(std::FILE* stream);

// Columns and rows of the terminal behind `stream`.  When there is none, what
// COLUMNS says, or 80; and 24.
struct Size {
  int columns = 80;
  int rows = 24;
};
Size TerminalSize(std::FILE* stream);

// Escape sequences to print around text; all empty where there is no colour.
struct Style {
  std::string_view bold;
  std::string_view dim;
  std::string_view red;
  std::string_view green;
  std::string_view yellow;
  std::string_view reset;
};
Style StyleFor(std::FILE* stream);

}  // namespace weir::cli

#endif  // WEIR_CLI_TERMINAL_H_
