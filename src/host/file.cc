#include "file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <utility>

namespace weir::host {
namespace {

// Longest file that is read whole.  Chosen: a thousand mounts with long
// overlay options, several times over.
constexpr size_t kMaxWhole = 4 << 20;

int OpenToRead(const char* path) {
  // Non-blocking: whatever lies at that path, opening it must not wait.
  return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

bool IsAbsent(int error) { return error == ENOENT || error == ENOTDIR; }

Error Failure(const std::string& path, int error) {
  char text[128];
  std::string what = strerror_r(error, text, sizeof text);
  what[0] =
      static_cast<char>(std::tolower(static_cast<unsigned char>(what[0])));
  return Error{path + ": " + what};
}

}  // namespace

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      absent_(other.absent_) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(absent_, other.absent_);
  return *this;
}

bool File::Open() {
  fd_ = OpenToRead(path_.c_str());
  return fd_ >= 0;
}

void File::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Result<std::string_view> File::Read(Buffer& buffer) {
  const bool was_open = fd_ >= 0;
  ssize_t size = -1;
  if (was_open || Open()) size = pread(fd_, buffer.data(), buffer.size(), 0);
  if (size < 0 && was_open) {
    Close();
    if (Open()) size = pread(fd_, buffer.data(), buffer.size(), 0);
  }
  const int error = errno;
  absent_ = size < 0 && IsAbsent(error);
  if (size < 0) {
    Close();
    return Failure(path_, error);
  }
  return std::string_view(buffer.data(), static_cast<size_t>(size));
}

std::string File::Says(std::string_view what) const {
  return path_ + ": " + std::string(what);
}

Result<std::optional<std::string>> ReadWhole(const std::string& path) {
  const int fd = OpenToRead(path.c_str());
  if (fd < 0 && IsAbsent(errno)) return std::optional<std::string>();
  if (fd < 0) return Failure(path, errno);
  std::string text;
  Buffer buffer;
  ssize_t size;
  while ((size = read(fd, buffer.data(), buffer.size())) > 0 &&
         text.size() < kMaxWhole) {
    text.append(buffer.data(), static_cast<size_t>(size));
  }
  const int error = errno;
  close(fd);
  if (size < 0) return Failure(path, error);
  return std::optional(std::move(text));
}

}  // namespace weir::host
