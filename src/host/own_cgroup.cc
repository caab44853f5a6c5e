#include "own_cgroup.h"

#include <utility>

#include "file.h"
#include "growth.h"
#include "text.h"

namespace weir::host {
namespace {

const CgroupPlace kNowhere = std::optional<CgroupDir>();

// The own path in one hierarchy: "ID:CONTROLLERS:PATH".
struct Membership {
  bool v1 = false;
  std::string_view path;
};

using Memberships = Result<std::optional<Membership>>;

Memberships FindMembership(std::string_view controller,
                           std::string_view cgroup) {
  std::optional<Membership> unified;
  while (!cgroup.empty()) {
    const std::string_view line = TakeLine(cgroup);
    const size_t first = line.find(':');
    const size_t second =
        first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos || line.substr(second + 1, 1) != "/") {
      return Error{"/proc/self/cgroup: not a list of cgroups"};
    }
    const std::string_view controllers =
        line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (controllers.empty()) {
      unified = Membership{false, path};
    } else if (!controller.empty() && ListHas(controllers, controller)) {
      return std::optional(Membership{true, path});
    }
  }
  return unified;
}

struct Mount {
  std::string_view root;
  std::string_view point;
  std::string_view type;
  std::string_view options;  // Of the file system: v1 lists its controllers.
};

// "ID PARENT DEV ROOT POINT OPTIONS [TAG...] - TYPE SOURCE SUPER_OPTIONS"
Mount ParseMount(std::string_view line) {
  Mount mount;
  for (int skipped = 0; skipped < 3; ++skipped) TakeWord(line);
  mount.root = TakeWord(line);
  mount.point = TakeWord(line);
  std::string_view word;
  do {
    word = TakeWord(line);
  } while (!word.empty() && word != "-");
  mount.type = TakeWord(line);
  TakeWord(line);
  mount.options = TakeWord(line);
  return mount;
}

bool IsOctal(std::string_view digits) {
  return digits.size() == 3 &&
         digits.find_first_not_of("01234567") == std::string_view::npos;
}

// Undoes the kernel's \ooo for blanks and backslashes.
std::string Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view digits = text.substr(i + 1, 3);
    if (text[i] == '\\' && IsOctal(digits)) {
      out += static_cast<char>((digits[0] - '0') * 64 + (digits[1] - '0') * 8 +
                               (digits[2] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool GoesUp(std::string_view path) {
  return path == "/.." || path.substr(0, 4) == "/../";
}

// `path` as seen from the directory `mount_root`; nothing when not below it.
std::optional<std::string> Below(const std::string& mount_root,
                                 std::string_view path) {
  if (GoesUp(mount_root) || GoesUp(path)) return std::nullopt;
  if (mount_root == "/") return std::string(path == "/" ? "" : path);
  if (path.substr(0, mount_root.size()) != mount_root) return std::nullopt;
  path.remove_prefix(mount_root.size());
  if (!path.empty() && path[0] != '/') return std::nullopt;
  return std::string(path);
}

bool Same(const CgroupPlace& a, const CgroupPlace& b) {
  if (a.ok() != b.ok()) return false;
  return a ? *a == *b : a.error().message == b.error().message;
}

}  // namespace

CgroupPlace FindCgroup(std::string_view controller, std::string_view cgroup,
                       std::string_view mountinfo, const std::string& root) {
  const Memberships found = FindMembership(controller, cgroup);
  if (!found) return found.error();
  const std::optional<Membership>& membership = *found;
  if (!membership) return kNowhere;
  const std::string_view type = membership->v1 ? "cgroup" : "cgroup2";
  const std::string what =
      membership->v1 ? "cgroup v1 controller " + std::string(controller)
                     : "the cgroup v2 hierarchy";
  std::string seen;
  while (!mountinfo.empty()) {
    const Mount mount = ParseMount(TakeLine(mountinfo));
    if (mount.type != type) continue;
    if (membership->v1 && !ListHas(mount.options, controller)) continue;
    const std::string mount_root = Unescape(mount.root);
    seen = Unescape(mount.point);
    if (auto relative = Below(mount_root, membership->path)) {
      return std::optional(
          CgroupDir{membership->v1 ? 1 : 2, root + seen, *std::move(relative)});
    }
  }
  if (seen.empty()) return Error{what + " is not mounted here"};
  return Error{"own cgroup " + std::string(membership->path) +
               " lies outside of what is mounted at " + seen +
               "; mount it from inside this container"};
}

bool OwnCgroup::Refresh(Instant now) {
  if (looked_) {
    const Duration since = Since(*looked_, now);
    if (since >= Duration::zero() && since < kLookAgain) return false;
  }
  const bool first = !looked_;
  looked_ = now;
  auto cgroup = ReadWhole(root_ + "/proc/self/cgroup");
  if (!first && settled_ && cgroup && *cgroup == *cgroup_) return false;
  cgroup_ = std::move(cgroup);
  return Find() || first;
}

// True when a place is another than before.
bool OwnCgroup::Find() {
  const auto mountinfo = ReadWhole(root_ + "/proc/self/mountinfo");
  settled_ = cgroup_.ok();
  bool changed = false;
  const auto find = [&](std::string_view controller, CgroupPlace& place) {
    CgroupPlace found = Find(controller, mountinfo);
    settled_ = settled_ && found;
    changed = changed || !Same(found, place);
    place = std::move(found);
  };
  find("cpu", cpu_);
  find("cpuacct", cpuacct_);
  find("cpuset", cpuset_);
  find("", unified_);
  return changed;
}

CgroupPlace OwnCgroup::Find(
    std::string_view controller,
    const Result<std::optional<std::string>>& mountinfo) const {
  if (!cgroup_) return cgroup_.error();
  if (!*cgroup_) return kNowhere;  // A kernel without cgroups.
  if (!mountinfo) return mountinfo.error();
  return FindCgroup(controller, **cgroup_, mountinfo->value_or(""), root_);
}

}  // namespace weir::host
