// Reads TOML so that every complaint has a position, a reason and a fix.
//
//   Document document = Document::Parse(text, "shop.toml");
//   Section limit = document.root()["limit"].ReadTable("bounds of the limit");
//   const auto floor = limit["floor"].ReadInteger(
//       {.about = "the smallest limit ever set",
//        .floor = 1, .ceiling = 1'000'000, .fallback = 1});
//   const auto pause = limit["pause"].ReadDuration(
//       {.about = "how long the limit rests", .fallback = 250ms});
//   for (Section phase : document.root()["phase"].ReadTables("what happens")) {
//     const auto rate = phase["rate"].ReadRate({.about = "arrivals",
//                                               .required = true,
//                                               .example = "\"1000/s\""});
//     phase.OnlyWith("jitter", "rate");
//   }
//   if (floor.given && floor.value > 10 && pause.given) {
//     document.Complain({.place = floor.place, .what = ..., .note = Note{
//         pause.place, "..."}, .why = ..., .fix = ...});
//   }
//   const Complaints& complaints = document.Finish();
//   if (!complaints.empty()) std::cerr << complaints.Print();
//
// A reader asks for every key it knows, whether given or not, and never stops
// early: a value that is missing or wrong reads as its fallback, and the
// complaint is kept.  Finish() adds one for each key that nobody asked for.
// What was asked is also the reference of the format: see Rows().

#ifndef WEIR_CONFIG_DOCUMENT_H_
#define WEIR_CONFIG_DOCUMENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/config/complaint.h"
#include "weir/time.h"

namespace weir::config {

struct Node;
struct DocumentState;
class Reader;

// What a reader gets for a key.
template <typename T>
struct Field {
  T value{};           // As written; else the fallback; else T{}.
  bool given = false;  // It was written, and is legal.
  Place key;           // When it is not written: where its table begins.
  Place place;         // Of the value.
};

// What a number, duration or rate may be.  `about` names what the key is for,
// to go on after "is": it appears in messages and in the reference.
template <typename T>
struct Rule {
  std::string_view about = {};
  T floor = std::numeric_limits<T>::lowest();
  T ceiling = std::numeric_limits<T>::max();
  bool above_floor = false;  // The floor itself is not allowed.
  std::optional<T> fallback = std::nullopt;
  bool required = false;
  std::string_view example = {};  // As written, for a required key.
  std::string_view absent = {};   // What its absence means, without fallback.
};

template <>
struct Rule<Duration> {
  std::string_view about = {};
  Duration floor = Duration::zero();
  Duration ceiling = Duration::max();
  bool above_floor = false;
  std::optional<Duration> fallback = std::nullopt;
  bool required = false;
  std::string_view example = {};
  std::string_view absent = {};
};

template <>
struct Rule<bool> {
  std::string_view about = {};
  std::optional<bool> fallback = std::nullopt;
  bool required = false;
  std::string_view absent = {};
};

template <>
struct Rule<std::string> {
  std::string_view about = {};
  std::string_view shape = "text";  // "1 to 47 characters of a-z"
  // Whether a text has that shape; when empty, all have.
  std::function<bool(std::string_view)> accepts = {};
  // What is wrong with a text, to go on after its key: "is no address".
  // Empty when nothing is.
  std::function<std::string(std::string_view)> problem = {};
  // The text that a wrong one most likely stands for; empty when there is none.
  std::function<std::string(std::string_view)> suggest = {};
  std::optional<std::string> fallback = std::nullopt;
  bool required = false;
  std::string_view example = {};
  std::string_view absent = {};
};

// One word of several.
template <typename E>
struct Choice {
  std::string_view about = {};
  std::vector<std::pair<std::string_view, E>> words = {};
  std::optional<E> fallback = std::nullopt;
  bool required = false;
  std::string_view absent = {};
};

// One integer of several.
struct IntegerChoice {
  std::string_view about = {};
  std::vector<int64_t> values = {};
  std::optional<int64_t> fallback = std::nullopt;
};

// One row of the reference of a format: a key that was asked for.
struct Row {
  std::string path;      // "limit.floor", "resource.*.deadline", "phase.rate"
  std::string shape;     // "an integer from 1 to 1000000"
  std::string fallback;  // As written in a file; empty: none.
  std::string absent;    // Without fallback: what its absence means.
  bool required = false;
  std::string about;
};

class Section;

// The value of a key or an element of an array, present or not.  Handles are
// cheap copies and must not outlive their document.
class Value {
 public:
  bool present() const { return node_ != nullptr; }
  bool is_array() const;
  bool is_table() const;
  // "limit.floor", for messages.
  const std::string& path() const { return path_; }
  Place key_place() const;  // When absent: where its table begins.
  Place place() const;

  Field<int64_t> ReadInteger(const Rule<int64_t>& rule) const;
  Field<int64_t> ReadOneOf(const IntegerChoice& choice) const;
  Field<double> ReadNumber(const Rule<double>& rule) const;
  Field<bool> ReadBoolean(const Rule<bool>& rule) const;
  Field<std::string> ReadText(const Rule<std::string>& rule) const;
  Field<Duration> ReadDuration(const Rule<Duration>& rule) const;
  // "1000/s", in requests (or whatever is counted) per second.
  Field<double> ReadRate(const Rule<double>& rule) const;
  template <typename E>
  Field<E> ReadChoice(const Choice<E>& choice) const;

  // The elements of a list.  None when absent or no list (a complaint).
  // `shape` and `fallback`, as written, are for messages and the reference.
  std::vector<Value> ReadArray(std::string_view about,
                               std::string_view shape = "a list",
                               std::string_view fallback = "") const;
  // A table, `[path]` or `path = { ... }`.  Absent: a section without keys.
  Section ReadTable(std::string_view about) const;
  // The tables of `[[path]]` or of a list of `{ ... }`, in order.  `text_key`
  // is the key that a text in place of a table stands for, if one is obvious.
  std::vector<Section> ReadTables(std::string_view about,
                                  std::string_view text_key = "") const;

  // Complains about this value.
  void Complain(std::string what, std::string why, std::string fix,
                std::optional<Note> note = std::nullopt) const;

  // The end of a fix: ", or remove line 14 to use the default, 4"; "remove it"
  // when it shares its line; nothing when it is an element of a list.
  std::string OrRemove(std::string_view fallback) const;

 private:
  friend class Section;
  friend class Document;
  friend class Reader;
  struct Words {
    std::string_view about;
    std::vector<std::string_view> words;
    std::optional<size_t> fallback;
    bool required;
    std::string_view absent;
  };
  Value(DocumentState* state, Node* node, const Node* parent, std::string path,
        std::string row)
      : state_(state),
        node_(node),
        parent_(parent),
        path_(std::move(path)),
        row_(std::move(row)) {}
  Field<size_t> ReadWord(const Words& words) const;

  DocumentState* state_;
  Node* node_;          // Null: absent.
  const Node* parent_;  // The nearest table or array that is there.
  std::string path_;
  std::string row_;  // The path of its row.
};

// A table, present or not.
class Section {
 public:
  bool present() const { return node_ != nullptr; }
  const std::string& path() const { return path_; }
  Place place() const;

  // Asks for a key.
  Value operator[](std::string_view key) const;
  // All keys, in the order of the file, with their values: for tables whose
  // keys are names.  Counts as asking for each; rows get "path.*".
  std::vector<std::pair<std::string, Value>> Members() const;

  // Complains when `key` is there without `other`.
  void OnlyWith(std::string_view key, std::string_view other) const;
  // Complains when `key` is there and `allowed` is false; `when` completes
  // "is only read when", e.g. "`kind` is \"lognormal\"".
  void OnlyWhen(std::string_view key, bool allowed,
                std::string_view when) const;
  // Complains when both are there.
  void NotBoth(std::string_view key, std::string_view other) const;
  // Complains about the table as a whole.
  void Complain(std::string what, std::string why, std::string fix) const;

 private:
  friend class Value;
  friend class Document;
  Section(DocumentState* state, Node* node, const Node* parent,
          std::string path, std::string row)
      : state_(state),
        node_(node),
        parent_(parent),
        path_(std::move(path)),
        row_(std::move(row)) {}
  Node* Find(std::string_view key) const;

  DocumentState* state_;
  Node* node_;
  const Node* parent_;
  std::string path_;
  std::string row_;
};

class Document {
 public:
  // Chosen: a policy of 64 resources has some 10 KiB; 1 MiB is a mistake.
  static constexpr size_t kMaxBytes = 1 << 20;

  // `name` is the text's name in messages.
  static Document Parse(std::string text, std::string name);
  // Reads a file; one that cannot be read, has more than kMaxBytes or is not
  // UTF-8 makes an empty document with a complaint.
  static Document Load(const std::string& path);

  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;
  ~Document();

  Section root();
  const SourceText& source() const;

  void Complain(Complaint complaint);
  // The same about something that is not there; not while something could not
  // be read, since it may be that.
  void ComplainOfAbsence(Place place, std::string what, std::string why,
                         std::string fix);

  // Asked about each key that nobody read before anything else is advised: the
  // row of its table, "resource.*", and the key.  Returns a fix, or nothing.
  void AdviseBy(
      std::function<std::string(std::string_view, std::string_view)> advise);

  // Call when all keys were asked for.  Adds a complaint for each key of the
  // tables read that nobody asked for, and returns all.  While something could
  // not be read, nothing is said to be missing.
  const Complaints& Finish();

  // Every key that was asked for, each once, in the order of asking.
  const std::vector<Row>& Rows() const;

 private:
  explicit Document(std::unique_ptr<DocumentState> state);
  std::unique_ptr<DocumentState> state_;
};

template <typename E>
Field<E> Value::ReadChoice(const Choice<E>& choice) const {
  Words words{choice.about, {}, std::nullopt, choice.required, choice.absent};
  for (size_t i = 0; i < choice.words.size(); ++i) {
    words.words.push_back(choice.words[i].first);
    if (choice.fallback == choice.words[i].second) words.fallback = i;
  }
  const Field<size_t> word = ReadWord(words);
  Field<E> out{choice.fallback.value_or(E{}), word.given, word.key, word.place};
  if (word.given) out.value = choice.words[word.value].second;
  return out;
}

}  // namespace weir::config

#endif  // WEIR_CONFIG_DOCUMENT_H_
