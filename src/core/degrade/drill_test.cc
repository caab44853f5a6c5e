#include "weir/degrade/drill.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart{seconds(1000)};

TEST(DrillTest, AWordHoldsItWhole) {
  for (const uint16_t row : {0, 1, 63}) {
    for (const uint8_t level : {1, 4, 7}) {
      for (const uint32_t share : {1U, Drill::kWhole / 2, Drill::kWhole}) {
        const Drill drill{
            .row = row, .level = level, .share = share, .until = kStart};
        EXPECT_EQ(Drill::Unpack(drill.Pack()), drill);
      }
    }
  }
  EXPECT_EQ(Drill{}.Pack(), 0u);
  EXPECT_FALSE(Drill::Unpack(0).ActiveAt(Instant{}));
}

double Share(const Drill& drill, uint64_t client) {
  constexpr int kRequests = 100'000;
  int taken = 0;
  for (int i = 0; i < kRequests; ++i) {
    taken += drill.Takes(
        {.client = client, .arrived = kStart + i * milliseconds(1)});
  }
  return static_cast<double>(taken) / kRequests;
}

TEST(DrillTest, TakesItsShareOfEveryClient) {
  for (const double share : {.01, .25, .9}) {
    const Drill drill{.level = 1,
                      .share = static_cast<uint32_t>(share * Drill::kWhole),
                      .until = kStart};
    // Four standard errors.
    const double error = 4 * std::sqrt(share * (1 - share) / 100'000);
    for (const uint64_t client : {0, 1, 2, 77}) {
      EXPECT_NEAR(Share(drill, client), share, error) << "client " << client;
    }
  }
}

TEST(DrillTest, TheWholeIsAllAndTheSameRequestMeetsTheSameFate) {
  const Drill all{.level = 1, .share = Drill::kWhole, .until = kStart};
  const Drill half{.level = 1, .share = Drill::kWhole / 2, .until = kStart};
  for (int i = 0; i < 1000; ++i) {
    const Request request{.client = 5, .arrived = kStart + Duration(i)};
    EXPECT_TRUE(all.Takes(request));
    EXPECT_EQ(half.Takes(request), half.Takes(request));
  }
}

TEST(DrillTest, AnotherDrillTakesOthers) {
  const Drill one{.level = 1, .share = Drill::kWhole / 2, .until = kStart};
  Drill other = one;
  other.until += seconds(1);
  int same = 0;
  for (int i = 0; i < 10'000; ++i) {
    const Request request{.client = 5, .arrived = kStart + Duration(i)};
    same += one.Takes(request) == other.Takes(request);
  }
  EXPECT_NEAR(same, 5000, 200);
}

}  // namespace
}  // namespace weir
