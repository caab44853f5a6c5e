// What /proc says about processes and namespaces.

#ifndef WEIR_SRC_SHM_PROCESS_H_
#define WEIR_SRC_SHM_PROCESS_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::shm {

struct ProcessStat {
  char state = '?';  // As ps shows it: R, S, D, Z, X ...
  int64_t threads = 0;
  uint32_t start = 0;  // Low bits of the ticks from boot to its start.
};

// Reads a line of /proc/PID/stat.  The name in it may hold anything, also
// spaces and ')'.  Nothing when it is not such a line.
std::optional<ProcessStat> ParseStat(std::string_view line);

// The pid and time namespaces of the calling process in one number; 0 when
// /proc cannot be read.
uint64_t Namespaces();

}  // namespace weir::shm

#endif  // WEIR_SRC_SHM_PROCESS_H_
