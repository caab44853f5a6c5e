// Complaints about texts that are no TOML, and how to go on after one.

#ifndef WEIR_CONFIG_SRC_SYNTAX_H_
#define WEIR_CONFIG_SRC_SYNTAX_H_

#include <string>
#include <string_view>
#include <vector>

#include "node.h"
#include "weir/config/complaint.h"

namespace weir::config {

// What the parser says: it stops at the first error.
struct SyntaxError {
  int line = 1;
  int column = 1;
  std::string description;
  int begin = 0;  // Line where the statement begins that it is in; 0: unknown.
};

// Headers that cannot stand are replaced by one of this name and a number, so
// that the keys below do not fall into the table above.
inline constexpr std::string_view kReplacedHeader = "weir replaced header ";

// Complains of bytes that are not UTF-8, and of lines with more than
// `most_dots` dots (the parser recurses for each of a key).  True when there
// are any.
bool ComplainOfBytes(const SourceText& source, int most_dots,
                     Complaints& complaints);

// The text of a source, of which lines with errors are taken out one by one,
// so that one run finds the errors of all lines.
class MendableText {
 public:
  explicit MendableText(const SourceText& source);

  std::string Joined() const { return JoinedBefore(lines() + 1); }
  // The lines before that one.
  std::string JoinedBefore(int line) const;
  int lines() const { return static_cast<int>(lines_.size()); }

  // The line that an error is in.
  int LineOf(const SyntaxError& error) const;

  // Complains of `error`, whose line is LineOf() it, and takes its line out.
  // `before` is the tree of the lines before it; null when they are not
  // complete by themselves, which means that the error lies within a value of
  // several lines.  False when nothing sensible can follow.
  bool Mend(const SyntaxError& error, const Node* before,
            Complaints& complaints);

  // A line was taken out whose key is not in the text a second time.
  bool lost_something() const { return lost_something_; }

 private:
  Complaint Describe(const SyntaxError& error, const Node* before) const;

  const SourceText& source_;
  std::vector<std::string> lines_;
  int last_mended_ = -1;
  bool opened_ = false;  // The line last mended began a value of several lines.
  int replaced_ = 0;
  bool lost_something_ = false;
};

}  // namespace weir::config

#endif  // WEIR_CONFIG_SRC_SYNTAX_H_
