#include "weir/policy.h"

#include <gtest/gtest.h>

#include <limits>

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::seconds;

Policy Legal() {
  Policy policy;
  policy.service = "shop";
  policy.resources.push_back({.name = "api"});
  return policy;
}

TEST(PolicyTest, TheSmallestPolicyIsLegal) {
  EXPECT_FALSE(Legal().Check().has_value());
}

TEST(PolicyTest, EachBrokenRuleIsRefused) {
  const auto refused = [](auto change) {
    Policy policy = Legal();
    change(policy);
    return policy.Check().has_value();
  };
  EXPECT_TRUE(refused([](Policy& p) { p.service = ""; }));
  EXPECT_TRUE(refused([](Policy& p) { p.service = "Shop"; }));
  EXPECT_TRUE(refused([](Policy& p) { p.service = std::string(48, 'a'); }));
  EXPECT_TRUE(refused([](Policy& p) { p.deadline = microseconds(999); }));
  EXPECT_TRUE(refused([](Policy& p) { p.deadline = hours(2); }));
  EXPECT_TRUE(refused([](Policy& p) { p.deadline = seconds(61); }));
  EXPECT_TRUE(refused([](Policy& p) { p.deadline_ceiling = hours(2); }));
  EXPECT_TRUE(refused([](Policy& p) { p.workers = -1; }));
  EXPECT_TRUE(refused([](Policy& p) { p.limit_floor = 0; }));
  EXPECT_TRUE(refused([](Policy& p) { p.limit_ceiling = 1'000'001; }));
  EXPECT_TRUE(
      refused([](Policy& p) { p.limit_floor = 9, p.limit_ceiling = 8; }));
  EXPECT_TRUE(refused([](Policy& p) { p.shed_status = 500; }));
  EXPECT_TRUE(refused([](Policy& p) { p.client_quota.emplace(); }));
  EXPECT_TRUE(refused([](Policy& p) { p.resources.clear(); }));
  EXPECT_TRUE(
      refused([](Policy& p) { p.resources.push_back({.name = "api"}); }));
  EXPECT_TRUE(refused([](Policy& p) { p.resources[0].name = "a b"; }));
  EXPECT_TRUE(
      refused([](Policy& p) { p.resources[0].deadline = Duration(0); }));
  EXPECT_TRUE(
      refused([](Policy& p) { p.resources[0].deadline = seconds(61); }));
  const auto levels = [&](std::vector<DegradeLevel> given) {
    return refused([&](Policy& p) { p.resources[0].degrade = given; });
  };
  EXPECT_FALSE(levels({{"a"}, {"b"}, {"c", 2}, {"d", 100}}));
  EXPECT_TRUE(levels({{"a"}, {"b"}, {"c"}, {"d"}, {"e"}}));
  EXPECT_TRUE(levels({{"a b"}}));
  EXPECT_TRUE(levels({{"a", .99}}));
  EXPECT_TRUE(levels({{"a", 101}}));
  EXPECT_TRUE(levels({{"a", 2}, {"b", 1.5}}));
  EXPECT_TRUE(levels({{"a", std::numeric_limits<double>::quiet_NaN()}}));
  EXPECT_TRUE(refused([](Policy& p) {
    for (size_t i = 0; i < kMaxResources; ++i) {
      p.resources.push_back({.name = "r" + std::to_string(i)});
    }
  }));
}

TEST(PolicyTest, ResourcesAreFoundByTheirWholeName) {
  Policy policy = Legal();
  policy.resources.push_back({.name = "api/v2"});
  EXPECT_EQ(policy.FindResource("api/v2"), 1);
  EXPECT_EQ(policy.FindResource("api/"), std::nullopt);
}

}  // namespace
}  // namespace weir
