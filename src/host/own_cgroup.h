// Where the cgroup of this process lies in the file system.
//
// Two files say it, and neither alone: /proc/self/cgroup names the cgroup in
// each hierarchy as seen from the process's cgroup namespace, and
// /proc/self/mountinfo says which part of a hierarchy is mounted where:
//
//                        own path   root of mount   directory
//   host                 /a/b       /               MOUNT/a/b
//   container, its own   /          /               MOUNT
//     namespace
//   container, host's    /a/b       /a/b            MOUNT
//     namespace
//   host's tree mounted  /          /../..          cannot be told: inert
//     into a container
//
// A controller (cpu, cpuacct, cpuset) is on v1 when /proc/self/cgroup has a
// line for it, else on v2; on a hybrid machine some are on v1 and v2 only has
// the pressure files.
//
// Source: cgroups(7), cgroup_namespaces(7), proc_pid_mountinfo(5).

#ifndef WEIR_HOST_OWN_CGROUP_H_
#define WEIR_HOST_OWN_CGROUP_H_

#include <optional>
#include <string>
#include <string_view>

#include "weir/result.h"
#include "weir/time.h"

namespace weir::host {

struct CgroupDir {
  int version = 2;
  std::string top;       // The mount: what is above it cannot be seen.
  std::string relative;  // Below it: "" or "/a/b".

  std::string leaf() const { return top + relative; }
  bool operator==(const CgroupDir&) const = default;
};

// Nothing when the controller is in no hierarchy, so it limits nobody; an error
// when it is in one whose own part cannot be reached from here.
using CgroupPlace = Result<std::optional<CgroupDir>>;

// Finds the place of `controller`; "" is the v2 hierarchy whatever it controls.
// `cgroup` and `mountinfo` are the content of the two files; `root` is put in
// front of mount points.
CgroupPlace FindCgroup(std::string_view controller, std::string_view cgroup,
                       std::string_view mountinfo, const std::string& root);

// Follows the process, which others may move (systemd does, while it starts).
class OwnCgroup {
 public:
  explicit OwnCgroup(std::string root) : root_(std::move(root)) {}

  // Looks whether the process has moved, at most once in a second.  True when
  // a place has changed, and always the first time.
  bool Refresh(Instant now);

  const CgroupPlace& cpu() const { return cpu_; }
  const CgroupPlace& cpuacct() const { return cpuacct_; }
  const CgroupPlace& cpuset() const { return cpuset_; }
  const CgroupPlace& unified() const { return unified_; }

 private:
  bool Find();
  CgroupPlace Find(std::string_view controller,
                   const Result<std::optional<std::string>>& mountinfo) const;

  std::string root_;
  std::optional<Instant> looked_;
  Result<std::optional<std::string>> cgroup_ = std::optional<std::string>();
  bool settled_ = false;
  CgroupPlace cpu_ = std::optional<CgroupDir>();
  CgroupPlace cpuacct_ = std::optional<CgroupDir>();
  CgroupPlace cpuset_ = std::optional<CgroupDir>();
  CgroupPlace unified_ = std::optional<CgroupDir>();
};

// How often the slow questions (which cgroup, which CPUs) are asked again.
// Chosen: an operator who changes a limit expects to see it within a second.
inline constexpr Duration kLookAgain = std::chrono::seconds(1);

}  // namespace weir::host

#endif  // WEIR_HOST_OWN_CGROUP_H_
