#include "process.h"

#include <sys/stat.h>

#include <charconv>

namespace weir::shm {

std::optional<ProcessStat> ParseStat(std::string_view line) {
  const size_t name_end = line.rfind(") ");
  if (name_end == std::string_view::npos) return std::nullopt;
  line.remove_prefix(name_end + 2);
  ProcessStat stat;
  // proc(5) counts from 1: state is field 3, the first one here.
  for (int field = 3; !line.empty(); ++field) {
    const std::string_view word = line.substr(0, line.find(' '));
    uint64_t number = 0;
    std::from_chars(word.data(), word.data() + word.size(), number);
    if (field == 3 && word.size() == 1) stat.state = word[0];
    if (field == 20) stat.threads = static_cast<int64_t>(number);
    if (field == 22) {
      stat.start = static_cast<uint32_t>(number);
      return stat;
    }
    line.remove_prefix(word.size() == line.size() ? word.size()
                                                  : word.size() + 1);
  }
  return std::nullopt;
}

uint64_t Namespaces() {
  struct stat pid {};
  struct stat time {};
  if (::stat("/proc/self/ns/pid", &pid) != 0) return 0;
  // Before Linux 5.6 there is one time for all; st_ino stays 0.
  ::stat("/proc/self/ns/time", &time);
  return (pid.st_ino << 32) ^ time.st_ino;
}

}  // namespace weir::shm
