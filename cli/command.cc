#include "command.h"

#include <cstdio>

namespace weir::cli {

int Fail(ExitStatus status, std::string_view message) {
  std::fflush(stdout);  // So that the two streams read in order.
  std::fprintf(stderr, "weir: %.*s\n", static_cast<int>(message.size()),
               message.data());
  return status;
}

}  // namespace weir::cli
