#include "switch_view.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace weir::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Action = Switch::Action;

constexpr Instant kNow{1000s};

Snapshot::Resource With(const Switch& set) {
  return {.name = "api", .by_hand = set, .levels = 2};
}

TEST(SwitchViewTest, SaysWhoPausedAndForHowLong) {
  EXPECT_EQ(SwitchState(With({}), kNow), "open");
  EXPECT_EQ(SwitchState(With({.action = Action::kPause}), kNow),
            "paused by hand");
  const Switch timed{.action = Action::kPause, .until = kNow + 580s};
  EXPECT_EQ(SwitchState(With(timed), kNow), "paused by hand, 9m40s left");
  EXPECT_EQ(SwitchMark(With(timed), kNow), "paused 9m40s");
  EXPECT_EQ(SwitchState(With(timed), kNow + 580s), "open");
  Snapshot::Resource both = With(timed);
  both.paused = true;
  EXPECT_EQ(SwitchState(both, kNow),
            "paused by the policy and by hand, 9m40s left");
  EXPECT_EQ(SwitchState(both, kNow + 1h), "paused by the policy");
}

TEST(SwitchViewTest, SaysWhoChoseTheDegradeLevel) {
  Snapshot::Resource resource = With({});
  resource.level = 2;
  EXPECT_EQ(SwitchState(resource, kNow), "degraded to 2 by overload");
  EXPECT_EQ(SwitchMark(resource, kNow), "degrade 2");
  resource.by_hand = {.action = Action::kDegrade, .level = 1};
  EXPECT_EQ(SwitchState(resource, kNow), "degraded to 1 by hand");
  resource.by_hand.level = 0;
  EXPECT_EQ(SwitchState(resource, kNow), "in full by hand");
}

TEST(SwitchViewTest, SaysWhenNothingObeys) {
  Snapshot::Resource resource = With({.action = Action::kPause});
  resource.deaf = true;
  EXPECT_THAT(SwitchState(resource, kNow), HasSubstr("without effect"));
  EXPECT_EQ(SwitchState({.name = "health", .deaf = true}, kNow), "open");
}

TEST(SwitchViewTest, TimesAreRoundedUpSoThatNothingIsOverEarly) {
  EXPECT_EQ(FormatLeft(1ns), "1s");
  EXPECT_EQ(FormatLeft(59s), "59s");
  EXPECT_EQ(FormatLeft(59s + 1ns), "1m");
  EXPECT_EQ(FormatLeft(2h + 5min + 7s), "2h5m");
  EXPECT_EQ(FormatLeft(3h), "3h");
  EXPECT_EQ(FormatLeft(-1s), "0s");
}

TEST(SwitchViewTest, TheJsonSurvivesOddNames) {
  Snapshot seen;
  seen.service = "shop";
  seen.resources = {With({.action = Action::kPause, .until = kNow + 30s})};
  seen.resources[0].name = "\xff";
  const auto json = nlohmann::json::parse(SwitchesJson(seen, kNow));
  EXPECT_EQ(json["resources"][0]["left_s"], 30);
  EXPECT_EQ(json["resources"][0]["paused_by_hand"], true);
}

}  // namespace
}  // namespace weir::cli
