// The text of the file that keeps an operator's switches.
//
//   weir-switches 1
//   pause 86400123 api          until that millisecond since boot
//   degrade 2 - search          for good
//   end 2

#ifndef WEIR_SRC_SHM_SWITCH_FILE_H_
#define WEIR_SRC_SHM_SWITCH_FILE_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/degrade/switch.h"

namespace weir::shm {

using NamedSwitch = std::pair<std::string, Switch>;

std::string PrintSwitches(const std::vector<NamedSwitch>& switches);

// Nothing when the text is not whole, to the last byte.
std::optional<std::vector<NamedSwitch>> ParseSwitches(std::string_view text);

}  // namespace weir::shm

#endif  // WEIR_SRC_SHM_SWITCH_FILE_H_
