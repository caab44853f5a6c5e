// Files of /proc and /sys: opened once, read again and again.

#ifndef WEIR_HOST_FILE_H_
#define WEIR_HOST_FILE_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::host {

// Enough for every file that is read often; of /proc/stat the first line.
using Buffer = std::array<char, 4096>;

// One small file.  Stays open between reads, since opening costs several times
// what reading does; opens again when reading fails, since the files of a
// cgroup that was removed and made again are other files.
class File {
 public:
  explicit File(std::string path) : path_(std::move(path)) {}
  ~File() { Close(); }
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;

  // The file's first bytes, in `buffer`; or why not.  Never waits.
  Result<std::string_view> Read(Buffer& buffer);

  // Whether the last Read() failed because there is no such file.
  bool absent() const { return absent_; }
  const std::string& path() const { return path_; }

  // "PATH: what is wrong with its content".
  std::string Says(std::string_view what) const;

 private:
  bool Open();
  void Close();

  std::string path_;
  int fd_ = -1;
  bool absent_ = false;
};

// A file whole, for those that are long and read seldom.  Nothing when there
// is no such file.
Result<std::optional<std::string>> ReadWhole(const std::string& path);

}  // namespace weir::host

#endif  // WEIR_HOST_FILE_H_
