// A private folder that goes when its owner does; and whether a path is ours to
// write.

#ifndef WEIR_CLI_SCRATCH_H_
#define WEIR_CLI_SCRATCH_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/result.h"

namespace weir::cli {

// Move-only; the destructor removes the folder with all that is in it.
class Scratch {
 public:
  // A new folder of mode 0700 below XDG_RUNTIME_DIR, TMPDIR or /tmp (the first
  // that is set and can be written).
  static Result<Scratch> Make(std::string_view prefix);

  Scratch(Scratch&& other) noexcept
      : path_(std::exchange(other.path_, std::string())) {}
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~Scratch();

  const std::string& path() const { return path_; }
  std::string Path(std::string_view name) const {
    return path_ + "/" + std::string(name);
  }

  // Writes a file; fails when the disk is full.
  Result<std::string> Write(std::string_view name, std::string_view text) const;

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

// Whether `path` can be written, found out before hours of work are put into
// it; else why not.  An empty path is none.  Leaves no file behind.
std::optional<Error> CheckWritable(const std::string& path);

}  // namespace weir::cli

#endif  // WEIR_CLI_SCRATCH_H_
