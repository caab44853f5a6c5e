#include "weir/config/document.h"

#include <algorithm>
#include <utility>

#include "file.h"
#include "state.h"
#include "utf8.h"

namespace weir::config {
namespace {

std::string QuoteKey(std::string_view key) {
  return '`' + PrintableText(key) + '`';
}

// Where a key that its table does not know is at home, as the tail of a fix.
std::string HomeOf(const DocumentState& state, const std::string& row,
                   std::string_view key) {
  // What a table of one of several things has is not what all of them have.
  const bool of_one = row.find(".*") != std::string::npos;
  for (const auto& [path, keys] : state.known) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) continue;
    if (path.empty()) return "move it above the first `[section]`";
    if (of_one && path.find(".*") == std::string::npos) {
      return "remove it; `[" + path +
             "]` has such a key, which is for all of "
             "them together";
    }
    return "move it to `[" + path + "]`";
  }
  return {};
}

void ComplainOfUnknown(DocumentState& state, const Node& node,
                       std::string_view table, const std::string& row) {
  static const std::vector<std::string> kNone;
  const auto found = state.known.find(row);
  const auto& known = found == state.known.end() ? kNone : found->second;
  std::string fix;
  if (row.ends_with(".*") && node.kind == Node::Kind::kTable && !node.inlined) {
    // [resource.a.b] is `b` in `a`; a name with a dot needs quotes.
    const size_t dot = table.rfind('.');
    fix = "write `[" + std::string(table.substr(0, dot + 1)) + '"' +
          std::string(table.substr(dot + 1)) + '.' + node.key +
          "\"]` if the dot is part of the name";
    fix = PrintableText(fix);
  } else if (const std::string advice =
                 state.advise ? state.advise(row, node.key) : std::string();
             !advice.empty()) {
    fix = advice;
  } else if (const std::string home = HomeOf(state, row, node.key);
             !home.empty()) {
    fix = home;
  } else if (const auto nearest = Nearest(node.key, known); !nearest.empty()) {
    fix = "write `" + std::string(nearest) + "`, or remove the key";
  } else {
    fix = "remove it";
    if (!known.empty()) fix += "; known are " + JoinWords(known, "`");
  }
  state.Complain({node.key_place,
                  "unknown key " + QuoteKey(node.key) + ' ' +
                      PrintableText(InTable(table)),
                  std::nullopt,
                  "a key that nobody reads would do nothing, unnoticed",
                  std::move(fix)});
}

// Names of a table whose keys are names are "*" in rows.
std::string RowOf(const DocumentState& state, const std::string& table_row,
                  std::string_view key) {
  const auto found = state.known.find(table_row);
  if (found != state.known.end() &&
      std::find(found->second.begin(), found->second.end(), "*") !=
          found->second.end()) {
    key = "*";
  }
  return JoinPath(table_row, key);
}

void FindUnknown(DocumentState& state, const Node& node,
                 const std::string& path, const std::string& row) {
  if (node.kind == Node::Kind::kArray) {
    for (const Node& item : node.children) FindUnknown(state, item, path, row);
    return;
  }
  if (node.kind != Node::Kind::kTable || !node.opened) return;
  for (const Node& child : node.children) {
    if (!child.asked) {
      ComplainOfUnknown(state, child, path, row);
    } else {
      FindUnknown(state, child, JoinPath(path, child.key),
                  RowOf(state, row, child.key));
    }
  }
}

}  // namespace

void DocumentState::AddRow(Row row) {
  for (const Row& other : rows) {
    if (other.path == row.path) return;
  }
  rows.push_back(std::move(row));
}

Place Section::place() const {
  return node_ != nullptr ? node_->place : parent_->place;
}

Node* Section::Find(std::string_view key) const {
  if (node_ == nullptr) return nullptr;
  for (Node& child : node_->children) {
    if (child.key == key) return &child;
  }
  return nullptr;
}

Value Section::operator[](std::string_view key) const {
  auto& known = state_->known[row_];
  if (std::find(known.begin(), known.end(), key) == known.end()) {
    known.emplace_back(key);
  }
  Node* node = Find(key);
  if (node != nullptr) node->asked = true;
  return {state_, node, node_ != nullptr ? node_ : parent_,
          JoinPath(path_, key), JoinPath(row_, key)};
}

std::vector<std::pair<std::string, Value>> Section::Members() const {
  state_->known[row_] = {"*"};
  std::vector<std::pair<std::string, Value>> out;
  if (node_ == nullptr) return out;
  for (Node& child : node_->children) {
    child.asked = true;
    out.emplace_back(child.key,
                     Value(state_, &child, node_, JoinPath(path_, child.key),
                           JoinPath(row_, "*")));
  }
  return out;
}

void Section::OnlyWith(std::string_view key, std::string_view other) const {
  OnlyWhen(key, Find(other) != nullptr,
           "`" + JoinPath(path_, other) + "` is given");
}

void Section::OnlyWhen(std::string_view key, bool allowed,
                       std::string_view when) const {
  const Node* node = Find(key);
  if (node == nullptr || allowed) return;
  const std::string name = '`' + PrintableText(JoinPath(path_, key)) + '`';
  state_->Complain(
      {node->key_place, name + " has no meaning here", std::nullopt,
       name + " is only read when " + std::string(when),
       "remove " + name + ", or see to it that " + std::string(when)});
}

void Section::NotBoth(std::string_view key, std::string_view other) const {
  const Node* first = Find(key);
  const Node* second = Find(other);
  if (first == nullptr || second == nullptr) return;
  const std::string name = '`' + PrintableText(JoinPath(path_, key)) + '`';
  const std::string rival = '`' + PrintableText(JoinPath(path_, other)) + '`';
  state_->Complain({first->key_place,
                    name + " and " + rival + " exclude each other",
                    Note{second->key_place, rival + " is given here"},
                    "both say the same thing, and only one could count",
                    "remove one of them"});
}

void Section::Complain(std::string what, std::string why,
                       std::string fix) const {
  Place place = this->place();
  if (place.line == 0) place = {1, 1, 1};
  state_->Complain(
      {place, std::move(what), std::nullopt, std::move(why), std::move(fix)});
}

Document::Document(std::unique_ptr<DocumentState> state)
    : state_(std::move(state)) {}
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;
Document::~Document() = default;

Document Document::Parse(std::string text, std::string name) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  const bool too_long = text.size() > kMaxBytes;
  if (too_long) text.clear();
  auto state = std::make_unique<DocumentState>(
      std::make_shared<const SourceText>(std::move(name), std::move(text)));
  if (too_long) {
    state->complaints.Add(TooLong());
    state->unreadable = true;
    state->tree.incomplete = true;
  } else {
    state->tree = ParseToml(state->source, state->complaints);
  }
  state->tree.root.opened = true;
  state->tree.root.place = {1, 1, 1};
  return Document(std::move(state));
}

Document Document::Load(const std::string& path) {
  FileText file = ReadFileText(path, kMaxBytes);
  if (!file.complaint) return Parse(std::move(file.text), path);
  auto state = std::make_unique<DocumentState>(
      std::make_shared<const SourceText>(path, std::string()));
  state->complaints.Add(std::move(*file.complaint));
  state->unreadable = true;
  state->tree.incomplete = true;
  return Document(std::move(state));
}

Section Document::root() {
  Node& root = state_->tree.root;
  return {state_.get(), &root, &root, "", ""};
}

const SourceText& Document::source() const { return *state_->source; }

void Document::Complain(Complaint complaint) {
  state_->Complain(std::move(complaint));
}

void Document::ComplainOfAbsence(Place place, std::string what, std::string why,
                                 std::string fix) {
  if (state_->tree.incomplete) return;
  Complain(
      {place, std::move(what), std::nullopt, std::move(why), std::move(fix)});
}

void Document::AdviseBy(
    std::function<std::string(std::string_view, std::string_view)> advise) {
  state_->advise = std::move(advise);
}

const Complaints& Document::Finish() {
  if (!std::exchange(state_->finished, true)) {
    FindUnknown(*state_, state_->tree.root, "", "");
  }
  return state_->complaints;
}

const std::vector<Row>& Document::Rows() const { return state_->rows; }

}  // namespace weir::config
