#include "weir/shm/switch_board.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <memory>

#include "switch_file.h"
#include "testing.h"
#include "weir/guard.h"
#include "weir/shm/lease.h"

namespace weir::shm {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

using Action = Switch::Action;

constexpr Switch kPaused{.action = Action::kPause};

// A service with the resources all, pay and search.
class SwitchBoardTest : public SegmentTest {
 protected:
  SwitchBoardTest() {
    policy_.resources.emplace_back().name = "pay";
    policy_.resources.push_back({.name = "search", .degrade = {{"plain"}}});
  }
  ~SwitchBoardTest() override { ::unlink(file().c_str()); }

  std::string file() const { return SwitchesPath(service()); }
  std::string Text() const {
    std::ifstream in(file());
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void Plant(const std::string& text) const {
    std::ofstream(file()) << text;
    ::chmod(file().c_str(), 0600);
  }

  SwitchBoard Board() {
    auto board = SwitchBoard::Open(service());
    EXPECT_TRUE(board.ok()) << board.error().message;
    return std::move(*board);
  }

  // What the region says of a resource's switch.
  static Switch Of(const Region& region, std::string_view resource) {
    const auto row = region.FindResource(resource);
    return row ? Switch::Unpack(region.resources[*row].by_hand.load())
               : Switch{};
  }

  // Sets a switch as `weir switch` would.
  void Set(std::string_view resource, const Switch& set, Instant now = kStart) {
    SwitchBoard board = Board();
    const auto error =
        board.Set({*board.region().FindResource(resource)}, set, now);
    EXPECT_FALSE(error) << error->message;
  }

  // A worker's first steps: it makes the rows.
  void Serve(SharedRegion& region) {
    const auto lease = ShardLease::Claim(*region);
    ASSERT_TRUE(lease.ok());
    ASSERT_TRUE(Guard::Make(std::make_shared<Policy>(policy_), *region,
                            lease->shard(), kStart)
                    .ok());
  }
};

TEST_F(SwitchBoardTest, IsReadByWorkersAtTheirNextDecision) {
  SharedRegion region = OpenOrDie();
  auto lease = ShardLease::Claim(*region);
  ASSERT_TRUE(lease.ok());
  auto guard = Guard::Make(std::make_shared<Policy>(policy_), *region,
                           lease->shard(), kStart);
  ASSERT_TRUE(guard.ok());
  EXPECT_TRUE((*guard)->Admit({.resource = 1}, kStart).permit);
  Set("pay", {.action = Action::kPause, .until = kStart + minutes(10)});
  const Admission refused = (*guard)->Admit({.resource = 1}, kStart);
  EXPECT_EQ(refused.decision.reason, Reason::kPaused);
  EXPECT_EQ(refused.decision.retry_after, minutes(10));
  Set("pay", {});
  EXPECT_TRUE((*guard)->Admit({.resource = 1}, kStart).permit);
}

TEST_F(SwitchBoardTest, OutlivesTheServiceAndTheSegment) {
  {
    SharedRegion region = OpenOrDie();
    Serve(region);
    Set("pay", {.action = Action::kPause, .until = kStart + minutes(10)});
    Set("search", {.action = Action::kDegrade, .level = 1});
  }
  {
    const SharedRegion again = OpenOrDie();
    EXPECT_FALSE(again.created());
    EXPECT_EQ(Of(*again, "pay").action, Action::kPause);
  }
  ASSERT_FALSE(RemoveSegment(service()));
  SharedRegion anew = OpenOrDie();
  EXPECT_TRUE(anew.created());
  EXPECT_EQ(anew.warning(), "");
  Serve(anew);
  EXPECT_EQ(Of(*anew, "pay"),
            (Switch{.action = Action::kPause, .until = kStart + minutes(10)}));
  EXPECT_EQ(Of(*anew, "search"),
            (Switch{.action = Action::kDegrade, .level = 1}));
  EXPECT_EQ(Of(*anew, "all"), Switch{});
}

TEST_F(SwitchBoardTest, WhatHasEndedIsNotTakenOver) {
  {
    SharedRegion region = OpenOrDie();
    Serve(region);
    Set("pay", {.action = Action::kPause, .until = kStart - seconds(1)},
        kStart - seconds(2));
  }
  ASSERT_FALSE(RemoveSegment(service()));
  const SharedRegion anew = OpenOrDie();
  EXPECT_EQ(Of(*anew, "pay"), Switch{});
}

TEST_F(SwitchBoardTest, TheLastOneThatGoesTakesTheFileWithIt) {
  SharedRegion region = OpenOrDie();
  Serve(region);
  Set("pay", kPaused);
  Set("search", kPaused);
  Set("pay", {});
  EXPECT_THAT(Text(), HasSubstr("search"));
  Set("search", {});
  EXPECT_NE(::access(file().c_str(), F_OK), 0);
}

TEST_F(SwitchBoardTest, OnlyItsUserMayReadIt) {
  SharedRegion region = OpenOrDie();
  Serve(region);
  const mode_t before = ::umask(0);
  Set("pay", kPaused);
  ::umask(before);
  struct stat info {};
  ASSERT_EQ(::stat(file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
}

// Goal: whatever is cut off or changed in the file, what is in force stays.
TEST_F(SwitchBoardTest, ATornFileChangesNothing) {
  SharedRegion region = OpenOrDie();
  Serve(region);
  Set("pay", {.action = Action::kPause, .until = kStart + minutes(1)});
  Set("search", {.action = Action::kDegrade, .level = 1});
  const std::string whole = Text();
  for (size_t size = 0; size < whole.size(); ++size) {
    ASSERT_FALSE(ParseSwitches(whole.substr(0, size))) << size;
  }
  for (const std::string& torn :
       {whole.substr(0, whole.size() / 2), std::string("pause"), whole + "x",
        std::string(100'000, 'x')}) {
    Plant(torn);
    const SharedRegion again = OpenOrDie();
    EXPECT_THAT(again.warning(), HasSubstr("no whole switches")) << torn.size();
    EXPECT_EQ(Of(*again, "pay").action, Action::kPause);
    EXPECT_EQ(Of(*again, "search").level, 1);
  }
  // The next change makes it whole again.
  Set("all", kPaused);
  const auto kept = ParseSwitches(Text());
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->size(), 3u);
}

TEST_F(SwitchBoardTest, AFileThatOthersMayWriteIsNotBelieved) {
  Plant(PrintSwitches({{"pay", kPaused}}));
  ::chmod(file().c_str(), 0666);
  const SharedRegion region = OpenOrDie();
  EXPECT_THAT(region.warning(), HasSubstr("open to other users"));
  EXPECT_EQ(Of(*region, "pay"), Switch{});
}

// Root starts the service, and anybody may make a file of that name.
TEST_F(SwitchBoardTest, AFileThatAnotherUserPlantedIsNotObeyed) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  Plant(PrintSwitches({{"pay", kPaused}}));
  ASSERT_EQ(::chown(file().c_str(), 65534, 65534), 0);
  const SharedRegion region = OpenOrDie();
  EXPECT_THAT(region.warning(),
              HasSubstr("belongs to another user (uid 65534"));
  EXPECT_EQ(Of(*region, "pay"), Switch{});
}

TEST_F(SwitchBoardTest, TextsReadBackAndNothingElseDoes) {
  const std::vector<NamedSwitch> all = {
      {"api/v1.x_y-z", {.action = Action::kPause, .until = Instant{}}},
      {"b", {.action = Action::kDegrade, .level = 15}},
      {std::string(47, 'c'),
       {.action = Action::kDegrade,
        .level = 0,
        .until = Instant(milliseconds(123'456'789))}}};
  EXPECT_EQ(ParseSwitches(PrintSwitches(all)), all);
  EXPECT_EQ(ParseSwitches(PrintSwitches({})), std::vector<NamedSwitch>{});
  for (const char* line : {"pause - ", "pause -1 a", "pause 1.5 a", "pause  a",
                           "degrade 16 - a", "degrade - a", "resume - a",
                           "pause - a b", "pause 9223372036854775807 a"}) {
    EXPECT_FALSE(
        ParseSwitches("weir-switches 1\n" + std::string(line) + "\nend 1\n"))
        << line;
  }
  EXPECT_FALSE(ParseSwitches("weir-switches 2\nend 0\n"));
}

// Goal: one who dies while he sets a switch leaves the old file or the new one
// and stops nobody.
// Method: he is stopped at each edge of each of his system calls, and killed.
TEST_F(SwitchBoardTest, OneKilledAtAnySystemCallLeavesTheOldOrTheNew) {
  SharedRegion region = OpenOrDie();
  Serve(region);
  Set("pay", kPaused);
  const std::string before = Text();
  const auto row = *region->FindResource("search");
  int old_ones = 0;
  int new_ones = 0;
  for (int stop = 1;; ++stop) {
    TracedChild child([] {},
                      [&] { (void)Board().Set({row}, kPaused, kStart); });
    for (int i = 0; i < stop && child.running(); ++i) child.StepSystemCall();
    if (!child.running()) break;
    child.Kill();
    const auto kept = ParseSwitches(Text());
    ASSERT_TRUE(kept) << "at stop " << stop;
    ++(kept->size() == 1 ? old_ones : new_ones);
    if (kept->size() == 1) {
      ASSERT_EQ(Of(*region, "search"), Switch{});
    }
    // Who starts then has what the file says, and the next change goes through.
    const SharedRegion next = OpenOrDie();
    ASSERT_EQ(next.warning(), "");
    ASSERT_EQ(Of(*next, "search").action,
              kept->size() == 1 ? Action::kNone : Action::kPause);
    Set("search", {});
    ASSERT_EQ(Text(), before);
  }
  EXPECT_GT(old_ones, 10);
  EXPECT_GE(new_ones, 1);
}

TEST_F(SwitchBoardTest, ManyWhoSetAtOnceLoseNothing) {
  SharedRegion region = OpenOrDie();
  Serve(region);
  const std::vector<std::string> names = {"all", "pay", "search"};
  std::vector<std::unique_ptr<Child>> children;
  for (const std::string& name : names) {
    children.push_back(std::make_unique<Child>([&](const Child::Meet& meet) {
      meet();
      for (uint8_t level = 0; level < 16; ++level) {
        Set(name, {.action = Action::kDegrade, .level = level});
      }
    }));
  }
  for (auto& child : children) ASSERT_TRUE(child->Await());
  for (auto& child : children) child->Release();
  for (auto& child : children) EXPECT_EQ(child->Join(), 0);
  const auto kept = ParseSwitches(Text());
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->size(), 3u);
  for (const auto& [name, set] : *kept) {
    EXPECT_EQ(set.level, 15) << name;
    EXPECT_EQ(Of(*region, name), set);
  }
}

TEST_F(SwitchBoardTest, OfAServiceThatNeverRanThereIsNone) {
  const auto board = SwitchBoard::Open(service());
  ASSERT_FALSE(board.ok());
  EXPECT_THAT(board.error().message, HasSubstr("no such segment"));
}

TEST_F(SwitchBoardTest, DrillsAreOneAtATimeAndNeverInAnOverload) {
  SharedRegion region = OpenOrDie();
  SwitchBoard board = Board();
  const Drill drill{.level = 1, .share = 7, .until = kStart + minutes(5)};
  region->flags.overloaded.store(1);
  auto refused = board.Begin(drill, kStart);
  ASSERT_TRUE(refused);
  EXPECT_THAT(refused->message, HasSubstr("overloaded"));
  region->flags.overloaded.store(0);
  EXPECT_FALSE(board.Begin(drill, kStart));
  refused = board.Begin(drill, kStart);
  ASSERT_TRUE(refused);
  EXPECT_THAT(refused->message, HasSubstr("a drill is running"));
  EXPECT_TRUE(board.End(drill));
  EXPECT_FALSE(board.End(drill));
  EXPECT_FALSE(board.Begin(drill, kStart));
  // One whose time has come is in nobody's way.
  EXPECT_FALSE(board.Begin(drill, kStart + minutes(5)));
}

}  // namespace
}  // namespace weir::shm
