#ifndef WEIR_CLI_VERSION_H_
#define WEIR_CLI_VERSION_H_

namespace weir::cli {

// "weir 0.1.0 (15c05abd0f)": version and commit; "-dirty" after the commit when
// the sources differed from it; no commit when built outside a repository.
extern const char* const kVersion;

}  // namespace weir::cli

#endif  // WEIR_CLI_VERSION_H_
