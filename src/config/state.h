// What the handles of a document share.

#ifndef WEIR_CONFIG_SRC_STATE_H_
#define WEIR_CONFIG_SRC_STATE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "node.h"
#include "weir/config/complaint.h"
#include "weir/config/document.h"
#include "weir/config/nearest.h"

namespace weir::config {

struct DocumentState {
  explicit DocumentState(std::shared_ptr<const SourceText> from)
      : source(from), complaints(std::move(from)) {}

  void Complain(Complaint complaint) {
    if (!unreadable) complaints.Add(std::move(complaint));
  }

  // Adds a row unless its path has one.
  void AddRow(Row row);

  std::shared_ptr<const SourceText> source;
  Complaints complaints;
  Tree tree;
  std::vector<Row> rows;
  // The keys that were asked of the table of a row path.
  std::map<std::string, std::vector<std::string>, std::less<>> known;
  // There is no text: whatever else a reader finds missing follows from that.
  bool unreadable = false;
  std::function<std::string(std::string_view row, std::string_view key)> advise;
  bool finished = false;
};

// "limit.floor"; `key` alone at the root.
std::string JoinPath(std::string_view table, std::string_view key);

// "at the top level" or "in `[limit]`".
std::string InTable(std::string_view path);

// "`a`, `b` and `c`"; `quote` stands on both sides of each.
std::string JoinWords(const std::vector<std::string>& words,
                      std::string_view quote, std::string_view last = " and ");

}  // namespace weir::config

#endif  // WEIR_CONFIG_SRC_STATE_H_
