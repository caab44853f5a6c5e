// The tree of a parsed document, in our own terms.

#ifndef WEIR_CONFIG_SRC_NODE_H_
#define WEIR_CONFIG_SRC_NODE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weir/config/complaint.h"

namespace weir::config {

struct Node {
  enum class Kind : uint8_t {
    kTable,
    kArray,
    kText,
    kInteger,
    kNumber,
    kBoolean,
    kDate,
  };
  Kind kind = Kind::kTable;
  bool inlined = false;  // A table in braces.
  bool asked = false;    // A reader asked its table for this key.
  bool opened = false;   // A reader read this as a table.
  bool boolean = false;
  int64_t integer = 0;
  double number = 0;
  std::string text;

  std::string key;  // Empty for the root and in arrays.
  Place key_place;
  Place place;                 // Of the value, as far as its first line goes.
  int end_line = 0;            // Where it ends.
  std::vector<Node> children;  // In the order of the file.
};

struct Tree {
  Node root;
  // Something could not be read, so what seems missing may be there.
  bool incomplete = false;
};

// Reads TOML 1.0.  Complains of what is not, and goes on where that is safe.
Tree ParseToml(const std::shared_ptr<const SourceText>& source,
               Complaints& complaints);

}  // namespace weir::config

#endif  // WEIR_CONFIG_SRC_NODE_H_
