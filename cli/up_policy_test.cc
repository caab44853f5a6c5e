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

TEST(UpTest, ThePolicyOfRoutesHasTheirResourcesOnce) {
  const std::string text =
      DefaultPolicy("x", {"checkout", "off", "api", "checkout"}, true);
  const config::Checked<Policy> policy = config::ParsePolicy(text, "policy");
  ASSERT_TRUE(policy.ok()) << policy.complaints().Print();
  ASSERT_EQ(policy->resources.size(), 3u);
  EXPECT_EQ(policy->resources[1].name, "checkout");
  EXPECT_EQ(policy->resources[1].stages[static_cast<size_t>(Stage::kLimit)],
            StageMode::kShadow);
}

TEST(UpTest, ARouteIsAPathAndAResource) {
  const auto routes = ParseRoutes({"/a=b=shop", "/=off"});
  ASSERT_TRUE(routes.ok());
  EXPECT_EQ(routes->at(0).path, "/a=b");
  EXPECT_EQ(routes->at(0).resource, "shop");
  EXPECT_EQ(routes->at(1).resource, "off");
  for (const char* wrong : {"shop", "/a", "/a=", "a=b", "/a b=c", "/$uri=c"}) {
    EXPECT_FALSE(ParseRoutes({wrong}).ok()) << wrong;
  }
  EXPECT_EQ(ParseRoutes({"/a=x", "/a=y"}).error().message,
            "--route: `/a` is `x` and `y`; only one could count");
}

TEST(UpTest, ARouteToNothingNamesWhatIsNear) {
  const Policy policy = WithResources({{.name = "checkout"}});
  EXPECT_FALSE(CheckRoutes({{"/a", "checkout"}, {"/b", "off"}}, policy, "p"));
  EXPECT_EQ(CheckRoutes({{"/a", "chekout"}}, policy, "p.toml")->message,
            "--route: p.toml has no resource `chekout`; did you mean "
            "`checkout`?");
  EXPECT_EQ(CheckRoutes({{"/a", "pay"}}, policy, "p.toml")->message,
            "--route: p.toml has no resource `pay`; add `[resource.pay]` to "
            "it");
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
