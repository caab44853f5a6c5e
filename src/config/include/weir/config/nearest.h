// The known word that a mistyped one most likely stands for.

#ifndef WEIR_CONFIG_NEAREST_H_
#define WEIR_CONFIG_NEAREST_H_

#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

// The word of `known` that `word` most likely stands for; empty when none is
// near.  Swapped neighbours count as one mistake; one mistake in three letters
// is near, and one in two.
std::string_view Nearest(std::string_view word,
                         const std::vector<std::string>& known);

}  // namespace weir::config

#endif  // WEIR_CONFIG_NEAREST_H_
