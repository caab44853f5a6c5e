#include "scratch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace weir::cli {
namespace {

std::string Parent() {
  for (const char* name : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value == '/' && access(value, W_OK | X_OK) == 0) {
      return value;
    }
  }
  return "/tmp";
}

}  // namespace

Result<Scratch> Scratch::Make(std::string_view prefix) {
  std::string path = Parent() + "/" + std::string(prefix) + "XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return Error{"cannot make a folder like " + path + ": " +
                 std::strerror(errno)};
  }
  return Scratch(std::move(path));
}

Scratch::~Scratch() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Result<std::string> Scratch::Write(std::string_view name,
                                   std::string_view text) const {
  std::string path = Path(name);
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) return Error{"cannot write " + path + ": " + std::strerror(errno)};
  return path;
}

std::optional<Error> CheckWritable(const std::string& path) {
  if (path.empty()) return std::nullopt;
  const bool was_there = access(path.c_str(), F_OK) == 0;
  // Appending nothing leaves a file that is there as it is.
  std::FILE* file = std::fopen(path.c_str(), "ab");
  if (file == nullptr) {
    return Error{
        fmt::format("cannot write {}: {}", path, std::strerror(errno))};
  }
  std::fclose(file);
  if (!was_there) std::remove(path.c_str());
  return std::nullopt;
}

}  // namespace weir::cli
