#include "weir/stale/capacity_meter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "testing/simulated_service.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart{seconds(1000)};

CapacityMeter MakeMeter(const CapacityMeter::Config& config = {},
                        Instant now = kStart) {
  return CapacityMeter::Make(config, now).value();
}

// A loop that is busy all the time: handles `size` bytes in `each` until a
// unit of 5 s is over.  Returns how many bytes that were.
int64_t Saturate(CapacityMeter& meter, int64_t size, Duration each) {
  const int64_t messages = seconds(5) / each;
  meter.Executed(messages * size, messages * each);
  return messages * size;
}

// 1056 bytes in 3 s is nearly idle; 2.8 MB/s is what it could do.
TEST(CapacityMeterTest, AnIdleServerKnowsItsCapacity) {
  CapacityMeter meter = MakeMeter({.unit = seconds(3), .window = seconds(30)});
  meter.Arrived(1056);
  meter.Executed(1056, microseconds(377));
  ASSERT_TRUE(meter.Advance(kStart + seconds(3)));

  EXPECT_NEAR(meter.reading().capacity, 2.8e6, 2e3);
  EXPECT_DOUBLE_EQ(meter.reading().demand, 352);
}

TEST(CapacityMeterTest, OtherWorkOfTheLoopIsNotCapacity) {
  CapacityMeter meter = MakeMeter();
  meter.Arrived(1000);
  meter.Executed(1000, milliseconds(1));
  // 567 us in each of 1000 loops: 0.567 s of 5 s.
  for (int i = 0; i < 1000; ++i) meter.OtherWork(microseconds(567));
  meter.Advance(kStart + seconds(5));

  EXPECT_NEAR(meter.reading().capacity, 1e6 * (1 - .567 / 5), 1);
}

TEST(CapacityMeterTest, ALoopThatDoesNothingButOtherWorkHasNoCapacity) {
  CapacityMeter meter = MakeMeter();
  meter.Arrived(10);
  meter.Executed(10, milliseconds(1));
  meter.OtherWork(seconds(20));  // Began before the unit.
  meter.Advance(kStart + seconds(5));
  EXPECT_EQ(meter.reading().capacity, 0);
}

// The original counted dropped bytes as handled: 0.1 MB/s, computed as
// 1.8 MB/s as soon as it dropped.
TEST(CapacityMeterTest, DroppedWorkIsNotCapacity) {
  CapacityMeter meter = MakeMeter();
  for (int unit = 1; unit <= 6; ++unit) {
    meter.Arrived(14'000'000);
    meter.Dropped(13'500'000);
    Saturate(meter, 100, milliseconds(1));
    meter.Advance(kStart + unit * seconds(5));
    ASSERT_NEAR(meter.reading().capacity, 1e5, 1) << "unit " << unit;
    ASSERT_NEAR(meter.reading().unit_capacity, 1e5, 1) << "unit " << unit;
    ASSERT_GT(meter.reading().demand, 2.7e6) << "unit " << unit;
  }
}

// What a saturated loop handles is its capacity, whatever comes: only with
// what waits can demand exceed it.
TEST(CapacityMeterTest, ASaturatedLoopSeesDemandAboveCapacity) {
  CapacityMeter meter = MakeMeter();
  meter.Arrived(600'000);
  Saturate(meter, 100, milliseconds(1));
  meter.Advance(kStart + seconds(5));

  EXPECT_NEAR(meter.reading().capacity, 1e5, 1);
  EXPECT_NEAR(meter.reading().demand, 1.2e5, 1);
  EXPECT_EQ(meter.reading().waiting, 100'000);
}

// Bounded buffers: once they are full, no more is read than is handled.
TEST(CapacityMeterTest, FullBuffersDoNotHideTheOverload) {
  CapacityMeter meter = MakeMeter();
  meter.Arrived(64'000);
  for (int unit = 1; unit <= 20; ++unit) {
    meter.Arrived(Saturate(meter, 100, milliseconds(1)));
    meter.Advance(kStart + unit * seconds(5));
    ASSERT_GT(meter.reading().demand, meter.reading().capacity * 1.1)
        << "unit " << unit;
  }
}

TEST(CapacityMeterTest, AStandingQueueCountsUntilItIsWorkedOff) {
  CapacityMeter meter = MakeMeter();
  meter.Arrived(900'000);  // A burst of 9 s of work, then 60 % load.
  for (int unit = 1; unit <= 5; ++unit) {
    meter.Arrived(300'000);
    const int64_t done = std::min<int64_t>(meter.waiting(), 500'000);
    meter.Executed(done, done * microseconds(10));
    meter.Advance(kStart + unit * seconds(5));
    const bool exceeds = meter.reading().demand > meter.reading().capacity + 1;
    ASSERT_EQ(exceeds, unit <= 4) << "unit " << unit;
  }
}

TEST(CapacityMeterTest, ALossOfCapacityIsSeenWithinAUnit) {
  CapacityMeter meter = MakeMeter();
  Instant now = kStart;
  for (int unit = 0; unit < 6; ++unit) {  // 2.8 MB/s at 3 % load.
    meter.Arrived(420'000);
    meter.Executed(420'000, milliseconds(150));
    meter.Advance(now += seconds(5));
  }
  ASSERT_NEAR(meter.reading().capacity, 2.8e6, 1);

  meter.Arrived(420'000);
  meter.Executed(400'000, milliseconds(4000));  // 0.1 MB/s
  meter.Advance(now += seconds(5));
  EXPECT_NEAR(meter.reading().capacity, 1e5, 1);
}

TEST(CapacityMeterTest, AGainShowsInTheLastUnitAtOnceAndInTheWindowLater) {
  CapacityMeter meter = MakeMeter();
  Instant now = kStart;
  const auto run = [&](Duration each) {
    meter.Arrived(Saturate(meter, 100, each));
    meter.Advance(now += seconds(5));
  };
  for (int unit = 0; unit < 6; ++unit) run(milliseconds(1));
  run(microseconds(50));
  EXPECT_NEAR(meter.reading().unit_capacity, 2e6, 1);
  EXPECT_LT(meter.reading().capacity, 5e5);
  for (int unit = 0; unit < 5; ++unit) run(microseconds(50));
  EXPECT_NEAR(meter.reading().capacity, 2e6, 1);
}

// Bytes mistake a flood of cheap messages for much work and messages do not,
// or the other way round: the unit is the caller's choice.
TEST(CapacityMeterTest, WorkMayBeCountedInMessages) {
  CapacityMeter meter = MakeMeter();
  meter.Arrived(6000);
  Saturate(meter, 1, milliseconds(1));
  meter.Advance(kStart + seconds(5));
  EXPECT_NEAR(meter.reading().capacity, 1000, 1e-6);
  EXPECT_NEAR(meter.reading().demand, 1200, 1e-6);
}

TEST(CapacityMeterTest, NothingIsKnownBeforeTheFirstUnitIsOver) {
  CapacityMeter meter = MakeMeter();
  meter.Arrived(1'000'000);
  EXPECT_FALSE(meter.Advance(kStart + seconds(5) - Duration(1)));
  EXPECT_TRUE(std::isinf(meter.reading().capacity));
  EXPECT_EQ(meter.reading().demand, 0);
}

TEST(CapacityMeterTest, CapacityOutlivesTheWindowInWhichItWasMeasured) {
  CapacityMeter meter = MakeMeter();
  Saturate(meter, 100, milliseconds(1));
  meter.Advance(kStart + seconds(5));
  meter.Advance(kStart + hours(2));
  EXPECT_NEAR(meter.reading().capacity, 1e5, 1);
  EXPECT_NEAR(meter.reading().unit_capacity, 1e5, 1);
}

TEST(CapacityMeterTest, UnitsStayOnTheirGridAfterALoopThatStoodStill) {
  CapacityMeter meter = MakeMeter();
  EXPECT_TRUE(meter.Advance(kStart + seconds(5)));
  EXPECT_TRUE(meter.Advance(kStart + milliseconds(122'001)));
  EXPECT_FALSE(meter.Advance(kStart + milliseconds(124'999)));
  EXPECT_TRUE(meter.Advance(kStart + seconds(125)));
}

TEST(CapacityMeterTest, AClockThatStepsBackEndsNoUnit) {
  CapacityMeter meter = MakeMeter();
  ASSERT_TRUE(meter.Advance(kStart + seconds(6)));
  EXPECT_FALSE(meter.Advance(kStart - hours(1)));
  EXPECT_FALSE(meter.Advance(kStart + seconds(9)));
  EXPECT_TRUE(meter.Advance(kStart + seconds(10)));
}

TEST(CapacityMeterTest, WorksAtBothEndsOfTime) {
  const Instant kEnds[] = {Instant(Duration(-(int64_t{1} << 62))),
                           Instant::max() - hours(1)};
  for (const Instant start : kEnds) {
    CapacityMeter meter = MakeMeter({}, start);
    Saturate(meter, 100, milliseconds(1));
    EXPECT_TRUE(meter.Advance(start + seconds(5)));
    EXPECT_NEAR(meter.reading().capacity, 1e5, 1);
  }
}

// Goal: every reading is what the formulas say, over random histories.
// Method: the model keeps all units since the start.
TEST(CapacityMeterTest, AgreesWithTheFormulasOnRandomHistories) {
  struct Unit {
    double arrived, executed, dropped, busy, other;
  };
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    testing::Random random(seed);
    const auto window = static_cast<int>(1 + random.Next() % 8);
    CapacityMeter meter =
        MakeMeter({.unit = seconds(1), .window = window * seconds(1)});
    std::vector<Unit> units;
    double waiting = 0;
    for (int i = 1; i <= 30; ++i) {
      Unit unit{};
      for (uint64_t j = random.Next() % 20; j > 0; --j) {
        const auto work = static_cast<int64_t>(1 + random.Next() % 1000);
        meter.Arrived(2 * work);
        meter.Executed(work, microseconds(10 * work));
        meter.Dropped(work / 2);
        meter.OtherWork(microseconds(work));
        unit.arrived += 2 * static_cast<double>(work);
        unit.executed += static_cast<double>(work);
        unit.dropped += static_cast<double>(work / 2);
        unit.busy += static_cast<double>(work) * 10e-6;
        unit.other += static_cast<double>(work) * 1e-6;
      }
      units.push_back(unit);
      ASSERT_TRUE(meter.Advance(kStart + i * seconds(1)));
      ASSERT_NEAR(meter.reading().demand, waiting + unit.arrived, 1e-6);
      waiting += unit.arrived - unit.executed - unit.dropped;
      ASSERT_NEAR(static_cast<double>(meter.waiting()), waiting, 1e-6);
      const int spans[] = {1, std::min(window, i)};
      double smallest = INFINITY;
      bool all_known = true;
      for (const int span : spans) {
        double executed = 0, busy = 0, other = 0;
        for (int k = 0; k < span; ++k) {
          const Unit& u = units[units.size() - 1 - static_cast<size_t>(k)];
          executed += u.executed, busy += u.busy, other += u.other;
        }
        all_known = all_known && executed > 0;
        smallest = std::min(smallest, executed / busy * (1 - other / span));
      }
      if (all_known) {
        ASSERT_NEAR(meter.reading().capacity, smallest, 1e-3)
            << "seed " << seed << ", unit " << i;
      }
    }
  }
}

TEST(CapacityMeterTest, RefusesWhatItCannotMeasureWith) {
  const auto complaint = [](Duration unit, Duration window) {
    auto meter = CapacityMeter::Make({.unit = unit, .window = window}, kStart);
    return meter ? std::string() : meter.error().message;
  };
  EXPECT_EQ(complaint(seconds(5), seconds(30)), "");
  EXPECT_EQ(complaint(seconds(1), seconds(64)), "");
  EXPECT_EQ(complaint(Duration{}, seconds(30)),
            "`unit` is not between 1 ms and 1 h");
  EXPECT_EQ(complaint(seconds(5), seconds(31)),
            "`window` is not 1 to 64 times `unit`");
  EXPECT_EQ(complaint(seconds(1), seconds(65)),
            "`window` is not 1 to 64 times `unit`");
  EXPECT_EQ(complaint(seconds(5), Duration{}),
            "`window` is not 1 to 64 times `unit`");
}

}  // namespace
}  // namespace weir
