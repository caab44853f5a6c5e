// The words of other systems, and what they are here.

#ifndef WEIR_CONFIG_SRC_FOREIGN_WORDS_H_
#define WEIR_CONFIG_SRC_FOREIGN_WORDS_H_

#include <string>
#include <string_view>

namespace weir::config {

// What to write instead of a key of Sentinel, Envoy, nginx, HAProxy or
// resilience4j, in the table of that row of a policy; empty for other words.
std::string AdviseForeignWord(std::string_view row, std::string_view key);

}  // namespace weir::config

#endif  // WEIR_CONFIG_SRC_FOREIGN_WORDS_H_
