// What the files of this folder share: how files in /dev/shm are judged, and
// what is said of them.

#ifndef WEIR_SRC_SHM_SEGMENT_FILE_H_
#define WEIR_SRC_SHM_SEGMENT_FILE_H_

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>

#include "weir/result.h"
#include "weir/shm/segment.h"

namespace weir::shm {

struct Complaint {
  std::string what;
  std::string why;
  std::string fix;
};
Error At(const std::string& path, const Complaint& complaint);

// The text of an errno.
std::string System(int code);

// Whether a file may be trusted to be this user's own; with `observer`, root
// may trust any user's.
std::optional<Complaint> CheckOwner(const struct stat& file, bool observer);

// A segment that exists, for those who are no worker of it.
Result<Mapping> OpenExisting(std::string_view service, bool writable);

// Whether a file still has one.
bool HasName(int fd);

// Brings the switches of the file beside the segment into its region, behind
// the resources of the policy.  Returns what is wrong, for a person; empty
// when nothing is.
std::string LoadSwitches(const Mapping& mapping, const Policy& policy,
                         Instant now);

}  // namespace weir::shm

#endif  // WEIR_SRC_SHM_SEGMENT_FILE_H_
