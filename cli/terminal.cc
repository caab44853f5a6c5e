#include "terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace weir::cli {

bool IsTerminal(std::FILE* stream) { return isatty(fileno(stream)) == 1; }

bool UsesColor(std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* term = std::getenv("TERM");
  if (term == nullptr || std::string_view(term) == "dumb") return false;
  return IsTerminal(stream);
}

Size TerminalSize(std::FILE* stream) {
  Size size;
  winsize window{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &window) == 0) {
    if (window.ws_col > 0) size.columns = window.ws_col;
    if (window.ws_row > 0) size.rows = window.ws_row;
  } else if (const char* columns = std::getenv("COLUMNS")) {
    const int asked = std::atoi(columns);
    if (asked > 0) size.columns = asked;
  }
  return size;
}

Style StyleFor(std::FILE* stream) {
  if (!UsesColor(stream)) return {};
  return {.bold = "\x1b[1m",
          .dim = "\x1b[2m",
          .red = "\x1b[31m",
          .green = "\x1b[32m",
          .yellow = "\x1b[33m",
          .reset = "\x1b[0m"};
}

}  // namespace weir::cli
