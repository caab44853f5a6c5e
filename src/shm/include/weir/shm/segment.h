// The Region in a named segment of POSIX shared memory.
//
// A service's region is the segment "/weir.SERVICE" (on Linux the file
// /dev/shm/weir.SERVICE), of mode 0600.  Workers map it read-write, observers
// read-only, so an observer can neither change it nor slow a worker.
//
// Making one is all or nothing: the file gets its pages, its region and its
// lock while it has no name (O_TMPFILE), then its name (linkat), which fails
// if the name is taken.  So who sees the name sees a whole region, a maker
// that dies half-way leaves nothing behind, and of two makers one attaches to
// the other's.
//
// Whoever maps a segment read-write holds a shared flock() on it, which the
// kernel gives back when the last process that inherited it is gone.  That
// tells "used" from "left behind" even where pids cannot: across containers.
//
// A segment outlives its processes, and what the law has learned with it; it
// goes by RemoveSegment() or at reboot.  A refused segment is left as it was,
// and whoever uses it goes on.
//
// Linux: needs tmpfs at /dev/shm, and /proc.

#ifndef WEIR_SHM_SEGMENT_H_
#define WEIR_SHM_SEGMENT_H_

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/policy.h"
#include "weir/region.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir::shm {

// An open segment and its pages.  fork() shares both with the child.
class Mapping {
 public:
  Mapping(int fd, void* memory) : fd_(fd), memory_(memory) {}
  Mapping(Mapping&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        memory_(std::exchange(other.memory_, nullptr)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~Mapping();

  int fd() const { return fd_; }
  void* memory() const { return memory_; }
  // `memory` goes with the file from now on.  There must be none yet.
  void Adopt(void* memory) { memory_ = memory; }

 private:
  int fd_;
  void* memory_;  // sizeof(Region) bytes.
};

// For workers.  Open it once before they are forked, or in each of them.
// Move-only; guards and leases on the region must be gone before it.
class SharedRegion {
 public:
  // The region of `policy.service`; made for that policy if there is none.
  // Fails, and changes nothing, when the segment there is
  //   - is of another version or layout, or no whole region at all;
  //   - is not this user's, or others may open it: they could have planted it;
  //   - is used by processes of another pid or time namespace: workers could
  //     not tell each other's death, or would read different clocks;
  // when /dev/shm is full (all pages are taken here, so that no later access
  // can fail), not writable or not there, and when the policy breaks a rule.
  static Result<SharedRegion> Open(const Policy& policy, Instant now);

  // False when the region was there already.
  bool created() const { return created_; }
  // Why the operator's switches could not be taken over; empty when all is
  // well.  See switch_board.h.
  const std::string& warning() const { return warning_; }

  Region& operator*() const { return *get(); }
  Region* operator->() const { return get(); }
  Region* get() const { return static_cast<Region*>(mapping_.memory()); }

 private:
  SharedRegion(Mapping mapping, bool created, std::string warning)
      : mapping_(std::move(mapping)),
        created_(created),
        warning_(std::move(warning)) {}

  Mapping mapping_;
  bool created_;
  std::string warning_;
};

// For observers: `weir top`, exporters.  Maps the pages without the right to
// write.  Move-only.
class ObservedRegion {
 public:
  // Fails as SharedRegion::Open() does, except that namespaces do not matter
  // and root may observe any user's; and when there is no such segment.
  static Result<ObservedRegion> Open(std::string_view service);

  // Whether the segment lost its name: a new one may be there under it.
  bool removed() const;

  const Region& operator*() const { return *get(); }
  const Region* operator->() const { return get(); }
  const Region* get() const {
    return static_cast<const Region*>(mapping_.memory());
  }

 private:
  explicit ObservedRegion(Mapping mapping) : mapping_(std::move(mapping)) {}

  Mapping mapping_;
};

struct SegmentInfo {
  std::string service;
  uid_t owner = 0;
  size_t size = 0;
  int workers = 0;  // Shards whose owner is alive (as far as can be seen).
  // Empty, or why it cannot be attached (one line).
  std::string problem;
};

// The segments of this user, by name; root gets those of all users.
Result<std::vector<SegmentInfo>> ListSegments();

// Takes the name away; who has mapped the segment goes on with it, but those
// who come later make a new one.  So fails while it is used, unless `force`.
std::optional<Error> RemoveSegment(std::string_view service,
                                   bool force = false);

// "/dev/shm/weir.SERVICE".
std::string SegmentPath(std::string_view service);

}  // namespace weir::shm

#endif  // WEIR_SHM_SEGMENT_H_
