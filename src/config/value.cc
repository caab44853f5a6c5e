#include <algorithm>
#include <cmath>
#include <utility>

#include "state.h"
#include "utf8.h"
#include "weir/config/document.h"
#include "weir/config/units.h"

namespace weir::config {
namespace {

using Kind = Node::Kind;

std::string_view NameOf(Kind kind) {
  switch (kind) {
    case Kind::kTable:
      return "a table";
    case Kind::kArray:
      return "a list";
    case Kind::kText:
      return "text";
    case Kind::kInteger:
      return "an integer";
    case Kind::kNumber:
      return "a number";
    case Kind::kBoolean:
      return "a boolean";
    case Kind::kDate:
      return "a date or a time";
  }
  return "a value";
}

std::string Written(int64_t value) { return std::to_string(value); }
std::string Written(double value) { return FormatNumber(value); }
std::string Written(Duration value) { return FormatDuration(value); }

// "an integer from 1 to 100", "a number above 0".
template <typename T, typename Format>
std::string ShapeOf(std::string_view kind, const Rule<T>& rule, Format format) {
  const Rule<T> open;
  const bool has_floor = rule.above_floor || rule.floor != open.floor;
  const bool has_ceiling = rule.ceiling != open.ceiling;
  std::string out(kind);
  if (rule.above_floor) {
    out += " above " + format(rule.floor);
    if (has_ceiling) out += ", at most " + format(rule.ceiling);
  } else if (has_floor && has_ceiling) {
    out += " from " + format(rule.floor) + " to " + format(rule.ceiling);
  } else if (has_floor) {
    out += " of at least " + format(rule.floor);
  } else if (has_ceiling) {
    out += " of at most " + format(rule.ceiling);
  }
  return out;
}

std::string Quoted(std::string_view text) {
  return '"' + std::string(text) + '"';
}

// What is said of a key in its row and in every complaint about it.
struct Spec {
  std::string shape;
  std::string fallback;  // As written in a file.
  std::string_view about;
  std::string_view example;
  std::string_view absent;
  bool required = false;
};

}  // namespace

// Reads one value by one rule.
class Reader {
 public:
  // Adds the row, and complains when a required key is missing.
  Reader(const Value& value, Spec spec)
      : value_(value), spec_(std::move(spec)) {
    const bool element = value.row_.ends_with("[]");
    if (!element)
      value.state_->AddRow({value.row_, spec_.shape, spec_.fallback,
                            std::string(spec_.absent), spec_.required,
                            std::string(spec_.about)});
    if (!value.present() && spec_.required) ComplainOfMissing();
  }

  template <typename T>
  Field<T> Start(const std::optional<T>& fallback) const {
    return {fallback.value_or(T{}), false, value_.key_place(), value_.place()};
  }

  // The value if it is of that kind; else null, with a complaint unless it is
  // absent.  `wanted` names in words what is expected.
  const Node* Expect(Kind kind, std::string_view wanted) const {
    const Node* node = value_.node_;
    if (node == nullptr || node->kind == kind) return node;
    ComplainOfKind(kind, wanted);
    return nullptr;
  }

  bool Is(Kind kind) const {
    return value_.present() && value_.node_->kind == kind;
  }
  const Node& node() const { return *value_.node_; }

  void Complain(const std::string& what) const {
    Complain(what, "write " + spec_.shape);
  }
  // `what` goes on after the name; `fix` gets its "or remove ...".
  void Complain(const std::string& what, const std::string& fix) const {
    value_.Complain(
        Name() + ' ' + what, Why(),
        spec_.required ? fix : fix + value_.OrRemove(spec_.fallback));
  }

  template <typename T, typename Format>
  Field<T> Check(Field<T> field, T value, const Rule<T>& rule,
                 Format format) const {
    const bool low =
        value < rule.floor || (rule.above_floor && value == rule.floor);
    if (low && value == rule.floor) {
      Complain("is " + format(value) + ", and must be above it");
    } else if (low) {
      Complain("is " + format(value) + ", below " + format(rule.floor));
    } else if (value > rule.ceiling) {
      Complain("is " + format(value) + ", above " + format(rule.ceiling));
    } else {
      field.value = value;
      field.given = true;
    }
    return field;
  }

  void ComplainOfKind(Kind kind, std::string_view wanted) const {
    const Node& node = *value_.node_;
    std::string fix = "write " + spec_.shape;
    // "64" where 64 is meant.
    if (node.kind == Kind::kText && kind != Kind::kArray) {
      fix += ", without quotes";
    }
    Complain(
        "is " + std::string(NameOf(node.kind)) + ", not " + std::string(wanted),
        fix);
  }

 private:
  std::string Name() const { return '`' + PrintableText(value_.path()) + '`'; }

  std::string Why() const {
    if (spec_.about.empty()) return Name() + " is " + spec_.shape;
    // "is the smallest limit", but "says whether it rests".
    const bool clause = spec_.about.starts_with("whe");
    return Name() + (clause ? " says " : " is ") + std::string(spec_.about) +
           ": " + spec_.shape;
  }

  void ComplainOfMissing() const {
    const std::string& path = value_.path();
    const size_t dot = path.rfind('.');
    const std::string key =
        dot == std::string::npos ? path : path.substr(dot + 1);
    std::string fix =
        "add `" + PrintableText(key) + " = " +
        (spec_.example.empty() ? "..." : std::string(spec_.example)) + '`';
    if (dot == std::string::npos) fix += " above the first `[section]`";
    if (value_.state_->tree.incomplete) return;  // It may be there.
    value_.state_->Complain({value_.place(), Name() + " is missing",
                             std::nullopt, Why(), std::move(fix)});
  }

  const Value& value_;
  Spec spec_;
};

namespace {

template <typename T, typename Format>
Spec NumberSpec(std::string_view kind, const Rule<T>& rule, Format format) {
  return {ShapeOf(kind, rule, format),
          rule.fallback ? format(*rule.fallback) : std::string(),
          rule.about,
          rule.example,
          rule.absent,
          rule.required};
}

// Words of other systems for ours, in lower case.
constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {
    {"on", "enforce"},
    {"true", "enforce"},
    {"enabled", "enforce"},
    {"disabled", "off"},
    {"false", "off"},
    {"dry-run", "shadow"},
    {"dry_run", "shadow"},
    {"monitor", "shadow"},
    {"log", "shadow"},
    {"report-only", "shadow"},
    {"rolling", "sliding"},
    // Source: the SRE book's four classes, of which `critical` is our second.
    {"critical_plus", "vital"},
    {"sheddable_plus", "deferrable"},
};

// The word that is meant, whatever its case.
std::string_view NearestWord(std::string_view text,
                             const std::vector<std::string>& known) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  for (const auto& [word, ours] : kSynonyms) {
    const auto found = std::find(known.begin(), known.end(), ours);
    if (word == lower && found != known.end()) return *found;
  }
  return Nearest(lower, known);
}

std::string WriteDuration(Duration value) { return Quoted(Written(value)); }
std::string WriteRate(double value) { return Quoted(FormatRate(value)); }

}  // namespace

bool Value::is_array() const {
  return present() && node_->kind == Kind::kArray;
}
bool Value::is_table() const {
  return present() && node_->kind == Kind::kTable;
}

Place Value::key_place() const {
  if (!present()) return parent_->place;
  return node_->key.empty() ? node_->place : node_->key_place;
}

Place Value::place() const { return present() ? node_->place : parent_->place; }

void Value::Complain(std::string what, std::string why, std::string fix,
                     std::optional<Note> note) const {
  state_->Complain({place(), std::move(what), std::move(note), std::move(why),
                    std::move(fix)});
}

std::string Value::OrRemove(std::string_view fallback) const {
  if (!present() || node_->key.empty()) return {};
  const bool alone = !parent_->inlined && node_->kind != Kind::kTable &&
                     node_->key_place.line == node_->end_line;
  std::string out = ", or remove ";
  out += alone ? "line " + std::to_string(node_->end_line) : "it";
  if (fallback.empty()) return alone || parent_->inlined ? out : std::string();
  return out + " to use the default, " + std::string(fallback);
}

Field<int64_t> Value::ReadInteger(const Rule<int64_t>& rule) const {
  const auto format = [](int64_t value) { return Written(value); };
  const Reader reader(*this, NumberSpec("an integer", rule, format));
  auto field = reader.Start(rule.fallback);
  if (reader.Is(Kind::kNumber)) {
    reader.Complain("is " + Written(node_->number) + ", not an integer");
    return field;
  }
  const Node* node = reader.Expect(Kind::kInteger, "an integer");
  return node == nullptr ? field
                         : reader.Check(field, node->integer, rule, format);
}

Field<int64_t> Value::ReadOneOf(const IntegerChoice& choice) const {
  std::vector<std::string> known;
  for (const int64_t value : choice.values) known.push_back(Written(value));
  const Reader reader(*this, {JoinWords(known, "", " or "),
                              choice.fallback ? Written(*choice.fallback) : "",
                              choice.about, known.front(), "", false});
  auto field = reader.Start(choice.fallback);
  const Node* node = reader.Expect(Kind::kInteger, "an integer");
  if (node == nullptr) return field;
  const auto& values = choice.values;
  if (std::find(values.begin(), values.end(), node->integer) == values.end()) {
    reader.Complain("is " + Written(node->integer));
    return field;
  }
  field.value = node->integer;
  field.given = true;
  return field;
}

Field<double> Value::ReadNumber(const Rule<double>& rule) const {
  const auto format = [](double value) { return Written(value); };
  const Reader reader(*this, NumberSpec("a number", rule, format));
  auto field = reader.Start(rule.fallback);
  double number = 0;
  if (reader.Is(Kind::kInteger)) {
    number = static_cast<double>(node_->integer);
  } else if (const Node* node = reader.Expect(Kind::kNumber, "a number")) {
    number = node->number;
  } else {
    return field;
  }
  if (!std::isfinite(number)) {
    reader.Complain("is " + Written(number) + ", which nothing can be set to");
    return field;
  }
  return reader.Check(field, number, rule, format);
}

Field<bool> Value::ReadBoolean(const Rule<bool>& rule) const {
  std::string fallback;
  if (rule.fallback) fallback = *rule.fallback ? "true" : "false";
  const Reader reader(*this, {"true or false", fallback, rule.about, "true",
                              rule.absent, rule.required});
  auto field = reader.Start(rule.fallback);
  if (const Node* node = reader.Expect(Kind::kBoolean, "true or false")) {
    field.value = node->boolean;
    field.given = true;
  }
  return field;
}

Field<std::string> Value::ReadText(const Rule<std::string>& rule) const {
  const Reader reader(*this,
                      {std::string(rule.shape),
                       rule.fallback ? Quoted(*rule.fallback) : std::string(),
                       rule.about, rule.example, rule.absent, rule.required});
  auto field = reader.Start(rule.fallback);
  const Node* node = reader.Expect(Kind::kText, "text");
  if (node == nullptr) return field;
  if (rule.accepts && !rule.accepts(node->text)) {
    reader.Complain("is not " + std::string(rule.shape));
    return field;
  }
  if (rule.problem) {
    if (const std::string problem = rule.problem(node->text);
        !problem.empty()) {
      const std::string nearest =
          rule.suggest ? rule.suggest(node->text) : std::string();
      if (nearest.empty()) {
        reader.Complain(PrintableText(problem));
      } else {
        reader.Complain(PrintableText(problem),
                        "write " + Quoted(PrintableText(nearest)));
      }
      return field;
    }
  }
  field.value = node->text;
  field.given = true;
  return field;
}

Field<Duration> Value::ReadDuration(const Rule<Duration>& rule) const {
  const Reader reader(*this, NumberSpec("a duration", rule, WriteDuration));
  auto field = reader.Start(rule.fallback);
  if (reader.Is(Kind::kInteger) || reader.Is(Kind::kNumber)) {
    const std::string number = node_->kind == Kind::kInteger
                                   ? Written(node_->integer)
                                   : Written(node_->number);
    const bool negative = number.starts_with('-');
    const bool finite =
        node_->kind == Kind::kInteger || std::isfinite(node_->number);
    if (negative || !finite) {
      reader.Complain("is " + number + ", which is no duration");
    } else {
      reader.Complain("has no unit",
                      "write \"" + number + "ms\" or \"" + number + "s\"");
    }
    return field;
  }
  const Node* node = reader.Expect(Kind::kText, "a duration in quotes");
  if (node == nullptr) return field;
  const Result<Duration> duration = ParseDuration(node->text);
  if (!duration) {
    const std::string nearest = NearestDuration(node->text);
    const Result<Duration> meant = ParseDuration(nearest);
    const bool digits =
        !node->text.empty() &&
        node->text.find_first_not_of("0123456789") == std::string::npos;
    const std::string what = PrintableText(duration.error().message);
    if (digits) {
      reader.Complain(
          what, "write \"" + node->text + "ms\" or \"" + node->text + "s\"");
    } else if (meant && *meant >= rule.floor && *meant <= rule.ceiling) {
      reader.Complain(what, "write " + Quoted(nearest));
    } else {
      reader.Complain(what);
    }
    return field;
  }
  return reader.Check(field, *duration, rule, WriteDuration);
}

Field<double> Value::ReadRate(const Rule<double>& rule) const {
  const Reader reader(*this, NumberSpec("a rate", rule, WriteRate));
  auto field = reader.Start(rule.fallback);
  if (reader.Is(Kind::kInteger) && node_->integer >= 0) {
    const std::string number = Written(node_->integer);
    reader.Complain("has no unit", "write \"" + number + "/s\"");
    return field;
  }
  const Node* node = reader.Expect(Kind::kText, "a rate in quotes");
  if (node == nullptr) return field;
  const Result<double> rate = ParseRate(node->text);
  if (!rate) {
    reader.Complain(PrintableText(rate.error().message));
    return field;
  }
  return reader.Check(field, *rate, rule, WriteRate);
}

Field<size_t> Value::ReadWord(const Words& words) const {
  const std::vector<std::string> known(words.words.begin(), words.words.end());
  const std::string shape =
      known.size() == 1 ? Quoted(known[0]) : JoinWords(known, "\"", " or ");
  const Reader reader(
      *this, {shape, words.fallback ? Quoted(known[*words.fallback]) : "",
              words.about, shape, words.absent, words.required});
  auto field = reader.Start(words.fallback);
  const Node* node = reader.Expect(Kind::kText, "text");
  if (node == nullptr) return field;
  const auto found = std::find(known.begin(), known.end(), node->text);
  if (found != known.end()) {
    field.value = static_cast<size_t>(found - known.begin());
    field.given = true;
    return field;
  }
  const std::string_view nearest = NearestWord(node->text, known);
  reader.Complain("is not " + shape,
                  "write " + (nearest.empty() ? shape : Quoted(nearest)));
  return field;
}

std::vector<Value> Value::ReadArray(std::string_view about,
                                    std::string_view shape,
                                    std::string_view fallback) const {
  const Reader reader(
      *this, {std::string(shape), std::string(fallback), about, "", "", false});
  std::vector<Value> out;
  if (reader.Expect(Kind::kArray, "a list") == nullptr) return out;
  for (Node& item : node_->children) {
    out.push_back(Value(state_, &item, node_, path_, row_ + "[]"));
  }
  return out;
}

Section Value::ReadTable(std::string_view about) const {
  if (present() && node_->kind != Kind::kTable) {
    Complain('`' + PrintableText(path_) + "` is " +
                 std::string(NameOf(node_->kind)) + ", not a table",
             '`' + PrintableText(path_) + "` is " + std::string(about) +
                 ": a table of keys",
             "write `[" + PrintableText(path_) + "]`, and its keys below");
    return {state_, nullptr, parent_, path_, row_};
  }
  if (present()) node_->opened = true;
  return {state_, node_, parent_, path_, row_};
}

std::vector<Section> Value::ReadTables(std::string_view about,
                                       std::string_view text_key) const {
  std::vector<Section> out;
  if (!present()) return out;
  if (node_->kind != Kind::kArray) {
    Complain('`' + PrintableText(path_) + "` is " +
                 std::string(NameOf(node_->kind)) + ", not a list of tables",
             '`' + PrintableText(path_) + "` is " + std::string(about) +
                 ": there may be several",
             "write `[[" + PrintableText(path_) + "]]`");
    return out;
  }
  for (Node& item : node_->children) {
    const Value element(state_, &item, node_, path_, row_);
    if (item.kind != Kind::kTable) {
      const bool named = item.kind == Kind::kText && !text_key.empty();
      element.Complain(
          '`' + PrintableText(path_) + "` has " +
              std::string(NameOf(item.kind)) + " in it, not a table",
          '`' + PrintableText(path_) + "` is " + std::string(about) +
              ": a list of tables",
          named ? "write { " + std::string(text_key) + " = " +
                      Quoted(PrintableText(item.text)) + " } instead"
                : "write `[[" + PrintableText(path_) +
                      "]]`, and the keys of one below");
      continue;
    }
    const Section section = element.ReadTable(about);
    if (section.present()) out.push_back(section);
  }
  return out;
}

}  // namespace weir::config
