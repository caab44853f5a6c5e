// For tests: text compared with a file in cli/testdata.

#ifndef WEIR_CLI_GOLDEN_H_
#define WEIR_CLI_GOLDEN_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace weir::cli {

inline std::string SourcePath(const std::string& path) {
  const char* root = std::getenv("WEIR_SOURCE_DIR");
  return (root != nullptr ? std::string(root) + '/' : std::string()) + path;
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << "cannot read " << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// Equal to the file, but for a line end that only the file has.  With
// WEIR_UPDATE_GOLDEN=1 in the environment the file is written instead; look at
// the difference before you commit it.
inline void ExpectGolden(const std::string& text, const std::string& name) {
  const std::string path = SourcePath("cli/testdata/" + name);
  if (std::getenv("WEIR_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text << '\n';
    return;
  }
  EXPECT_EQ(text + '\n', ReadFile(path)) << "in " << path;
}

}  // namespace weir::cli

#endif  // WEIR_CLI_GOLDEN_H_
