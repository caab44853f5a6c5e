#include "figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "sample_page.h"

namespace weir::sim_report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(FiguresTest, BestIsByWhatIsShown) {
  const std::vector<bool> all(3, true);
  EXPECT_THAT(BestOf({.991, .9914, .98}, all, 100, 1, true),
              ElementsAre(true, true, false));
  EXPECT_THAT(BestOf({3., 2., std::nullopt}, all, 1, 0, false),
              ElementsAre(false, true, false));
}

TEST(FiguresTest, NothingIsBestWhereAllAreEqual) {
  EXPECT_THAT(BestOf({1., 1., 1.}, {true, true, true}, 1, 0, false),
              ElementsAre(false, false, false));
  EXPECT_THAT(BestOf({}, {}, 1, 0, false), ElementsAre());
}

TEST(FiguresTest, WhoDidNotDoTheWorkIsNotBest) {
  EXPECT_THAT(BestOf({1., 5., 9.}, {false, true, true}, 1, 0, false),
              ElementsAre(false, true, false));
  Study study = SampleStudy("s", 3, 0);
  study.algorithms[2].figures["work_ratio"].median = .5;
  EXPECT_THAT(DidTheWork(study.algorithms), ElementsAre(true, true, false));
}

TEST(FiguresTest, RowsAreInTheOrderOfWorkDone) {
  Study study = SampleStudy("s", 3, 0);
  study.algorithms[2].figures["work_ratio"].median = 2;
  study.algorithms[1].figures.erase("work_ratio");
  EXPECT_THAT(ByWork(study.algorithms), ElementsAre(2, 0, 1));
  EXPECT_EQ(BestRival(study.algorithms), 2u);
}

TEST(FiguresTest, TheFirstAndItsVariantsAreNoRivals) {
  Study study = SampleStudy("s", 2, 0);
  study.algorithms[1].rival = false;
  EXPECT_EQ(BestRival(study.algorithms), std::nullopt);
  EXPECT_EQ(BestRival({}), std::nullopt);
}

TEST(FiguresTest, TheTableMarksTheBestNotByColourAlone) {
  const std::string table = FiguresTable(SampleStudy("s", 3, 0));
  EXPECT_THAT(table,
              HasSubstr("<td class=\"best\"><span class=\"vh\">best: </span>"
                        "100.0<small>99.0</small></td>"));
}

TEST(FiguresTest, ColumnsThatSayNothingAreLeftOut) {
  Study study = SampleStudy("s", 3, 0);
  EXPECT_THAT(FiguresTable(study), Not(HasSubstr("Attempts")));
  EXPECT_THAT(FiguresTable(study), Not(HasSubstr("Converge")));
  study.algorithms[1].figures["amplification"] = {2, 1, 3};
  study.algorithms[1].figures["converge_ms"] = {250, 200, 300};
  EXPECT_THAT(FiguresTable(study), HasSubstr("Attempts"));
  EXPECT_THAT(FiguresTable(study), HasSubstr("Converge"));
}

TEST(FiguresTest, OneClassNeedsNoColumnOfItsOwn) {
  Study study = SampleStudy("s", 3, 0);
  EXPECT_THAT(FiguresTable(study), HasSubstr("vital"));
  study.classes = {"vital"};
  EXPECT_THAT(FiguresTable(study), Not(HasSubstr("vital")));
}

}  // namespace
}  // namespace weir::sim_report
