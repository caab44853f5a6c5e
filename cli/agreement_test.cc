#include "agreement.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace weir::cli {
namespace {

using nlohmann::json;

json Report(double good, double p50, double p99) {
  json figures = {{"name", "flood"},
                  {"offered", 1000},
                  {"good", good},
                  {"latency_ms", {{"p50", p50}, {"p99", p99}}}};
  json report = figures;
  report["phases"] = json::array({figures});
  return report;
}

bool AllAgree(const std::vector<Agreement>& list) {
  bool all = true;
  for (const Agreement& a : list) all = all && a.agrees();
  return all;
}

TEST(AgreementTest, DifferencesAreRelativeToTheRealRun) {
  const auto list = Compare({Report(510, 22, 80)}, {Report(500, 20, 100)}, {});
  ASSERT_EQ(list.size(), 6u);
  EXPECT_EQ(list[0].figure, "goodput");
  EXPECT_NEAR(list[0].difference, .02, 1e-9);
  EXPECT_NEAR(list[1].difference, .1, 1e-9);
  EXPECT_NEAR(list[2].difference, -.2, 1e-9);
  EXPECT_TRUE(list[1].agrees());
  EXPECT_FALSE(list[2].agrees());
}

TEST(AgreementTest, EachFigureCanBreakIt) {
  const auto with = [](double good, double p50, double p99) {
    return AllAgree(
        Compare({Report(good, p50, p99)}, {Report(500, 20, 100)}, {}));
  };
  EXPECT_TRUE(with(514, 22.9, 86));
  EXPECT_FALSE(with(516, 20, 100));
  EXPECT_FALSE(with(484, 20, 100));
  EXPECT_FALSE(with(500, 23.1, 100));
  EXPECT_FALSE(with(500, 20, 84));
}

TEST(AgreementTest, PhasesAreShownAndNotJudged) {
  json real = Report(500, 20, 100);
  real["phases"][0]["good"] = 100;
  const auto list = Compare({Report(500, 20, 100)}, {real}, {});
  EXPECT_EQ(list[3].name, "flood");
  EXPECT_NEAR(list[3].difference, 4, 1e-9);
  EXPECT_TRUE(AllAgree(list));
}

TEST(AgreementTest, OfSeveralSeedsTheMedianCounts) {
  const json odd = Report(1, 999, 999);
  const json usual = Report(500, 20, 100);
  EXPECT_TRUE(AllAgree(Compare({usual, odd, usual}, {usual, usual, odd}, {})));
}

TEST(AgreementTest, WhatNeverHappenedForRealIsNoAgreement) {
  EXPECT_FALSE(AllAgree(Compare({Report(1, 0, 0)}, {Report(0, 0, 0)}, {})));
  EXPECT_TRUE(AllAgree(Compare({Report(0, 0, 0)}, {Report(0, 0, 0)}, {})));
}

TEST(AgreementTest, TheReportIsFoundAmongWhatElseIsPrinted) {
  EXPECT_TRUE(ProtectedReport("").is_null());
  EXPECT_TRUE(ProtectedReport("a\n{\"protected\": 1").is_null());
  EXPECT_EQ(ProtectedReport("table\n{\"protected\": {\"good\": 7}, "
                            "\"unprotected\": {}}\nweir: broken bound\n")
                .at("good"),
            7);
}

}  // namespace
}  // namespace weir::cli
