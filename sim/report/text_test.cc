#include "text.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::sim_report {
namespace {

constexpr char kUnknown[] = "\xEF\xBF\xBD";

TEST(TextTest, EscapesWhatHtmlWouldRead) {
  EXPECT_EQ(Escaped("<b a=\"1\" c='2'>&amp;</b>"),
            "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;&lt;/b&gt;");
}

TEST(TextTest, KeepsUtf8AndReplacesWhatIsNot) {
  EXPECT_EQ(Escaped("µs – 日本 \xF0\x9F\x8C\x8A"),
            "µs – 日本 \xF0\x9F\x8C\x8A");
  EXPECT_EQ(Escaped("a\xFFz"), std::string("a") + kUnknown + "z");
  // Cut off, overlong, a surrogate, and beyond the last character.
  EXPECT_EQ(Escaped("\xC3"), kUnknown);
  EXPECT_EQ(Escaped("\xC0\xAF"), std::string(kUnknown) + kUnknown);
  EXPECT_EQ(Escaped("\xED\xA0\x80"),
            std::string(kUnknown) + kUnknown + kUnknown);
  EXPECT_EQ(Escaped("\xF4\x90\x80\x80"),
            std::string(kUnknown) + kUnknown + kUnknown + kUnknown);
}

TEST(TextTest, ControlCharactersDoNotReachThePage) {
  EXPECT_EQ(Escaped(std::string_view("a\0b\x1B\x7F", 5)),
            std::string("a") + kUnknown + "b" + kUnknown + kUnknown);
}

TEST(TextTest, ShortensByCharactersNotBytes) {
  EXPECT_EQ(Shortened("weir", 4), "weir");
  EXPECT_EQ(Shortened("weirs", 4), "we…s");
  EXPECT_EQ(Shortened("éèêëē", 4), "éè…ē");
  EXPECT_EQ(Shortened("weir", 1), "…");
  EXPECT_EQ(Shortened("envoy-gradient-10s", 13), "envoy-gr…-10s");
  EXPECT_EQ(Shortened("\xFF\xFF\xFF", 2), "\xFF…");
  EXPECT_EQ(Shortened("", 4), "");
}

TEST(TextTest, GroupsThousandsFromFiveDigitsOn) {
  EXPECT_EQ(Grouped(0, 1), "0.0");
  EXPECT_EQ(Grouped(9999, 0), "9999");
  EXPECT_EQ(Grouped(12345.67, 1), "12\u202F345.7");
  EXPECT_EQ(Grouped(1234567, 0), "1\u202F234\u202F567");
  EXPECT_EQ(Grouped(-0.04, 1), "0.0");
  EXPECT_EQ(Grouped(-1.5, 1), "\u22121.5");
}

TEST(TextTest, CompactNumbersKeepThreeFigures) {
  EXPECT_EQ(Compact(0), "0");
  EXPECT_EQ(Compact(0.25), "0.25");
  EXPECT_EQ(Compact(12.34), "12.3");
  EXPECT_EQ(Compact(999.99), "1k");
  EXPECT_EQ(Compact(1500), "1.5k");
  EXPECT_EQ(Compact(2e6), "2M");
}

TEST(TextTest, LongTimesAreSeconds) {
  EXPECT_EQ(OfMilliseconds(4.25), "4.25 ms");
  EXPECT_EQ(OfMilliseconds(100), "100 ms");
  EXPECT_EQ(OfMilliseconds(999.6), "1 s");
  EXPECT_EQ(OfMilliseconds(12500), "12.5 s");
}

TEST(TextTest, RangesOfSeedsAreShort) {
  EXPECT_EQ(Ranges({}), "");
  EXPECT_EQ(Ranges({7}), "7");
  EXPECT_EQ(Ranges({1, 2}), "1, 2");
  EXPECT_EQ(Ranges({1, 2, 3, 7, 9, 10, 11}), "1–3, 7, 9–11");
}

}  // namespace
}  // namespace weir::sim_report
