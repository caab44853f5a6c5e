#include "weir/config/document.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {
namespace {

using namespace std::chrono_literals;

// All complaints of a document of which `read` reads the root.
template <typename Read>
std::string Complain(const std::string& text, Read read) {
  Document document = Document::Parse(text, "shop.toml");
  read(document.root());
  const Complaints& complaints = document.Finish();
  return complaints.empty() ? "" : complaints.Print("nothing changed");
}

const Rule<int64_t> kFloor = {.about = "the smallest limit ever set",
                              .floor = 1,
                              .ceiling = 100,
                              .fallback = 4};

void ReadFloor(Section root) { root["floor"].ReadInteger(kFloor); }

TEST(DocumentTest, AMessageHasWhereWhatWhyAndFix) {
  EXPECT_EQ(Complain("# limits\nfloor = 640\n", ReadFloor),
            "shop.toml:2:9: error: `floor` is 640, above 100\n"
            "    2 | floor = 640\n"
            "      |         ^^^\n"
            "  why: `floor` is the smallest limit ever set: an integer from 1 "
            "to 100\n"
            "  fix: write an integer from 1 to 100, or remove line 2 to use "
            "the default, 4\n"
            "1 error; nothing changed\n");
}

TEST(DocumentTest, EveryComplaintComesInOneRunInTheOrderOfTheText) {
  const std::string text =
      "flor = 3\n"
      "floor = 0\n"
      "[queue]\n"
      "wait = 250\n"
      "pause = 3s\n"
      "wait = \"1s\"\n";
  Document document = Document::Parse(text, "x");
  document.root()["queue"].ReadTable("the queue")["wait"].ReadDuration({});
  document.root()["queue"].ReadTable("the queue")["pause"].ReadDuration({});
  document.root()["floor"].ReadInteger(kFloor);

  std::vector<std::string> what;
  for (const Complaint& complaint : document.Finish().list()) {
    what.push_back(std::to_string(complaint.place.line) + ' ' + complaint.what);
  }

  EXPECT_EQ(what, (std::vector<std::string>{
                      "1 unknown key `flor` at the top level",
                      "2 `floor` is 0, below 1", "4 `queue.wait` has no unit",
                      "5 `3s` has no quotes", "6 `wait` is given twice"}));
}

TEST(DocumentTest, AWrongValueReadsAsItsFallback) {
  Document document = Document::Parse("floor = 'six'", "x");
  const auto floor = document.root()["floor"].ReadInteger(kFloor);
  EXPECT_FALSE(floor.given);
  EXPECT_EQ(floor.value, 4);
}

TEST(DocumentTest, ReadsEveryKindOfValue) {
  Document document = Document::Parse(
      "n = 7\nx = 0.5\ny = 2\nb = true\nt = 'words'\nd = '1.5s'\nr = '90/m'\n"
      "w = 'b'\nlist = [[1, '2s'], [3, '4s']]\nin = { n = 1 }\n"
      "[[step]]\nn = 1\n[[step]]\nn = 2\n[by.name]\nn = 3\n[by.other]\nn = 4\n",
      "x");
  const Section root = document.root();
  EXPECT_EQ(root["n"].ReadInteger({}).value, 7);
  EXPECT_EQ(root["x"].ReadNumber({}).value, 0.5);
  EXPECT_EQ(root["y"].ReadNumber({}).value, 2);
  EXPECT_TRUE(root["b"].ReadBoolean({}).value);
  EXPECT_EQ(root["t"].ReadText({}).value, "words");
  EXPECT_EQ(root["d"].ReadDuration({}).value, 1500ms);
  EXPECT_EQ(root["r"].ReadRate({}).value, 1.5);
  EXPECT_EQ(
      root["w"].ReadChoice<char>({.words = {{"a", 'A'}, {"b", 'B'}}}).value,
      'B');
  std::vector<int64_t> numbers;
  std::vector<Duration> times;
  for (const Value& pair : root["list"].ReadArray("pairs")) {
    const std::vector<Value> items = pair.ReadArray("a pair");
    ASSERT_EQ(items.size(), 2u);
    numbers.push_back(items[0].ReadInteger({}).value);
    times.push_back(items[1].ReadDuration({}).value);
  }
  EXPECT_EQ(numbers, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(times, (std::vector<Duration>{2s, 4s}));
  EXPECT_EQ(root["in"].ReadTable("inside")["n"].ReadInteger({}).value, 1);
  std::vector<int64_t> steps;
  for (const Section& step : root["step"].ReadTables("steps")) {
    steps.push_back(step["n"].ReadInteger({}).value);
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 2}));
  std::string names;
  for (const auto& [name, value] : root["by"].ReadTable("named").Members()) {
    names += name +
             std::to_string(value.ReadTable("one")["n"].ReadInteger({}).value);
  }
  EXPECT_EQ(names, "name3other4");
  EXPECT_TRUE(document.Finish().empty()) << document.Finish().Print();
}

TEST(DocumentTest, RefusesNumbersThatAreNone) {
  for (const std::string number : {"nan", "inf", "-inf", "+nan"}) {
    Document document = Document::Parse("x = " + number, "x");
    EXPECT_FALSE(document.root()["x"].ReadNumber({}).given) << number;
    EXPECT_EQ(document.Finish().size(), 1u) << number;
  }
}

TEST(DocumentTest, AKeyInTheWrongTableIsSentHome) {
  const std::string out =
      Complain("[limit]\nservice = 'x'\n", [](const Section& root) {
        root["service"].ReadText({});
        root["limit"].ReadTable("the limit")["floor"].ReadInteger(kFloor);
      });
  EXPECT_NE(out.find("fix: move it above the first `[section]`"),
            std::string::npos)
      << out;
}

TEST(DocumentTest, AMissingKeyIsOnlyMissedWhenTheRestCouldBeRead) {
  const auto read = [](const Section& root) {
    root["service"].ReadText({.required = true, .example = "\"shop\""});
  };
  EXPECT_NE(Complain("", read).find("`service` is missing"), std::string::npos);
  const std::string out = Complain("service = shop\n", read);
  EXPECT_EQ(out.find("missing"), std::string::npos) << out;
}

TEST(DocumentTest, KeysThatNeedOrExcludeOthersSayWhich) {
  const std::string out =
      Complain("sigma = 1\na = 1\nb = 2\n", [](const Section& root) {
        for (const char* key : {"sigma", "mean", "a", "b", "kind"}) {
          root[key].ReadInteger({});
        }
        root.OnlyWith("sigma", "mean");
        root.OnlyWith("a", "b");
        root.NotBoth("a", "b");
      });
  EXPECT_NE(out.find("`sigma` is only read when `mean` is given"),
            std::string::npos)
      << out;
  EXPECT_NE(out.find("`a` and `b` exclude each other"), std::string::npos);
  EXPECT_NE(out.find("2 errors"), std::string::npos);
}

TEST(DocumentTest, RowsAreTheReferenceOfTheFormat) {
  Document document = Document::Parse("[of.one]\n[of.two]\n", "x");
  document.root()["floor"].ReadInteger(kFloor);
  const Section of = document.root()["of"].ReadTable("named");
  for (const auto& [name, value] : of.Members()) {
    value.ReadTable("one")["wait"].ReadDuration({.fallback = 250ms});
  }
  ASSERT_EQ(document.Rows().size(), 2u);
  EXPECT_EQ(document.Rows()[0].path, "floor");
  EXPECT_EQ(document.Rows()[0].shape, "an integer from 1 to 100");
  EXPECT_EQ(document.Rows()[0].fallback, "4");
  EXPECT_EQ(document.Rows()[1].path, "of.*.wait");
  EXPECT_EQ(document.Rows()[1].fallback, "\"250ms\"");
}

TEST(DocumentTest, NothingThatATerminalObeysIsEchoed) {
  const std::string out =
      Complain("\"a\\u001b[2Jb\" = 1 # \x1b[2J\n", ReadFloor);
  EXPECT_EQ(out.find('\x1b'), std::string::npos);
  EXPECT_NE(out.find("1 error"), std::string::npos) << out;
}

TEST(DocumentTest, ALongLineIsShownAroundThePlace) {
  const std::string out = Complain(
      "floor = " + std::string(5000, ' ') + "0 # " + std::string(5000, 'x'),
      ReadFloor);
  EXPECT_NE(out.find(" 0 # xxx"), std::string::npos) << out;
  EXPECT_LT(out.size(), 800u);
}

// Deep nesting must not exhaust the stack of the parser or of the reader.
TEST(DocumentTest, DeepNestingIsRefusedNotFollowed) {
  std::string dots = "a";
  for (int i = 0; i < 200'000; ++i) dots += ".a";
  EXPECT_FALSE(Complain(dots + " = 1", ReadFloor).empty());
  EXPECT_FALSE(Complain("[" + dots + "]", ReadFloor).empty());
  EXPECT_FALSE(Complain("a = " + std::string(200'000, '['), ReadFloor).empty());
}

TEST(DocumentTest, AFileThatCannotBeReadIsAComplaint) {
  Document missing = Document::Load("/nonexistent/shop.toml");
  ASSERT_EQ(missing.Finish().size(), 1u);
  EXPECT_NE(missing.Finish().list()[0].what.find("No such file"),
            std::string::npos);
  Document directory = Document::Load("/");
  ASSERT_EQ(directory.Finish().size(), 1u);
  EXPECT_NE(directory.Finish().list()[0].what.find("directory"),
            std::string::npos);
}

}  // namespace
}  // namespace weir::config
