#include "weir/result.h"

#include <cstdio>
#include <cstdlib>

namespace weir {

// Outside any decision: results are what set-up returns.
void EndWithError(const Error& error) {
  std::fprintf(stderr, "weir: %s\n", error.message.c_str());
  std::abort();
}

}  // namespace weir
