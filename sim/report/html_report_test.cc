#include "weir/sim/html_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "sample_page.h"

namespace weir::sim_report {
namespace {

using testing::HasSubstr;
using testing::Not;

size_t Count(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

// A strict reader of HTML: every element is closed in order, every attribute
// has its quotes and occurs once in its element, ids are unique.
class Reader {
 public:
  // What is wrong first; nothing when the text is well formed.
  std::optional<std::string> Read(std::string_view text) {
    size_t at = 0;
    while ((at = text.find('<', at)) != std::string_view::npos) {
      size_t end = at + 1;
      bool quoted = false;
      while (end < text.size() && (quoted || text[end] != '>')) {
        quoted ^= text[end] == '"';
        if (!quoted && text[end] == '<') break;
        ++end;
      }
      if (end == text.size() || text[end] != '>') return "open tag";
      if (const auto wrong = Tag(text.substr(at + 1, end - at - 1))) {
        return *wrong + " at " + std::string(text.substr(at, 80));
      }
      at = end + 1;
      if (!open_.empty() &&
          (open_.back() == "style" || open_.back() == "script")) {
        at = text.find("</" + open_.back(), at);
      }
    }
    if (!open_.empty()) return open_.back() + " is not closed";
    return std::nullopt;
  }

  size_t elements = 0;

 private:
  std::optional<std::string> Tag(std::string_view tag) {
    if (tag[0] == '!') return std::nullopt;
    if (tag[0] == '/') {
      if (open_.empty() || open_.back() != tag.substr(1)) return "wrong end";
      open_.pop_back();
      return std::nullopt;
    }
    ++elements;
    const bool closed = tag.back() == '/';
    if (closed) tag.remove_suffix(1);
    const std::string name(tag.substr(0, tag.find(' ')));
    tag.remove_prefix(name.size());
    static const std::set<std::string> kVoid = {"meta", "input", "br", "wbr"};
    if (!closed && kVoid.count(name) == 0) open_.push_back(name);
    return Attributes(tag);
  }

  std::optional<std::string> Attributes(std::string_view tag) {
    std::set<std::string> names;
    size_t at = 0;
    while (at < tag.size()) {
      if (tag[at++] != ' ') return "no space before an attribute";
      const size_t begin = at;
      while (at < tag.size() &&
             (std::isalpha(static_cast<unsigned char>(tag[at])) != 0 ||
              tag[at] == '-' || tag[at] == '1' || tag[at] == '2')) {
        ++at;
      }
      const std::string name(tag.substr(begin, at - begin));
      if (name.empty() || !names.insert(name).second) return "attribute";
      if (at == tag.size() || tag[at] == ' ') continue;
      if (tag.substr(at, 2) != "=\"") return "no quotes";
      const size_t end = tag.find('"', at + 2);
      if (end == std::string_view::npos) return "no end of a quote";
      const std::string value(tag.substr(at + 2, end - at - 2));
      if (name == "id" && !ids_.insert(value).second) return "id twice";
      at = end + 1;
    }
    return std::nullopt;
  }

  std::vector<std::string> open_;
  std::set<std::string> ids_;
};

// What stands between `open` and `close`, each time.
std::vector<std::string> Between(const std::string& text,
                                 const std::string& open,
                                 const std::string& close) {
  std::vector<std::string> parts;
  for (size_t at = text.find(open); at != std::string::npos;
       at = text.find(open, at)) {
    at += open.size();
    parts.push_back(text.substr(at, text.find(close, at) - at));
  }
  return parts;
}

// Tables of `html` with a column in which no row says anything, and rows that
// have more or fewer cells than others.
std::vector<std::string> TablesWithHoles(const std::string& html) {
  std::vector<std::string> found;
  for (const std::string& table : Between(html, "<table", "</table>")) {
    const std::string body = Between(table, "<tbody>", "</tbody>").at(0);
    std::vector<bool> said;
    bool ragged = false;
    for (const std::string& row : Between(body, "<tr", "</tr>")) {
      const auto cells = Between(row, "<td", "</td>");
      ragged = ragged || (!said.empty() && said.size() != cells.size());
      said.resize(cells.size());
      for (size_t i = 0; i < cells.size(); ++i) {
        said[i] = said[i] || cells[i].substr(cells[i].find('>') + 1) != "–";
      }
    }
    if (ragged || std::count(said.begin(), said.end(), false) > 0) {
      found.push_back(table.substr(0, 300));
    }
  }
  return found;
}

void ExpectWellFormed(const std::string& html) {
  Reader reader;
  EXPECT_EQ(reader.Read(html).value_or("well formed"), "well formed");
  EXPECT_GT(reader.elements, 10u);
}

TEST(ReaderTest, SeesWhatIsWrong) {
  EXPECT_FALSE(Reader().Read("<p class=\"a\">x<br></p>"));
  EXPECT_TRUE(Reader().Read("<p><b></p></b>"));
  EXPECT_TRUE(Reader().Read("<p>"));
  EXPECT_TRUE(Reader().Read("<p class=a></p>"));
  EXPECT_TRUE(Reader().Read("<p id=\"a\"></p><p id=\"a\"></p>"));
  EXPECT_TRUE(Reader().Read("<p>1 < 2</p>"));
}

// WEIR_UPDATE_GOLDEN=1 sim_report_test --gtest_filter=*Golden* writes it anew.
TEST(HtmlReportTest, GoldenPage) {
  const std::string path = std::string(std::getenv("WEIR_SOURCE_DIR")) +
                           "/sim/report/testdata/small.html";
  const std::string html = HtmlReport(SamplePage(2, 3, 12));
  if (std::getenv("WEIR_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << html;
  }
  std::ifstream file(path, std::ios::binary);
  std::stringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(html, expected.str());
}

TEST(HtmlReportTest, PagesAreWellFormed) {
  ExpectWellFormed(HtmlReport(SamplePage(1, 1, 30)));
  ExpectWellFormed(HtmlReport(SamplePage(1, 9, 700)));
  ExpectWellFormed(HtmlReport(SamplePage(4, 12, 50)));
}

TEST(HtmlReportTest, PagesOfNothingAreWellFormed) {
  ExpectWellFormed(HtmlReport({}));
  Page page;
  page.studies.resize(2);
  ExpectWellFormed(HtmlReport(page));
  page.studies[0].algorithms.resize(2);
  ExpectWellFormed(HtmlReport(page));
  // Figures without series, and series without a value.
  page = SamplePage(1, 3, 0);
  ExpectWellFormed(HtmlReport(page));
  page = SamplePage(1, 2, 5);
  const double none = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  page.studies[0].algorithms[0].series.p99_ms.assign(5, none);
  page.studies[0].algorithms[0].series.limit.assign(5, infinite);
  page.studies[0].algorithms[1].series.good.assign(5, 0);
  page.studies[0].ideal.assign(5, 0);
  const std::string html = HtmlReport(page);
  ExpectWellFormed(html);
  EXPECT_THAT(html, HasSubstr("Nothing to draw for a0."));
  EXPECT_THAT(html, Not(HasSubstr("nan")));
  EXPECT_THAT(html, Not(HasSubstr("inf ")));
}

TEST(HtmlReportTest, SameInputSameBytes) {
  EXPECT_EQ(HtmlReport(SamplePage(3, 8, 400)),
            HtmlReport(SamplePage(3, 8, 400)));
}

TEST(HtmlReportTest, NeedsNoOtherFile) {
  const std::string html = HtmlReport(SamplePage(2, 8, 40));
  for (const std::string_view reference :
       {"://", "url(", "@import", "src=", "<link", "fetch(", "<img"}) {
    EXPECT_THAT(html, Not(HasSubstr(reference)));
  }
}

TEST(HtmlReportTest, EveryTextIsEscaped) {
  const std::string evil =
      "</title></style><script>alert(\"1\")</script>&'\xFF";
  Page page = SamplePage(2, 3, 20);
  page.title = evil;
  page.command = evil;
  page.drawn = {evil};
  for (Study& study : page.studies) {
    study.name = study.description = study.command = evil;
    study.facts = {{evil, evil}};
    study.classes = {evil, evil};
    for (Phase& phase : study.phases) phase.name = evil;
    for (size_t i = 0; i < study.algorithms.size(); ++i) {
      study.algorithms[i].name = evil + std::to_string(i);
      study.algorithms[i].broken = {evil};
    }
  }
  const std::string html = HtmlReport(page);
  ExpectWellFormed(html);
  EXPECT_EQ(Count(html, "<script"), 1u);  // The page's own.
  EXPECT_EQ(Count(html, "<style"), 1u);
  EXPECT_THAT(html, Not(HasSubstr("alert(\"")));
  EXPECT_THAT(html, Not(HasSubstr("\xFF")));
}

TEST(HtmlReportTest, EveryAlgorithmHasItsRowItsBoxAndItsLines) {
  const std::string html = HtmlReport(SamplePage(1, 14, 40));
  for (int i = 0; i < 14; ++i) {
    const std::string name = "a" + std::to_string(i);
    EXPECT_EQ(Count(html, "<th scope=\"row\">" + name + "</th>"), 1u) << name;
    EXPECT_EQ(Count(html, "</svg>" + name + "</label>"), 1u) << name;
    // Goodput, latency, limit, queue.
    EXPECT_EQ(Count(html, "<title>" + name + "</title>"), 4u) << name;
    EXPECT_EQ(Count(html, "<title>Shed by " + name + "</title>"), 1u) << name;
  }
}

TEST(HtmlReportTest, FewLinesAreDrawnAtFirst) {
  Page page = SamplePage(1, 14, 40);
  EXPECT_EQ(Count(HtmlReport(page), " checked>"), 3u);  // a0, its rival, a2.
  for (int i = 0; i < 14; ++i) page.drawn.push_back("a" + std::to_string(i));
  EXPECT_EQ(Count(HtmlReport(page), " checked>"), 6u);
}

TEST(HtmlReportTest, OneScenarioIsOpenManyAreFoldedBehindTheOverview) {
  EXPECT_EQ(Count(HtmlReport(SamplePage(1, 3, 9)), "<details class=\"study\""),
            0u);
  const std::string many = HtmlReport(SamplePage(5, 3, 9));
  EXPECT_EQ(Count(many, "<details class=\"study\""), 5u);
  EXPECT_EQ(Count(many, "<table class=\"matrix\">"), 3u);
  for (int i = 1; i <= 5; ++i) {
    EXPECT_THAT(many, HasSubstr("href=\"#study-" + std::to_string(i) + "\""));
    EXPECT_THAT(many, HasSubstr(" id=\"study-" + std::to_string(i) + "\""));
  }
}

TEST(HtmlReportTest, WhatWasNotPlayedHasNoColumn) {
  Page page = SamplePage(3, 2, 9);  // a2, which page.drawn has, is not in it.
  EXPECT_THAT(TablesWithHoles(HtmlReport(page)), testing::IsEmpty());
  page.drawn = {"fixed", "a1", "a0"};
  const std::string html = HtmlReport(page);
  EXPECT_THAT(TablesWithHoles(html), testing::IsEmpty());
  const std::string group = "<th scope=\"colgroup\" colspan=\"2\">";
  EXPECT_EQ(Count(html, group + "fixed"), 0u);
  EXPECT_EQ(Count(html, group + "a1"), 1u);
  EXPECT_EQ(Count(html, group + "a0"), 1u);
}

TEST(HtmlReportTest, WhatNoScenarioHasHasNoColumn) {
  Page page = SamplePage(2, 3, 9);
  for (Study& study : page.studies) {
    study.classes.clear();
    for (Algorithm& algorithm : study.algorithms) {
      algorithm.rival = false;
      algorithm.class_good_ratio.clear();
    }
  }
  const std::string html = HtmlReport(page);
  EXPECT_THAT(TablesWithHoles(html), testing::IsEmpty());
  EXPECT_THAT(html, Not(HasSubstr("best rival")));
  EXPECT_THAT(html, Not(HasSubstr("goals met")));
  EXPECT_THAT(html, Not(HasSubstr("first class")));
  // One of them has.
  page.studies[1].goals = {{"work_ratio", .9, true}};
  page.studies[1].algorithms[0].at_goals = {Spread{1, 1, 1}};
  EXPECT_EQ(Count(HtmlReport(page), ">goals met</th>"), 2u);
}

TEST(TablesWithHolesTest, SeesEmptyAndMissingCells) {
  const auto table = [](const std::string& rows) {
    return "<table><tbody>" + rows + "</tbody></table>";
  };
  EXPECT_THAT(TablesWithHoles(table("<tr><td>–</td></tr><tr><td>1</td></tr>")),
              testing::IsEmpty());
  EXPECT_THAT(
      TablesWithHoles(table("<tr><td>1</td><td class=\"a\">–</td></tr>")),
      testing::SizeIs(1));
  EXPECT_THAT(TablesWithHoles(table("<tr><td>1</td></tr><tr></tr>")),
              testing::SizeIs(1));
}

TEST(HtmlReportTest, EveryTableScrollsByItself) {
  for (const size_t studies : {1u, 4u}) {
    const std::string html = HtmlReport(SamplePage(studies, 12, 9));
    const auto regions = Between(html, "<div class=\"scroll\"", "</div>");
    EXPECT_EQ(regions.size(), Count(html, "<table")) << studies;
    for (const std::string& region : regions) {
      EXPECT_EQ(Count(region, "<table"), 1u);
      EXPECT_EQ(Count(region, "</table>"), 1u);
    }
  }
}

TEST(HtmlReportTest, LongNamesBreakAtTheirSeparators) {
  Page page = SamplePage(2, 3, 9);
  for (Study& study : page.studies) {
    study.algorithms[1].name = "trpc-high-percentile+queue@plain";
  }
  const std::string html = HtmlReport(page);
  // Figures of both, ranks, and three tables of all algorithms.
  EXPECT_EQ(Count(html,
                  "<th scope=\"row\">trpc-<wbr>high-<wbr>percentile+<wbr>queue"
                  "@<wbr>plain</th>"),
            6u);
}

TEST(HtmlReportTest, OnlyFiguresThatAreShownAreExplained) {
  Page page = SamplePage(1, 3, 9);
  EXPECT_THAT(HtmlReport(page), Not(HasSubstr("<dt>Attempts</dt>")));
  page.studies[0].algorithms[2].figures["amplification"] = {1.5, 1.4, 1.6};
  EXPECT_THAT(HtmlReport(page), HasSubstr("<dt>Attempts</dt>"));
}

TEST(HtmlReportTest, TheLeadNamesTheWorstScenarioAndTheBestRival) {
  Page page = SamplePage(3, 3, 9);
  page.studies[1].algorithms[0].figures["work_ratio"].median = .5;
  // A variant of ours is no rival.
  page.studies[0].algorithms[1].rival = false;
  page.studies[1].algorithms[1].rival = false;
  page.studies[2].algorithms[1].rival = false;
  const std::string html = HtmlReport(page);
  EXPECT_THAT(html,
              HasSubstr("<strong>a0</strong> did <span class=\"num\">50.0 "
                        "%</span> in its worst, s1"));
  EXPECT_THAT(html, HasSubstr("Its best rival, a2, did"));
}

TEST(HtmlReportTest, BrokenBoundsAreNotHidden) {
  Page page = SamplePage(1, 2, 9);
  EXPECT_THAT(HtmlReport(page), Not(HasSubstr("were broken")));
  page.studies[0].algorithms[0].broken = {"work_ratio is 0.5"};
  EXPECT_THAT(HtmlReport(page), HasSubstr("<li>a0: work_ratio is 0.5</li>"));
}

// As many scenarios and rivals as the whole evaluation has, each of them as
// noisy as can be.
TEST(HtmlReportTest, AWholeEvaluationStaysUnderFifteenMegabytes) {
  const std::string html = HtmlReport(SamplePage(18, 25, 1000));
  EXPECT_LT(html.size(), 15u << 20);
  ExpectWellFormed(html);
}

}  // namespace
}  // namespace weir::sim_report
