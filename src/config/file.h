// Whole files as text.

#ifndef WEIR_CONFIG_SRC_FILE_H_
#define WEIR_CONFIG_SRC_FILE_H_

#include <cstddef>
#include <optional>
#include <string>

#include "weir/config/complaint.h"

namespace weir::config {

struct FileText {
  std::string text;
  std::optional<Complaint> complaint;  // Then there is no text.
};

// Reads a regular file (or what a link leads to) of at most `most_bytes`.
FileText ReadFileText(const std::string& path, size_t most_bytes);

// The complaint about a text that is too long.
Complaint TooLong();

}  // namespace weir::config

#endif  // WEIR_CONFIG_SRC_FILE_H_
