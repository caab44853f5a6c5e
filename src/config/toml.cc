// The only file that sees toml++.

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "node.h"
#include "syntax.h"
#include "utf8.h"

// toml++ 3.3 asserts that a header begins with a key, of whatever text comes in
// (`[?`), and with NDEBUG assumes it, which clang believes.  Its code right
// after handles the case, so neither is wanted.
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
// Chosen: no format of ours nests values deeper than 3.  Destructors and
// conversion recurse, at most 8 * kMostDotsInLine deep, well within a stack.
#define TOML_MAX_NESTED_VALUES 8
// toml++ 3.3 tells the compiler that no character from U+00A1 to U+0499 (and a
// few more) comes where a blank may, as in `über = 1`.  They do come, and
// are no blanks.
#if __has_include(<toml++/impl/unicode.h>)
#include <toml++/impl/forward_declarations.h>
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE return false
#include <toml++/impl/unicode.h>
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE __builtin_unreachable()
#endif
#include <toml++/toml.h>

namespace weir::config {
namespace {

// Chosen: past these, the text is no TOML at all.
constexpr int kMostSyntaxErrors = 20;
// Chosen: a hundred IPv4 addresses in one line are legal.
constexpr int kMostDotsInLine = 300;

Place ToPlace(const SourceText& source, const toml::source_region& region) {
  Place place{static_cast<int>(region.begin.line),
              static_cast<int>(region.begin.column), 1};
  const int end = region.end.line == region.begin.line
                      ? static_cast<int>(region.end.column)
                      : CountCodePoints(source.Line(place.line)) + 1;
  place.length = std::max(1, end - place.column);
  return place;
}

class Converter {
 public:
  explicit Converter(const SourceText& source) : source_(source) {}

  Node Convert(const toml::node& from) const {
    Node node;
    node.place = ToPlace(source_, from.source());
    node.end_line = static_cast<int>(from.source().end.line);
    if (const auto* table = from.as_table()) {
      FromTable(*table, node);
    } else if (const auto* array = from.as_array()) {
      node.kind = Node::Kind::kArray;
      for (const toml::node& item : *array) {
        node.children.push_back(Convert(item));
      }
    } else {
      FromScalar(from, node);
    }
    return node;
  }

 private:
  void FromTable(const toml::table& table, Node& node) const {
    node.kind = Node::Kind::kTable;
    node.inlined = table.is_inline();
    for (const auto& [key, value] : table) {
      Node child = Convert(value);
      child.key = key.str();
      child.key_place = ToPlace(source_, key.source());
      node.children.push_back(std::move(child));
    }
    std::sort(node.children.begin(), node.children.end(),
              [](const Node& a, const Node& b) {
                return std::tie(a.key_place.line, a.key_place.column) <
                       std::tie(b.key_place.line, b.key_place.column);
              });
  }

  static void FromScalar(const toml::node& from, Node& node) {
    if (const auto* text = from.as_string()) {
      node.kind = Node::Kind::kText;
      node.text = text->get();
    } else if (const auto* integer = from.as_integer()) {
      node.kind = Node::Kind::kInteger;
      node.integer = integer->get();
    } else if (const auto* number = from.as_floating_point()) {
      node.kind = Node::Kind::kNumber;
      node.number = number->get();
    } else if (const auto* boolean = from.as_boolean()) {
      node.kind = Node::Kind::kBoolean;
      node.boolean = boolean->get();
    } else {
      node.kind = Node::Kind::kDate;
    }
  }

  const SourceText& source_;
};

std::optional<Node> TryParse(const SourceText& source, std::string_view text,
                             SyntaxError* error) {
  const toml::parse_result result = toml::parse(text);
  if (result) return Converter(source).Convert(result.table());
  if (error != nullptr) {
    const toml::source_position at = result.error().source().begin;
    *error = {static_cast<int>(at.line),
              std::max(1, static_cast<int>(at.column)),
              std::string(result.error().description())};
  }
  return std::nullopt;
}

// Where the statement begins that has an error at `line` (mended text).  0 when
// that is further up than is worth a look: each takes a parse.
int StatementOf(const SourceText& source, const MendableText& text, int line) {
  constexpr int kFurthest = 50;
  for (int begin = line; begin > std::max(0, line - kFurthest); --begin) {
    if (TryParse(source, text.JoinedBefore(begin), nullptr)) return begin;
  }
  return 0;
}

// Drops what came under headers that had to be replaced.
void DropReplaced(Node& root) {
  std::erase_if(root.children, [](const Node& child) {
    return child.key.starts_with(kReplacedHeader);
  });
}

}  // namespace

Tree ParseToml(const std::shared_ptr<const SourceText>& source,
               Complaints& complaints) {
  Tree tree;
  if (ComplainOfBytes(*source, kMostDotsInLine, complaints)) {
    tree.incomplete = true;
    return tree;
  }
  MendableText text(*source);
  for (int errors = 0; errors < kMostSyntaxErrors; ++errors) {
    SyntaxError error;
    if (auto root = TryParse(*source, text.Joined(), &error)) {
      DropReplaced(*root);
      tree.root = std::move(*root);
      tree.incomplete = tree.incomplete || text.lost_something();
      return tree;
    }
    error.line = text.LineOf(error);
    const auto before =
        TryParse(*source, text.JoinedBefore(error.line), nullptr);
    error.begin = before ? error.line : StatementOf(*source, text, error.line);
    if (!text.Mend(error, before ? &*before : nullptr, complaints)) break;
  }
  tree.incomplete = true;
  return tree;
}

}  // namespace weir::config
