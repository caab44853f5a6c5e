#include "weir/stale/slice_dropper.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart{seconds(1000)};
constexpr CapacityMeter::Reading kOver{1000, 1000, 1200, 0};
constexpr CapacityMeter::Reading kUnder{1000, 1000, 900, 0};

class SliceDropperTest : public ::testing::Test {
 protected:
  void Make(const SliceDropper::Config& config) {
    link_.reset();
    other_.reset();
    dropper_.emplace(SliceDropper::Make(config).value());
    link_ = std::make_unique<SliceDropper::Link>(*dropper_);
    other_ = std::make_unique<SliceDropper::Link>(*dropper_);
  }
  void SetUp() override { Make({}); }

  void Hello(SliceDropper::Link& link, Duration sent, Duration delay) {
    dropper_->Hello(link, StampOf(Instant(sent + clock_), milliseconds(100)),
                    kStart + sent + delay);
  }
  void Hello(Duration sent, Duration delay) { Hello(*link_, sent, delay); }
  bool Admit(Duration at) { return dropper_->Admit(*link_, kStart + at); }
  void Judge(const CapacityMeter::Reading& reading, Duration at) {
    dropper_->Judge(reading, kStart + at);
  }

  Duration clock_ = seconds(77);  // Of the peer.
  std::optional<SliceDropper> dropper_;
  std::unique_ptr<SliceDropper::Link> link_;
  std::unique_ptr<SliceDropper::Link> other_;
};

TEST_F(SliceDropperTest, IsOverloadedWhenDemandExceedsCapacity) {
  Judge(kUnder, seconds(5));
  EXPECT_FALSE(dropper_->overloaded());
  Judge({1000, 1000, 1000, 0}, seconds(10));
  EXPECT_FALSE(dropper_->overloaded());
  Judge({1000, 1000, 1000.1, 0}, seconds(15));
  EXPECT_TRUE(dropper_->overloaded());
}

TEST_F(SliceDropperTest, JudgesNobodyInCalm) {
  Hello(seconds(0), Duration{});
  Hello(seconds(1), seconds(50));
  EXPECT_TRUE(Admit(seconds(51)));
  EXPECT_EQ(dropper_->dropping(), 0u);
}

TEST_F(SliceDropperTest, DropsWholeSlicesUntilAFreshHello) {
  Hello(seconds(0), Duration{});
  Judge(kOver, seconds(0));
  EXPECT_TRUE(Admit(seconds(0)));
  Hello(seconds(1), milliseconds(1000));  // At the threshold, not past it.
  EXPECT_TRUE(Admit(seconds(2)));
  Hello(seconds(2), milliseconds(1100));
  EXPECT_FALSE(Admit(seconds(3)));
  EXPECT_FALSE(Admit(seconds(4)));
  Hello(seconds(3), milliseconds(1200));
  EXPECT_FALSE(Admit(seconds(4)));
  Hello(seconds(4), milliseconds(300));
  EXPECT_TRUE(Admit(seconds(4)));
}

TEST_F(SliceDropperTest, LinksAreJudgedEachByTheirOwn) {
  Hello(*link_, seconds(0), Duration{});
  clock_ = seconds(-9);
  Hello(*other_, seconds(0), Duration{});
  Judge(kOver, seconds(5));
  Hello(*other_, seconds(5), seconds(2));
  EXPECT_FALSE(link_->dropping());
  EXPECT_TRUE(other_->dropping());
  EXPECT_EQ(dropper_->dropping(), 1u);
}

// The next Hello may be a whole queue away.
TEST_F(SliceDropperTest, ALateLinkDropsAsSoonAsTheOverloadIsSeen) {
  Hello(seconds(0), Duration{});
  Hello(seconds(1), seconds(4));
  ASSERT_TRUE(Admit(seconds(5)));
  Judge(kOver, seconds(5));
  EXPECT_FALSE(Admit(seconds(5)));
}

TEST_F(SliceDropperTest, RecoversOnlyWhenNoLinkIsDropping) {
  Hello(seconds(0), Duration{});
  Judge(kOver, seconds(0));
  Hello(seconds(1), seconds(4));
  Judge(kUnder, seconds(5));
  EXPECT_TRUE(dropper_->overloaded());
  Hello(seconds(5), Duration{});
  Judge(kOver, seconds(10));
  EXPECT_TRUE(dropper_->overloaded());
  Judge(kUnder, seconds(15));
  EXPECT_FALSE(dropper_->overloaded());
}

// In the original's step test a capacity computed from dropped work had come
// back to 1.8 of 2.8 MB/s; only the links that dropped prevented a recovery.
TEST_F(SliceDropperTest, ARegainedCapacityIsBelievedOfTheLastUnit) {
  Judge(kOver, seconds(5));
  Judge({.capacity = 300, .unit_capacity = 2800, .demand = 1000, .waiting = 0},
        seconds(10));
  EXPECT_FALSE(dropper_->overloaded());
}

TEST_F(SliceDropperTest, AnIdleServerWithoutCapacityRecovers) {
  Judge({0, 0, 10, 0}, seconds(5));
  ASSERT_TRUE(dropper_->overloaded());
  Judge({0, 0, 0, 0}, seconds(10));
  EXPECT_FALSE(dropper_->overloaded());
}

TEST_F(SliceDropperTest, ALinkThatClosesWhileDroppingHoldsUpNothing) {
  Hello(seconds(0), Duration{});
  Judge(kOver, seconds(0));
  Hello(seconds(1), seconds(4));
  ASSERT_EQ(dropper_->dropping(), 1u);
  link_.reset();
  EXPECT_EQ(dropper_->dropping(), 0u);
  EXPECT_EQ(dropper_->links(), 1u);
  Judge(kUnder, seconds(10));
  EXPECT_FALSE(dropper_->overloaded());
}

TEST_F(SliceDropperTest, LinksMayCloseInAnyOrder) {
  auto third = std::make_unique<SliceDropper::Link>(*dropper_);
  link_.reset();
  Hello(*third, seconds(0), Duration{});
  Judge(kOver, seconds(0));
  Hello(*third, seconds(1), seconds(4));
  other_.reset();
  EXPECT_EQ(dropper_->dropping(), 1u);
  third.reset();
  EXPECT_EQ(dropper_->links(), 0u);
  EXPECT_EQ(dropper_->dropping(), 0u);
}

TEST_F(SliceDropperTest, ALinkThatFallsSilentWhileDroppingHoldsUpNothing) {
  Hello(seconds(0), Duration{});
  Judge(kOver, seconds(0));
  Hello(seconds(1), seconds(4));
  Judge(kUnder, seconds(15));  // 10 s since the Hello, not more.
  EXPECT_TRUE(dropper_->overloaded());
  Judge(kUnder, seconds(16));
  EXPECT_FALSE(dropper_->overloaded());
  EXPECT_EQ(dropper_->new_rulers(), 0u);
}

// Half a second back each: too little to be seen in the stamps themselves.
TEST_F(SliceDropperTest, AClockSetBackBitByBitDoesNotStarveALink) {
  Hello(seconds(0), Duration{});
  Judge(kOver, seconds(0));
  for (int i = 1; i <= 4; ++i) {
    clock_ -= milliseconds(500);
    Hello(seconds(i), Duration{});
  }
  ASSERT_TRUE(link_->dropping());
  int second = 5;
  for (; second < 30 && link_->dropping(); ++second) {
    Hello(seconds(second), Duration{});
  }
  EXPECT_EQ(second, 15);
  EXPECT_EQ(dropper_->new_rulers(), 1u);
  for (; second < 60; ++second) {
    Hello(seconds(second), Duration{});
    ASSERT_TRUE(Admit(seconds(second)));
  }
}

TEST_F(SliceDropperTest, ALinkThatCatchesUpSlowlyKeepsItsRuler) {
  Hello(seconds(0), Duration{});
  Judge(kOver, seconds(0));
  for (int i = 1; i <= 40; ++i) {
    // From 20 s behind, half a second less each second.
    Hello(seconds(i), milliseconds(20'000 - 500 * i));
    ASSERT_EQ(link_->dropping(), 20'000 - 500 * i > 1000) << "second " << i;
  }
  EXPECT_EQ(dropper_->new_rulers(), 0u);
}

// Somebody else decides and lets all run, so the link cannot catch up; its
// delay is what it is.
TEST_F(SliceDropperTest, ALinkWhoseMessagesRunAllTheSameKeepsItsRuler) {
  Hello(seconds(0), Duration{});
  EXPECT_EQ(dropper_->Behind(*link_), Duration{});
  Judge(kOver, seconds(0));
  for (int i = 1; i <= 60; ++i) {
    Hello(seconds(i), seconds(20));
    ASSERT_FALSE(Admit(seconds(i)));
    ASSERT_EQ(dropper_->Behind(*link_), seconds(20));
    dropper_->Ran(*link_, kStart + seconds(i) + seconds(20));
  }
  EXPECT_EQ(dropper_->new_rulers(), 0u);
}

TEST_F(SliceDropperTest, InCalmNoLinkIsBehind) {
  Hello(seconds(0), Duration{});
  Hello(seconds(1), seconds(5));
  EXPECT_EQ(dropper_->Behind(*link_), Duration{});
  Judge(kOver, seconds(6));
  EXPECT_EQ(dropper_->Behind(*link_), seconds(5));
}

TEST_F(SliceDropperTest, APeerThatSendsNoHellosIsNeverRefused) {
  Make({.lifetime = seconds(2)});
  Judge(kOver, seconds(0));
  EXPECT_TRUE(Admit(seconds(1000)));
}

TEST_F(SliceDropperTest, TheRestOfASliceThatOutlivedItsMessagesGoes) {
  Make({.lifetime = seconds(2), .interval = seconds(1)});
  Hello(seconds(0), Duration{});
  Hello(seconds(1), milliseconds(800));
  Judge(kOver, seconds(2));
  // 0.8 s old at 1.8 s; the youngest of the slice, sent at 2 s, dies at 4 s.
  EXPECT_TRUE(Admit(milliseconds(4000)));
  EXPECT_FALSE(Admit(milliseconds(4001)));
  EXPECT_EQ(dropper_->dropping(), 0u);
}

TEST_F(SliceDropperTest, AStampOnEachMessageIsASliceOfOne) {
  Hello(seconds(0), Duration{});
  Judge(kOver, seconds(0));
  for (int i = 0; i < 100; ++i) {
    const Duration delay = i % 2 == 0 ? milliseconds(900) : milliseconds(1100);
    Hello(i * seconds(1), delay);
    ASSERT_EQ(Admit(i * seconds(1) + delay), i % 2 == 0) << "message " << i;
  }
}

TEST_F(SliceDropperTest, RefusesWhatMakesNoSense) {
  const auto complaint = [](const SliceDropper::Config& config) {
    auto dropper = SliceDropper::Make(config);
    return dropper ? std::string() : dropper.error().message;
  };
  EXPECT_EQ(complaint({}), "");
  EXPECT_EQ(complaint({.threshold = Duration{}}), "`threshold` is not above 0");
  EXPECT_EQ(complaint({.patience = Duration{}}), "`patience` is not above 0");
  EXPECT_EQ(complaint({.lifetime = Duration(-1)}), "`lifetime` is below 0");
  EXPECT_EQ(complaint({.interval = Duration(-1)}), "`interval` is below 0");
  EXPECT_EQ(complaint({.hello = {.tick = Duration{}}}),
            "`hello`: `tick` is not between 1 us and 1 s");
}

}  // namespace
}  // namespace weir
