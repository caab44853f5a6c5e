#include "up_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "weir/config/policy.h"

namespace weir::cli {
namespace {

Policy WithResources(std::vector<Resource> resources) {
  Policy policy;
  policy.service = "shop";
  policy.resources = std::move(resources);
  return policy;
}

TEST(UpTest, TheDefaultPolicyIsTenLinesAtMostAndAllRight) {
  const std::string text = DefaultPolicy("up-4711");
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 10);
  const config::Checked<Policy> policy = config::ParsePolicy(text, "policy");
  ASSERT_TRUE(policy.ok()) << policy.complaints().Print();
  EXPECT_EQ(policy->service, "up-4711");
}

// All that could be a threshold has its default.
TEST(UpTest, TheDefaultPolicyHasNoThresholds) {
  const Policy policy = config::ParsePolicy(DefaultPolicy("x"), "p").value();
  const Policy none;
  EXPECT_EQ(policy.workers, none.workers);
  EXPECT_EQ(policy.limit_floor, none.limit_floor);
  EXPECT_EQ(policy.limit_ceiling, none.limit_ceiling);
  EXPECT_EQ(policy.deadline, none.deadline);
}

TEST(UpTest, TheDefaultPolicyHasWhatThePrivateNginxUses) {
  const Policy policy = config::ParsePolicy(DefaultPolicy("x"), "p").value();
  const UsedResources used = ChooseResources(policy).value();
  EXPECT_EQ(used.requests, "api");
  EXPECT_EQ(used.health, "health");
}

TEST(UpTest, RequestsAreApiOrElseTheFirstThatIsNotExempt) {
  EXPECT_EQ(ChooseResources(
                WithResources({{.name = "a"}, {.name = "api"}, {.name = "b"}}))
                .value()
                .requests,
            "api");
  const UsedResources used =
      ChooseResources(WithResources({{.name = "up", .exempt = true},
                                     {.name = "search"},
                                     {.name = "buy"}}))
          .value();
  EXPECT_EQ(used.requests, "search");
  EXPECT_EQ(used.health, "up");
}

TEST(UpTest, APolicyThatGuardsNothingIsRefused) {
  EXPECT_FALSE(
      ChooseResources(WithResources({{.name = "up", .exempt = true}})).ok());
}

}  // namespace
}  // namespace weir::cli
