#include "weir/signal/retry_share.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart{seconds(1000)};

// Steps of 100 ms with so many arrivals and retries each.
void Feed(RetryShare& share, Instant& now, int steps, int64_t arrivals,
          int64_t retries) {
  for (int i = 0; i < steps; ++i, now += milliseconds(100)) {
    share.Add(arrivals, retries, now);
  }
}

TEST(RetryShareTest, CallersThatKeepToABudgetOfATenthAreNotMany) {
  RetryShare share;
  Instant now = kStart;
  Feed(share, now, 600, 110, 10);
  EXPECT_NEAR(share.share(), 1. / 11, 1e-6);
  EXPECT_FALSE(share.abound());
}

TEST(RetryShareTest, TwoRetriesForEachRequestAboundWithinASecond) {
  RetryShare share;
  Instant now = kStart;
  Feed(share, now, 100, 100, 0);
  Feed(share, now, 10, 300, 200);
  EXPECT_TRUE(share.abound());
}

TEST(RetryShareTest, DoesNotFlickerBetweenItsBounds) {
  RetryShare share;
  Instant now = kStart;
  Feed(share, now, 100, 100, 12);
  EXPECT_FALSE(share.abound());
  Feed(share, now, 100, 100, 20);
  EXPECT_TRUE(share.abound());
  Feed(share, now, 100, 100, 12);
  EXPECT_TRUE(share.abound());
  Feed(share, now, 100, 100, 5);
  EXPECT_FALSE(share.abound());
}

TEST(RetryShareTest, AFewRequestsProveNothing) {
  RetryShare share;
  Instant now = kStart;
  Feed(share, now, 100, 2, 2);
  EXPECT_FALSE(share.abound());
}

TEST(RetryShareTest, IsForgottenWhenNobodyComes) {
  RetryShare share;
  Instant now = kStart;
  Feed(share, now, 50, 100, 50);
  ASSERT_TRUE(share.abound());
  share.Add(1, 0, now + seconds(30));
  EXPECT_FALSE(share.abound());
}

TEST(RetryShareTest, TimeThatStepsBackIsNoTime) {
  RetryShare share;
  Instant now = kStart;
  Feed(share, now, 50, 100, 50);
  const double before = share.share();
  share.Add(0, 0, kStart);
  EXPECT_EQ(share.share(), before);
  EXPECT_TRUE(share.abound());
}

}  // namespace
}  // namespace weir
