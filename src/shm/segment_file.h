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

// Who wants to use a file.
enum class Use {
  kWork,     // Its own user alone.
  kOperate,  // The same, or root.
  kLook,     // Whoever the file's mode lets: what he sees decides nothing.
};

// Whether a file may be trusted for that.
std::optional<Complaint> CheckOwner(const struct stat& file, Use use);

// A segment that exists, for those who are no worker of it: open and looked
// at, not mapped.  Its size and its header are as they should be, but for
// kOperate and kLook only at this moment.
Result<Mapping> OpenExisting(std::string_view service, Use use);

// Whether a file still has one.
bool HasName(int fd);

// Brings the switches of the file beside the segment into its region, behind
// the resources of the policy.  Returns what is wrong, for a person; empty
// when nothing is.
std::string LoadSwitches(const Mapping& mapping, const Policy& policy,
                         Instant now);

}  // namespace weir::shm

#endif  // WEIR_SRC_SHM_SEGMENT_FILE_H_
