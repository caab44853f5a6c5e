// Complaints about a text that a person wrote: where, what, why, and the fix.
//
// A reader goes on after a complaint, so all of them come in one run:
//
//   shop.toml:14:9: error: `limit.floor` is above `limit.ceiling`
//      14 | floor = 64
//         |         ^^
//   shop.toml:15:11: note: the ceiling is set here
//      15 | ceiling = 32
//         |           ^^
//     why: every limit lies between its floor and its ceiling; here none can
//     fix: lower `floor` to 32 or less, or remove line 14 to use the default, 1
//   1 error; the running configuration is unchanged

#ifndef WEIR_CONFIG_COMPLAINT_H_
#define WEIR_CONFIG_COMPLAINT_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/result.h"

namespace weir::config {

// A stretch of the text within one line.  Lines and columns count from 1;
// columns and lengths count code points.  Line 0: the file as a whole.
struct Place {
  int line = 0;
  int column = 0;
  int length = 1;
};

struct Note {
  Place place;
  std::string what;
};

// Each text in lower case without a full stop, keys in backticks.
struct Complaint {
  Place place;
  std::string what;
  std::optional<Note> note;
  std::string why;
  std::string fix;
};

// A text and the name it goes by in messages.
class SourceText {
 public:
  SourceText(std::string name, std::string text);

  const std::string& name() const { return name_; }
  const std::string& text() const { return text_; }
  int lines() const { return static_cast<int>(starts_.size()); }

  // Line `number`, from 1, without its end; empty when there is none.
  std::string_view Line(int number) const;

 private:
  std::string name_;
  std::string text_;
  std::vector<size_t> starts_;  // Where each line begins.
};

// The complaints about one source, in the order of their positions.
class Complaints {
 public:
  explicit Complaints(std::shared_ptr<const SourceText> source)
      : source_(std::move(source)) {}

  // Keeps the order; of two at one position the earlier added comes first.
  void Add(Complaint complaint);

  bool empty() const { return list_.empty(); }
  size_t size() const { return list_.size(); }
  const std::vector<Complaint>& list() const { return list_; }
  const SourceText& source() const { return *source_; }

  // The form above.  `consequence` ends the last line.  At most kMostPrinted
  // are shown; the last line counts all.  Control characters of the source
  // come out as '?', and of a long line only the part around the place.
  std::string Print(std::string_view consequence =
                        "the running configuration is unchanged") const;

  // Chosen: nobody mends more at once, and a binary file would fill the log.
  static constexpr size_t kMostPrinted = 100;

 private:
  std::shared_ptr<const SourceText> source_;
  std::vector<Complaint> list_;
};

// As for a plain Error: ends the program with all of them.
[[noreturn]] void EndWithError(const Complaints& complaints);

// What a reader makes of a text: a T, or at least one complaint.
template <typename T>
class [[nodiscard]] Checked : public Result<T, Complaints> {
 public:
  using Result<T, Complaints>::Result;

  // Undefined when ok().
  const Complaints& complaints() const { return this->error(); }
};

}  // namespace weir::config

#endif  // WEIR_CONFIG_COMPLAINT_H_
