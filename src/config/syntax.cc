#include "syntax.h"

#include <algorithm>
#include <optional>

#include "utf8.h"
#include "weir/config/units.h"

namespace weir::config {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kEndsToken = " \t\r\n,=[]{}#\"'";
constexpr std::string_view kRedefine = "cannot redefine existing";

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

bool IsHeader(std::string_view line) { return Trim(line).starts_with('['); }

// Whether a line looks like one that starts something, so that an error in it
// is not merely what is left of the line before.
bool LooksWhole(std::string_view line) {
  const std::string_view text = Trim(line);
  if (text.starts_with('[')) return Contains(text, "]") && !Contains(text, ",");
  const size_t equals = text.find('=');
  return equals != std::string_view::npos && equals > 0 &&
         !Contains(text.substr(0, equals), "{");
}

// Whether a line leaves a list or a text open.
bool LeavesOpen(std::string_view line) {
  return std::count(line.begin(), line.end(), '[') !=
             std::count(line.begin(), line.end(), ']') ||
         Contains(line, "\"\"\"") || Contains(line, "'''");
}

// A stretch of bytes of a line.
struct Stretch {
  size_t begin = 0;
  size_t end = 0;
};

Place ToPlace(int line_number, std::string_view line, Stretch stretch) {
  return {line_number, CountCodePoints(line.substr(0, stretch.begin)) + 1,
          std::max(1, CountCodePoints(line.substr(
                          stretch.begin, stretch.end - stretch.begin)))};
}

size_t ByteOfColumn(std::string_view line, int column) {
  size_t byte = 0;
  for (int i = 1; i < column && byte < line.size(); ++i) {
    byte += std::max<size_t>(1, CodePointSize(line.substr(byte)));
  }
  return byte;
}

// The word around a byte, or the one that ends there; else that byte.
Stretch TokenAt(std::string_view line, size_t byte) {
  const auto in_token = [&](size_t i) {
    return i < line.size() && !Contains(kEndsToken, line.substr(i, 1));
  };
  Stretch token{byte, byte};
  while (in_token(token.end)) ++token.end;
  while (token.begin > 0 && in_token(token.begin - 1)) --token.begin;
  if (token.begin == token.end) token.end = std::min(byte + 1, line.size());
  return token;
}

// The key whose value begins at (or contains) a byte.
Stretch KeyBefore(std::string_view line, size_t byte) {
  const size_t equals = line.rfind('=', byte);
  if (equals == std::string_view::npos) return TokenAt(line, byte);
  size_t begin = 0;
  if (equals > 0) {
    const size_t stop = line.find_last_of(",{", equals - 1);
    begin = stop == std::string_view::npos ? 0 : stop + 1;
  }
  while (begin < equals && Contains(kBlanks, line.substr(begin, 1))) ++begin;
  size_t end = equals;
  while (end > begin && Contains(kBlanks, line.substr(end - 1, 1))) --end;
  return {begin, end};
}

// The inside of a header: "resource.api" of "[[resource.api]] # text".
std::string_view HeaderPath(std::string_view line) {
  std::string_view text = Trim(line);
  while (text.starts_with('[')) text.remove_prefix(1);
  return Trim(text.substr(0, text.find(']')));
}

const Node* Child(const Node& table, std::string_view key) {
  for (const Node& child : table.children) {
    if (child.key == key) return &child;
  }
  return nullptr;
}

// What a dotted path leads to; when a value that is no table stands in its
// way, that value.
const Node* FollowPath(const Node* from, std::string_view path) {
  while (from != nullptr) {
    if (from->kind != Node::Kind::kTable) return from;
    const size_t dot = path.find('.');
    std::string_view key = Trim(path.substr(0, dot));
    if (key.size() >= 2 && (key.front() == '"' || key.front() == '\'')) {
      key = key.substr(1, key.size() - 2);
    }
    from = Child(*from, key);
    if (dot == std::string_view::npos) return from;
    path.remove_prefix(dot + 1);
    if (from != nullptr && from->kind == Node::Kind::kArray &&
        !from->children.empty()) {
      from = &from->children.back();
    }
  }
  return nullptr;
}

// The first definition of what line `number` defines again.
const Node* FirstDefinition(const SourceText& source, int number,
                            std::string_view key, const Node& before) {
  if (IsHeader(source.Line(number))) {
    return FollowPath(&before, HeaderPath(source.Line(number)));
  }
  const Node* section = &before;
  for (int line = number - 1; line > 0; --line) {
    if (!IsHeader(source.Line(line))) continue;
    section = FollowPath(&before, HeaderPath(source.Line(line)));
    if (section != nullptr && section->kind == Node::Kind::kArray) {
      section = section->children.empty() ? nullptr : &section->children.back();
    }
    if (section != nullptr) break;
  }
  return FollowPath(section, key);
}

Complaint DescribeTwice(const SourceText& source, const SyntaxError& error,
                        const Node* before) {
  const std::string_view line = source.Line(error.line);
  Stretch where;
  std::string name;
  if (IsHeader(line)) {
    const std::string_view path = HeaderPath(line);
    where.begin = static_cast<size_t>(path.data() - line.data());
    where.end = where.begin + path.size();
    name = '[' + PrintableText(path) + ']';
  } else {
    where = KeyBefore(line, ByteOfColumn(line, error.column));
    name = PrintableText(line.substr(where.begin, where.end - where.begin));
  }
  Complaint out{ToPlace(error.line, line, where),
                "`" + name + "` is given twice", std::nullopt,
                "only one of them could count, and which one would be a guess",
                "remove one of them"};
  const bool statement = Trim(line.substr(0, where.begin + 1)).size() == 1;
  const Node* first = nullptr;
  if (before != nullptr && (IsHeader(line) || statement)) {
    first = FirstDefinition(source, error.line,
                            line.substr(where.begin, where.end - where.begin),
                            *before);
  }
  if (first == nullptr || first->key.empty()) return out;
  out.note = Note{first->key_place, "it is first given here"};
  if (!IsHeader(line)) {
    out.fix = "remove line " + std::to_string(error.line) + " or line " +
              std::to_string(first->key_place.line);
  } else if (first->kind == Node::Kind::kTable) {
    out.fix = "move the keys of both into one `" + name + "`";
  } else {
    out.what = "`" + name + "` needs a table where a value stands";
    out.note->what = "`" + PrintableText(first->key) + "` has its value here";
    out.why = "a key is a table or has a value, not both";
  }
  return out;
}

// What the parser says after "Error while parsing ...: ".
std::string Said(std::string_view description) {
  constexpr std::string_view kStart = "Error while parsing ";
  if (description.starts_with(kStart)) {
    const size_t colon = description.find(": ");
    if (colon != std::string_view::npos) description.remove_prefix(colon + 2);
  }
  return PrintableText(description);
}

// What the parser says of common slips, and what we say.
constexpr std::string_view kOpenText = "a line ends within quotes";
struct Known {
  std::string_view said, what, why, fix;
};
constexpr Known kKnown[] = {
    {"expected '='", "a key without a value",
     "every line is a `[header]`, a `key = value` or a # comment",
     "write `key = value`, or remove the line"},
    {"expected value, saw '\\n'", "a key without a value",
     "every key has a value on its line", "write a value, or remove the line"},
    {"table header: expected ']'", "a header without its `]`",
     "a header is a name in brackets", "write `[name]`"},
    {"array: expected comma or closing ']'",
     "the list before this has no comma or no `]`",
     "the values of a list stand in brackets, with commas between",
     "add what is missing"},
    {kOpenText, "a text without its closing quote",
     "a text in one pair of quotes ends on its line", "add the quote"},
    {"end-of-file", "the file ends within a value",
     "a quote, bracket or brace that is opened must be closed", "close it"},
};

bool IsBareDurationOrRate(std::string_view word) {
  return !word.empty() && (ParseDuration(word).ok() || ParseRate(word).ok());
}

Complaint DescribeOther(const SourceText& source, const SyntaxError& error) {
  const std::string_view line = source.Line(error.line);
  const Stretch where = TokenAt(line, ByteOfColumn(line, error.column));
  const std::string word =
      PrintableText(line.substr(where.begin, where.end - where.begin));
  const Place place = ToPlace(error.line, line, where);
  std::string_view said = error.description;
  if (Contains(said, "control characters") &&
      error.column > CountCodePoints(line)) {
    said = kOpenText;  // The control character is the line's end.
  }
  if (!Contains(said, "end-of-file") && IsBareDurationOrRate(word)) {
    return {place, "`" + word + "` has no quotes", std::nullopt,
            "durations and rates are text, and text stands in quotes",
            "write \"" + word + "\""};
  }
  if (Contains(said, "could not determine value type") ||
      Contains(said, "expected 'true'") || Contains(said, "expected 'false'")) {
    return {place, "`" + word + "` is no value", std::nullopt,
            "without quotes only numbers, dates, true and false are values",
            "write \"" + word + "\" if it is meant as text"};
  }
  if (Contains(said, "digit") || Contains(said, "leading zeroes")) {
    return {place, "`" + word + "` is no number", std::nullopt, Said(said),
            "write digits only, or \"" + word + "\" if it is meant as text"};
  }
  if (Contains(said, "not representable in 64 bits")) {
    return {place, "`" + word + "` does not fit in 64 bits", std::nullopt,
            "the integers of TOML have 64 bits", "write a smaller number"};
  }
  for (const Known& known : kKnown) {
    if (Contains(said, known.said)) {
      return {place, std::string(known.what), std::nullopt,
              std::string(known.why), std::string(known.fix)};
    }
  }
  return {place, "this is no TOML: " + Said(said), std::nullopt,
          "the file is TOML 1.0; what cannot be read cannot be checked",
          "correct line " + std::to_string(error.line)};
}

}  // namespace

bool ComplainOfBytes(const SourceText& source, int most_dots,
                     Complaints& complaints) {
  const size_t before = complaints.size();
  for (int number = 1; number <= source.lines(); ++number) {
    const std::string_view line = source.Line(number);
    if (const auto bad = FirstBadByte(line)) {
      complaints.Add(
          {ToPlace(number, line, {*bad, *bad + 1}), "this is not UTF-8",
           std::nullopt,
           "TOML is text in UTF-8; other bytes have no meaning in it",
           "save the file as UTF-8"});
      break;
    }
    if (Trim(line).starts_with('#')) continue;
    if (std::count(line.begin(), line.end(), '.') > most_dots) {
      complaints.Add(
          {ToPlace(number, line, {0, 1}),
           "more than " + std::to_string(most_dots) + " dots in one line",
           std::nullopt,
           "each dot of a key is a table within a table, and so many "
           "are not read",
           "break the line, or shorten its keys"});
    }
  }
  return complaints.size() > before;
}

MendableText::MendableText(const SourceText& source) : source_(source) {
  for (int number = 1; number <= source.lines(); ++number) {
    lines_.emplace_back(source.Line(number));
  }
}

std::string MendableText::JoinedBefore(int line) const {
  std::string out;
  for (int i = 0; i < line - 1 && i < lines(); ++i) {
    if (i > 0) out += '\n';
    out += lines_[static_cast<size_t>(i)];
  }
  return out;
}

int MendableText::LineOf(const SyntaxError& error) const {
  int number = std::clamp(error.line, 1, lines());
  // A header that contradicts an earlier one is found at the end of its line,
  // which is the line after.
  if (Contains(error.description, "table header") &&
      Contains(error.description, kRedefine)) {
    while (number > 1 && !IsHeader(lines_[static_cast<size_t>(number - 1)])) {
      --number;
    }
  }
  return number;
}

bool MendableText::Mend(const SyntaxError& error, const Node* before,
                        Complaints& complaints) {
  const int number = error.line;
  std::string& line = lines_[static_cast<size_t>(number - 1)];
  if (opened_ && number == last_mended_ + 1 && !LooksWhole(line)) {
    line.clear();  // A left-over of a complaint, not one of its own.
    last_mended_ = number;
    return before != nullptr;
  }
  complaints.Add(Describe(error, before));
  // A line that was mended before and still is wrong cannot be helped.
  if (before == nullptr || line.empty()) return false;
  opened_ = LeavesOpen(line);
  if (IsHeader(line)) {
    opened_ = false;
    line = "[\"" + std::string(kReplacedHeader) + std::to_string(replaced_++) +
           "\"]";
    lost_something_ = true;
  } else {
    line.clear();
    lost_something_ =
        lost_something_ || !Contains(error.description, kRedefine);
  }
  last_mended_ = number;
  return true;
}

Complaint MendableText::Describe(const SyntaxError& error,
                                 const Node* before) const {
  if (Contains(error.description, kRedefine)) {
    return DescribeTwice(source_, error, before);
  }
  Complaint out = DescribeOther(source_, error);
  if (error.begin != 0 && error.begin != error.line) {
    const std::string_view line = source_.Line(error.begin);
    const size_t first = std::min(line.find_first_not_of(kBlanks), line.size());
    out.note = Note{ToPlace(error.begin, line, TokenAt(line, first)),
                    "what is not complete begins here"};
  }
  return out;
}

}  // namespace weir::config
