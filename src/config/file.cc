#include "file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "weir/config/document.h"

namespace weir::config {
namespace {

// A descriptor that is closed at the end of its scope.
class OpenFile {
 public:
  // O_NONBLOCK: opening a fifo must not wait for its writer.
  explicit OpenFile(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

Complaint CannotRead(std::string_view reason, std::string_view fix) {
  return {Place{}, "this file cannot be read: " + std::string(reason),
          std::nullopt, "without it there is nothing to check or to run by",
          std::string(fix)};
}

Complaint CannotRead(int error) {
  const std::string reason = std::strerror(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return CannotRead(reason, "correct the path, or create the file");
    case EACCES:
    case EPERM:
      return CannotRead(reason, "let the user of this process read it");
    default:
      return CannotRead(reason, "correct the path");
  }
}

}  // namespace

Complaint TooLong() {
  return {Place{},
          "this file is larger than " +
              std::to_string(Document::kMaxBytes >> 20) + " MiB",
          std::nullopt,
          "a file of that size was hardly written by a person, and is not read",
          "name the right file"};
}

FileText ReadFileText(const std::string& path, size_t most_bytes) {
  const OpenFile file(path);
  if (file.fd() < 0) return {{}, CannotRead(errno)};
  struct stat info {};
  if (fstat(file.fd(), &info) != 0) return {{}, CannotRead(errno)};
  if (S_ISDIR(info.st_mode)) {
    return {{}, CannotRead("it is a directory", "name a file in it")};
  }
  if (!S_ISREG(info.st_mode)) {
    return {{}, CannotRead("it is no regular file", "name a regular file")};
  }
  FileText out;
  std::array<char, 1 << 14> buffer;
  while (out.text.size() <= most_bytes) {
    const ssize_t size = read(file.fd(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return {{}, CannotRead(errno)};
    if (size == 0) return out;
    out.text.append(buffer.data(), static_cast<size_t>(size));
  }
  return {{}, TooLong()};
}

}  // namespace weir::config
