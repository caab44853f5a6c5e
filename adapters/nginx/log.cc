#include "log.h"

#include <vector>

#include "weir/config/nearest.h"

namespace weir::nginx {

void LogLines(ngx_uint_t level, ngx_log_t* log, std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    ngx_log_error(level, log, 0, "%*s", line.size(), line.data());
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

std::string NearestResource(const Policy& policy, std::string_view name) {
  std::vector<std::string> names;
  for (const Resource& resource : policy.resources) {
    names.push_back(resource.name);
  }
  const std::string_view nearest = config::Nearest(name, names);
  if (!nearest.empty()) {
    return "; did you mean `" + std::string(nearest) + "`?";
  }
  std::string text = "; it has";
  for (size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? " `" : i + 1 == names.size() ? " and `" : ", `";
    text += names[i] + "`";
  }
  return text;
}

}  // namespace weir::nginx
