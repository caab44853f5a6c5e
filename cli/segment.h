// Which services have shared memory here.

#ifndef WEIR_CLI_SEGMENT_H_
#define WEIR_CLI_SEGMENT_H_

#include <string>
#include <vector>

#include "weir/result.h"
#include "weir/shm/segment.h"

namespace weir::cli {

// The service that has the only usable segment; an error that lists those
// there are when there is none or there are several.
Result<std::string> OnlyService();

// One line for each, below a heading.
std::string SegmentTable(const std::vector<shm::SegmentInfo>& segments);

}  // namespace weir::cli

#endif  // WEIR_CLI_SEGMENT_H_
