// Conformance of the client side throttle: computed values of its equation,
// and the histories of the breaker in aegis.

#include "weir/rivals/sre_throttle.h"

#include <gtest/gtest.h>

#include "samples_test.h"
#include "weir/splitmix64.h"

namespace weir::rivals {
namespace {

TEST(SreThrottleTest, RefusesTheShareOfItsEquation) {
  EXPECT_EQ(SreThrottle::RefusalRatio(2, 100, 100), 0);
  EXPECT_EQ(SreThrottle::RefusalRatio(2, 100, 50), 0);
  EXPECT_DOUBLE_EQ(SreThrottle::RefusalRatio(2, 100, 25), 50.0 / 101);
  EXPECT_DOUBLE_EQ(SreThrottle::RefusalRatio(2, 100, 0), 100.0 / 101);
  EXPECT_DOUBLE_EQ(SreThrottle::RefusalRatio(2, 1000, 400), 200.0 / 1001);
  EXPECT_NEAR(SreThrottle::RefusalRatio(1.1, 100, 90), 1.0 / 101, 1e-12);
}

// The breaker's tests: K = 2, at least 100 requests, ten slices of 100 ms.
class BreakerTest : public testing::Test {
 protected:
  void Call(int count, bool accepted) {
    for (int i = 0; i < count; ++i) {
      // A draw that even the highest ratio admits.
      law_.Admit({.now = now_, .draw = ~uint64_t{0}});
      law_.Learn({.now = now_, .refused = !accepted});
    }
  }
  // With the draw that any ratio above 0 refuses.
  bool Admits() { return law_.Admit({.now = now_, .draw = 0}); }

  SreThrottle law_{{.k = 2, .least_requests = 100, .window = 1s, .slices = 10}};
  Instant now_ = kStart;
};

TEST_F(BreakerTest, AdmitsASoundServer) {
  Call(80, true);
  EXPECT_TRUE(Admits());
  Call(120, true);
  EXPECT_TRUE(Admits());
}

TEST_F(BreakerTest, RefusesAFailingServerAndForgetsWhenIdle) {
  Call(100, true);
  Call(100'000, false);
  EXPECT_FALSE(Admits());
  now_ += 2s;
  EXPECT_TRUE(Admits());
}

TEST_F(BreakerTest, AdmitsBelowItsLeastRequests) {
  Call(99, false);
  EXPECT_TRUE(Admits());
  EXPECT_FALSE(Admits());
}

TEST(SreThrottleTest, CriticalitiesAreThrottledApart) {
  SreThrottle law({});
  for (int i = 0; i < 100; ++i) {
    law.Admit({.now = kStart,
               .criticality = Criticality::kSheddable,
               .draw = ~uint64_t{0}});
  }
  EXPECT_FALSE(
      law.Admit({.now = kStart, .criticality = Criticality::kSheddable}));
  EXPECT_TRUE(law.Admit({.now = kStart, .criticality = Criticality::kVital}));
}

struct Share {
  double k;
  double accepted_of_sent;
};

// Goal: under a demand of ten times what the server takes, what is sent
// settles at K times that, so 1 / K of it is accepted: 50 % and 90.9 %.
// Method: 1000 attempts a second for ten minutes at a server that takes 100.
TEST(SreThrottleTest, OneInKOfWhatIsSentIsAccepted) {
  for (const Share& share : {Share{2.0, 0.5}, Share{1.1, 1 / 1.1}}) {
    SreThrottle law({.k = share.k});
    SplitMix64 random(5);
    int sent = 0;
    int accepted = 0;
    for (int second = 0; second < 600; ++second) {
      int room = 100;
      for (int i = 0; i < 1000; ++i) {
        const Instant now = kStart + second * 1s + i * 1ms;
        if (!law.Admit({.now = now, .draw = random.Next()})) continue;
        const bool takes = room > 0;
        if (takes) --room;
        law.Learn({.now = now, .refused = !takes});
        if (second < 300) continue;  // Let it settle.
        ++sent;
        if (takes) ++accepted;
      }
    }
    EXPECT_NEAR(static_cast<double>(accepted) / sent, share.accepted_of_sent,
                0.03)
        << "K " << share.k;
  }
}

}  // namespace
}  // namespace weir::rivals
