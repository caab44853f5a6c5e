#include "weir/config/complaint.h"

#include <algorithm>
#include <tuple>

#include "utf8.h"

namespace weir::config {
namespace {

// Chosen: a terminal's width less the line number.
constexpr int kWidestLine = 100;
constexpr int kLineNumberWidth = 5;

std::string PadLeft(std::string text, size_t width) {
  return text.size() >= width ? text
                              : std::string(width - text.size(), ' ') + text;
}

// The part of a line that is shown, one printable code point per column.
struct Excerpt {
  std::string text;
  int column = 1;  // Where the place begins in `text`.
  int length = 1;
};

Excerpt MakeExcerpt(std::string_view line, const Place& place) {
  const std::vector<std::string_view> points = SplitCodePoints(line);
  const int size = static_cast<int>(points.size());
  int begin = 0;
  int end = size;
  if (size > kWidestLine) {
    begin =
        std::clamp(place.column - 1 - kWidestLine / 3, 0, size - kWidestLine);
    end = begin + kWidestLine;
  }
  Excerpt excerpt;
  if (begin > 0) excerpt.text += "...";
  excerpt.column = place.column - begin + static_cast<int>(excerpt.text.size());
  for (int i = begin; i < end; ++i) {
    excerpt.text += Printable(points[static_cast<size_t>(i)]);
  }
  if (end < size) excerpt.text += "...";
  excerpt.length =
      std::clamp(place.length, 1, std::max(1, end - (place.column - 1)));
  return excerpt;
}

std::string Where(const SourceText& source, const Place& place) {
  if (place.line == 0) return source.name();
  return source.name() + ':' + std::to_string(place.line) + ':' +
         std::to_string(place.column);
}

std::string Quote(const SourceText& source, const Place& place) {
  if (place.line == 0) return {};
  const Excerpt excerpt = MakeExcerpt(source.Line(place.line), place);
  const std::string bar = " |";
  std::string out = PadLeft(std::to_string(place.line), kLineNumberWidth) + bar;
  if (!excerpt.text.empty()) out += ' ' + excerpt.text;
  out += '\n' + std::string(kLineNumberWidth, ' ') + bar +
         std::string(static_cast<size_t>(std::max(excerpt.column, 1)), ' ') +
         std::string(static_cast<size_t>(excerpt.length), '^') + '\n';
  return out;
}

std::string PrintOne(const SourceText& source, const Complaint& complaint) {
  std::string out = Where(source, complaint.place) +
                    ": error: " + complaint.what + '\n' +
                    Quote(source, complaint.place);
  if (complaint.note) {
    out += Where(source, complaint.note->place) +
           ": note: " + complaint.note->what + '\n' +
           Quote(source, complaint.note->place);
  }
  if (!complaint.why.empty()) out += "  why: " + complaint.why + '\n';
  if (!complaint.fix.empty()) out += "  fix: " + complaint.fix + '\n';
  return out;
}

}  // namespace

SourceText::SourceText(std::string name, std::string text)
    : name_(std::move(name)), text_(std::move(text)) {
  starts_.push_back(0);
  for (size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') starts_.push_back(i + 1);
  }
}

std::string_view SourceText::Line(int number) const {
  if (number < 1 || number > lines()) return {};
  const size_t index = static_cast<size_t>(number) - 1;
  const size_t begin = starts_[index];
  size_t end =
      index + 1 < starts_.size() ? starts_[index + 1] - 1 : text_.size();
  if (end > begin && text_[end - 1] == '\r') --end;
  return std::string_view(text_).substr(begin, end - begin);
}

void Complaints::Add(Complaint complaint) {
  const auto later = [](const Complaint& a, const Complaint& b) {
    return std::tie(a.place.line, a.place.column) <
           std::tie(b.place.line, b.place.column);
  };
  const auto at =
      std::upper_bound(list_.begin(), list_.end(), complaint, later);
  list_.insert(at, std::move(complaint));
}

std::string Complaints::Print(std::string_view consequence) const {
  std::string out;
  const size_t shown = std::min(list_.size(), kMostPrinted);
  for (size_t i = 0; i < shown; ++i) out += PrintOne(*source_, list_[i]);
  out += std::to_string(list_.size());
  out += list_.size() == 1 ? " error" : " errors";
  if (shown < list_.size()) {
    out += " (the first " + std::to_string(shown) + " are shown)";
  }
  if (!consequence.empty()) {
    out += "; ";
    out += consequence;
  }
  return out + '\n';
}

void EndWithError(const Complaints& complaints) {
  weir::EndWithError(Error{complaints.Print()});
}

}  // namespace weir::config
