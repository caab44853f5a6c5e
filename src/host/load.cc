#include "weir/host/load.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "file.h"
#include "text.h"

namespace weir::host {
namespace {

// Numbers of the first namespaces of a kernel.
// Source: Linux include/linux/proc_ns.h, PROC_PID_INIT_INO,
// PROC_CGROUP_INIT_INO.
constexpr std::string_view kFirstPidNamespace = "pid:[4026531836]";
constexpr std::string_view kFirstCgroupNamespace = "cgroup:[4026531835]";

// What the link says, empty when it cannot be read.
std::string ReadLink(const std::string& path) {
  std::array<char, 64> target;
  const ssize_t size = readlink(path.c_str(), target.data(), target.size());
  return size < 0 ? "" : std::string(target.data(), static_cast<size_t>(size));
}

bool IsMountPoint(std::string_view mountinfo, std::string_view path) {
  while (!mountinfo.empty()) {
    std::string_view line = TakeLine(mountinfo);
    for (int skipped = 0; skipped < 4; ++skipped) TakeWord(line);
    if (TakeWord(line) == path) return true;
  }
  return false;
}

// Why /proc/loadavg says nothing about this process; empty when it does.
std::string WhyNotOurs(const std::string& root) {
  const auto mountinfo = ReadWhole(root + "/proc/self/mountinfo");
  if (mountinfo && *mountinfo && IsMountPoint(**mountinfo, "/proc/loadavg")) {
    return "";
  }
  const std::string pid = ReadLink(root + "/proc/self/ns/pid");
  const std::string cgroup = ReadLink(root + "/proc/self/ns/cgroup");
  if (pid.empty()) {
    return "cannot tell whether this is a container: no /proc/self/ns/pid";
  }
  // Kernels before 4.6 have no cgroup namespaces.
  if (pid != kFirstPidNamespace ||
      (!cgroup.empty() && cgroup != kFirstCgroupNamespace)) {
    return "in a container the load average is the node's";
  }
  return "";
}

std::optional<Load> ParseLoad(std::string_view text) {
  const auto one = ToReal(TakeWord(text));
  const auto five = ToReal(TakeWord(text));
  const auto fifteen = ToReal(TakeWord(text));
  if (!one || !five || !fifteen) return std::nullopt;
  return Load{*one, *five, *fifteen};
}

}  // namespace

struct LoadAverage::State {
  std::string root;
  File file;
  std::optional<std::string> why_not_ours;  // Once known it stays.
};

LoadAverage::LoadAverage(std::string root)
    : state_(std::make_unique<State>(
          State{root, File(root + "/proc/loadavg"), std::nullopt})) {}
LoadAverage::~LoadAverage() = default;
LoadAverage::LoadAverage(LoadAverage&&) noexcept = default;
LoadAverage& LoadAverage::operator=(LoadAverage&&) noexcept = default;

Reading<Load> LoadAverage::Read() {
  State& state = *state_;
  if (!state.why_not_ours) state.why_not_ours = WhyNotOurs(state.root);
  if (!state.why_not_ours->empty()) {
    return Reading<Load>::Inert(*state.why_not_ours);
  }
  Buffer buffer;
  const auto text = state.file.Read(buffer);
  if (!text) return Reading<Load>::Inert(text.error().message);
  if (const auto load = ParseLoad(*text)) return *load;
  return Reading<Load>::Inert(state.file.Says("no load average in it"));
}

}  // namespace weir::host
