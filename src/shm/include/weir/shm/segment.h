// The Region in a named segment of POSIX shared memory.
//
// A service's region is the segment "/weir.SERVICE" (on Linux the file
// /dev/shm/weir.SERVICE), of mode 0600 unless told otherwise.  Workers map it.
// Observers read it, as one reads a file: so they can neither change it nor
// slow a worker, and whatever is done to the file cannot harm them.
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
// goes by RemoveSegment() or at reboot.  One that nobody uses is replaced where
// it cannot be shared: made by another version of weir, or in another container
// that is gone.  A refused segment is left as it was, and whoever uses it goes
// on.
//
// The name is taken away only by one who holds the lock for himself alone and
// has seen that the name is still that file's: else, of two who replace an old
// segment at once, one would take away what the other had just made.
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

// Who may look at a segment beside its owner.  Never who may write.
struct SegmentAccess {
  mode_t mode = 0600;                    // And 0040, 0004 or both.
  gid_t group = static_cast<gid_t>(-1);  // -1: that of the process.
};

// For workers.  Open it once before they are forked, or in each of them.
// Move-only; guards and leases on the region must be gone before it.
class SharedRegion {
 public:
  // The region of `policy.service`; made for that policy if there is none, or
  // one that cannot be used by anybody now: see replaced().  What access others
  // have to it is set anew.  Fails, and changes nothing, when the segment there
  //   - is used, and of another version or layout;
  //   - is no whole region at all;
  //   - is not this user's, or others may write it: they could have planted it;
  //   - is used by processes of another pid or time namespace: workers could
  //     not tell each other's death, or would read different clocks;
  // when /dev/shm is full (all pages are taken here, so that no later access
  // can fail), not writable or not there, and when the policy breaks a rule.
  // One that is in somebody's hands for a moment is tried for a second.
  static Result<SharedRegion> Open(const Policy& policy, Instant now,
                                   const SegmentAccess& access = {});

  // What Open() would do, without doing it: empty when it would make or attach
  // as usual, a line for a person when it would replace something, an error
  // when it would fail.
  static Result<std::string> Foresee(const Policy& policy);

  // False when the region was there already.
  bool created() const { return created_; }
  // What was there before and could not be used; empty when nothing was.
  const std::string& replaced() const { return replaced_; }
  // Why the operator's switches could not be taken over; empty when all is
  // well.  See switch_board.h.
  const std::string& warning() const { return warning_; }

  Region& operator*() const { return *get(); }
  Region* operator->() const { return get(); }
  Region* get() const { return static_cast<Region*>(mapping_.memory()); }

 private:
  SharedRegion(Mapping mapping, bool created, std::string replaced,
               std::string warning)
      : mapping_(std::move(mapping)),
        created_(created),
        replaced_(std::move(replaced)),
        warning_(std::move(warning)) {}

  Mapping mapping_;
  bool created_;
  std::string replaced_;
  std::string warning_;
};

// For observers: `weir top`, exporters.  A copy of the region, as it was at the
// last reading: the file's owner may cut it at any time, and pages that are
// gone would end whoever has them mapped.  Move-only.
class ObservedRegion {
 public:
  // Fails as SharedRegion::Open() does, except that namespaces do not matter,
  // and that anybody may look whom the file's mode lets; and when there is no
  // such segment.
  static Result<ObservedRegion> Open(std::string_view service);

  // Reads it anew, all but the quotas of clients; a few milliseconds.  With an
  // error (it is damaged now) the copy is as it was.
  std::optional<Error> Refresh();

  // Whether the segment lost its name: a new one may be there under it.
  bool removed() const;

  const Region& operator*() const { return *get(); }
  const Region* operator->() const { return get(); }
  const Region* get() const { return copy_.get(); }

 private:
  struct Free {
    void operator()(Region* region) const;
  };
  ObservedRegion(Mapping mapping, std::string service)
      : mapping_(std::move(mapping)), service_(std::move(service)) {}
  std::optional<Error> Take(bool whole);

  Mapping mapping_;  // The file alone.
  std::string service_;
  std::unique_ptr<Region, Free> copy_;
};

struct SegmentInfo {
  std::string service;
  uid_t owner = 0;
  size_t size = 0;
  int workers = 0;  // Shards whose owner is alive (as far as can be seen).
  // Empty, or why it cannot be attached (one line).
  std::string problem;
};

// The segments that this user may look at, by name.
Result<std::vector<SegmentInfo>> ListSegments();

// Takes the name away; who has mapped the segment goes on with it, but those
// who come later make a new one.  So fails while it is used, unless `force`.
std::optional<Error> RemoveSegment(std::string_view service,
                                   bool force = false);

// "/dev/shm/weir.SERVICE".
std::string SegmentPath(std::string_view service);

}  // namespace weir::shm

#endif  // WEIR_SHM_SEGMENT_H_
