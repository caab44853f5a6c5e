#include <gtest/gtest.h>

#include "weir/decision.h"
#include "weir/request.h"

namespace weir {
namespace {

TEST(NamesTest, EveryCriticalityIsReadBackFromItsName) {
  for (size_t i = 0; i < kCriticalities; ++i) {
    const auto criticality = static_cast<Criticality>(i);
    EXPECT_EQ(ParseCriticality(Name(criticality)), criticality);
  }
}

TEST(NamesTest, CriticalityTakesTheSreNamesInAnyCase) {
  EXPECT_EQ(ParseCriticality("CRITICAL_PLUS"), Criticality::kVital);
  EXPECT_EQ(ParseCriticality("critical"), Criticality::kImportant);
  EXPECT_EQ(ParseCriticality("Sheddable-Plus"), Criticality::kDeferrable);
  EXPECT_EQ(ParseCriticality("SHEDDABLE"), Criticality::kSheddable);
}

TEST(NamesTest, CriticalityTakesNothingElse) {
  for (const char* name : {"", "1", "vita", "vitals", " vital", "none"}) {
    EXPECT_EQ(ParseCriticality(name), std::nullopt) << name;
  }
}

TEST(NamesTest, NoTwoReasonsStagesOrOutcomesShareAName) {
  for (size_t i = 0; i < kReasons; ++i) {
    EXPECT_FALSE(Name(static_cast<Reason>(i)).empty());
    for (size_t j = 0; j < i; ++j) {
      EXPECT_NE(Name(static_cast<Reason>(i)), Name(static_cast<Reason>(j)));
    }
  }
  for (size_t i = 1; i < kStages; ++i) {
    EXPECT_NE(Name(static_cast<Stage>(i)), Name(static_cast<Stage>(i - 1)));
  }
  for (size_t i = 1; i < kOutcomes; ++i) {
    EXPECT_NE(Name(static_cast<Outcome>(i)), Name(static_cast<Outcome>(i - 1)));
  }
}

}  // namespace
}  // namespace weir
