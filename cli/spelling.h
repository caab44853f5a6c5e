// What a mistyped command or option was meant to be.

#ifndef WEIR_CLI_SPELLING_H_
#define WEIR_CLI_SPELLING_H_

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace weir::cli {

// The first command or long option of `arguments` (without the program) that
// `app` does not know, as a message; nothing when it knows them all.  It ends
// with where to read more.
std::optional<std::string> FindUnknownWord(
    const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace weir::cli

#endif  // WEIR_CLI_SPELLING_H_
