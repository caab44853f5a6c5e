#include "weir/config/policy_file.h"

#include <sys/stat.h>

#include <utility>

#include "weir/config/policy.h"

namespace weir::config {
namespace {

int64_t Nanoseconds(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

PolicyFile::PolicyFile(std::string path) : path_(std::move(path)) {}

PolicyFile::Stamp PolicyFile::Look(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return {};
  return {static_cast<uint64_t>(info.st_dev),
          static_cast<uint64_t>(info.st_ino),
          static_cast<int64_t>(info.st_size), Nanoseconds(info.st_mtim),
          Nanoseconds(info.st_ctim)};
}

PolicyFile::Change PolicyFile::Take(Checked<Policy> read) {
  if (!read) {
    std::string report = read.complaints().Print();
    const bool known = report == report_;
    report_ = std::move(report);
    return known ? Change::kNone : Change::kComplaints;
  }
  const bool complained = !std::exchange(report_, {}).empty();
  if (!complained && policy_ && *policy_ == *read) return Change::kNone;
  policy_ = std::move(*read);
  return Change::kPolicy;
}

PolicyFile::Change PolicyFile::Reload() {
  pending_.reset();
  taken_ = Look(path_);  // Before reading: a later change is seen by Poll().
  const Change change = Take(LoadPolicy(path_));
  if (change != Change::kNone) return change;
  return report_.empty() ? Change::kPolicy : Change::kComplaints;
}

PolicyFile::Change PolicyFile::Poll() {
  const Stamp now = Look(path_);
  if (now == taken_) {
    pending_.reset();
    return Change::kNone;
  }
  if (pending_ != now) {
    pending_ = now;
    return Change::kNone;
  }
  auto read = LoadPolicy(path_);
  if (const Stamp after = Look(path_); after != now) {
    pending_ = after;  // It changed under the reader: halves of two files.
    return Change::kNone;
  }
  taken_ = now;
  pending_.reset();
  return Take(std::move(read));
}

}  // namespace weir::config
