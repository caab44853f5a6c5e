#include "weir/shm/segment.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "process.h"
#include "testing.h"
#include "weir/shm/lease.h"
#include "weir/shm/switch_board.h"
#include "weir/snapshot.h"

namespace weir::shm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uid_t kOtherUser = 65534;

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Plant(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary).write(content.data(), content.size());
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
}

std::set<std::string> Directory() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    names.insert(entry.path().filename());
  }
  return names;
}

TEST_F(SegmentTest, FirstMakesAndSecondAttachesToTheSameMemory) {
  const SharedRegion first = OpenOrDie();
  const SharedRegion second = OpenOrDie();

  EXPECT_TRUE(first.created());
  EXPECT_FALSE(second.created());
  EXPECT_NE(first.get(), second.get());
  first->flags.level.store(77);
  EXPECT_EQ(second->flags.level.load(), 77);
  EXPECT_EQ(second->service(), service());
}

TEST_F(SegmentTest, IsOnlyForItsUserWhateverTheUmask) {
  for (const mode_t mask : {0000U, 0777U}) {
    const mode_t before = ::umask(mask);
    const auto region = SharedRegion::Open(policy_, kStart);
    ::umask(before);
    ASSERT_TRUE(region.ok()) << region.error().message;
    struct stat file {};
    ASSERT_EQ(::stat(path().c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 07777U, 0600U) << "umask " << mask;
    EXPECT_GE(file.st_blocks * 512, static_cast<off_t>(sizeof(Region)))
        << "pages are missing that a full tmpfs could not give later";
    ::unlink(path().c_str());
  }
}

TEST_F(SegmentTest, OutlivesItsProcesses) {
  { OpenOrDie()->flags.level.store(5); }

  const SharedRegion region = OpenOrDie();

  EXPECT_FALSE(region.created());
  EXPECT_EQ(region->flags.level.load(), 5);
}

TEST_F(SegmentTest, OfManyMakersAtOnceOneMakesAndAllShare) {
  constexpr int kMakers = 8;
  std::deque<Child> makers;
  for (int i = 0; i < kMakers; ++i) {
    makers.emplace_back([&](const Child::Meet& meet) {
      meet();
      const SharedRegion region = OpenOrDie();
      region->flags.level.fetch_add(region.created() ? 1000 : 1);
      meet();
    });
  }
  for (Child& maker : makers) ASSERT_TRUE(maker.Await());
  for (Child& maker : makers) maker.Release();
  for (Child& maker : makers) ASSERT_TRUE(maker.Await());

  EXPECT_EQ(OpenOrDie()->flags.level.load(), 1000 + kMakers - 1);
}

// Goal: a maker may die anywhere and neither leaves a trace nor a half-made
// region, nor stops the next one.
// Method: it is stopped at each edge of each of its system calls in turn, and
// killed there; between two of them nothing can be seen from outside.
TEST_F(SegmentTest, MakerKilledAtAnySystemCallLeavesNothingOrAll) {
  const std::set<std::string> before = Directory();
  int left_nothing = 0;
  int left_all = 0;
  for (int stop = 1;; ++stop) {
    TracedChild maker([] {},
                      [&] { (void)SharedRegion::Open(policy_, kStart); });
    for (int i = 0; i < stop && maker.running(); ++i) maker.StepSystemCall();
    if (!maker.running()) break;
    maker.Kill();

    const bool there = ::access(path().c_str(), F_OK) == 0;
    ++(there ? left_all : left_nothing);
    if (!there) {
      ASSERT_EQ(Directory(), before) << "at stop " << stop;
    }
    {
      const SharedRegion next = OpenOrDie();
      ASSERT_EQ(next.created(), !there) << "at stop " << stop;
    }
    ASSERT_FALSE(RemoveSegment(service())) << "at stop " << stop;
  }
  EXPECT_GT(left_nothing, 10);
  EXPECT_GE(left_all, 1);
}

// Uses a file as a process of another version would.
class Holder {
 public:
  explicit Holder(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    EXPECT_EQ(::flock(fd_, LOCK_SH), 0);
  }
  ~Holder() { ::close(fd_); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

 private:
  int fd_;
};

// What is refused, and by what words.
class RefusedSegmentTest : public SegmentTest {
 protected:
  // A good region's bytes, to be spoiled.
  std::string GoodContent() {
    { OpenOrDie(); }
    std::string content = Content(path());
    ::unlink(path().c_str());
    return content;
  }

  template <typename T>
  static void Overwrite(std::string& content, size_t offset, T value) {
    std::memcpy(content.data() + offset, &value, sizeof value);
  }

  // Refused for workers and observers alike, and left as it was.
  void ExpectRefused(const std::string& what) {
    const std::string content = Content(path());
    const auto is_our_message =
        AllOf(HasSubstr(path() + ": error: "), HasSubstr(what),
              HasSubstr("\n  why: "), HasSubstr("\n  fix: "));
    EXPECT_THAT(Refusal(), is_our_message);
    const auto observed = ObservedRegion::Open(service());
    ASSERT_FALSE(observed.ok());
    EXPECT_THAT(observed.error().message, is_our_message);
    EXPECT_EQ(Content(path()), content);
  }
};

TEST_F(RefusedSegmentTest, AnotherVersionThatIsUsed) {
  std::string content = GoodContent();
  Overwrite(content, offsetof(Region::Header, version), Region::kVersion + 1);
  Plant(path(), content);
  const Holder holder(path());
  ExpectRefused("made by another version of weir");
  EXPECT_THAT(Refusal(), HasSubstr("weir segment remove " + service()));
  EXPECT_FALSE(SharedRegion::Foresee(policy_).ok());
}

TEST_F(RefusedSegmentTest, AnotherVersionOfAnotherSizeThatIsUsed) {
  std::string content = GoodContent().substr(0, 4096);
  Overwrite(content, offsetof(Region::Header, version), Region::kVersion + 1);
  Overwrite(content, offsetof(Region::Header, size), uint32_t{4096});
  Plant(path(), content);
  const Holder holder(path());
  ExpectRefused("made by another version of weir");
}

TEST_F(RefusedSegmentTest, AnotherLayoutOfTheSameVersionThatIsUsed) {
  std::string content = GoodContent();
  Overwrite(content, offsetof(Region::Header, layout), uint64_t{1});
  Plant(path(), content);
  const Holder holder(path());
  ExpectRefused("of another layout or build");
}

// A package that was upgraded while the service was down.
TEST_F(RefusedSegmentTest, AnotherLayoutThatNobodyUsesIsReplacedAndThatIsSaid) {
  std::string content = GoodContent().substr(0, 8192);
  Overwrite(content, offsetof(Region::Header, version), Region::kVersion - 1);
  Overwrite(content, offsetof(Region::Header, size), uint32_t{8192});
  Plant(path(), content);
  const auto foreseen = SharedRegion::Foresee(policy_);
  ASSERT_TRUE(foreseen.ok());
  EXPECT_THAT(*foreseen, AllOf(HasSubstr("will be replaced"),
                               HasSubstr("made by another version")));
  EXPECT_EQ(Content(path()), content) << "asking changed it";

  const SharedRegion region = OpenOrDie();

  EXPECT_TRUE(region.created());
  EXPECT_THAT(region.replaced(), HasSubstr("made by another version of weir"));
  EXPECT_EQ(OpenOrDie().replaced(), "");
  EXPECT_EQ(*SharedRegion::Foresee(policy_), "");
}

TEST_F(RefusedSegmentTest, NoRegionAtAll) {
  for (const std::string_view content :
       {"", "x", "not one of ours, but long"}) {
    Plant(path(), content);
    ExpectRefused("holds no region of weir");
  }
  Plant(path(), std::string(sizeof(Region), '\0'));
  ExpectRefused("holds no region of weir");
}

TEST_F(RefusedSegmentTest, Torn) {
  const std::string good = GoodContent();
  Plant(path(), good.substr(0, sizeof(Region) - 1));
  ExpectRefused("torn");
  // The right length, but a hole: its pages may not be there to be had.
  Plant(path(), good.substr(0, 4096));
  ASSERT_EQ(::truncate(path().c_str(), sizeof(Region)), 0);
  ExpectRefused("torn");
}

TEST_F(RefusedSegmentTest, ModeThatLetsOthersWrite) {
  for (const mode_t mode : {0620U, 0664U, 0660U, 0602U, 0601U}) {
    { OpenOrDie(); }
    ASSERT_EQ(::chmod(path().c_str(), mode), 0);
    ExpectRefused("open to other users");
    ::unlink(path().c_str());
  }
}

TEST_F(RefusedSegmentTest, SomethingElseOfThatName) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_THAT(Refusal(), HasSubstr("not a segment of shared memory"));
  ::unlink(path().c_str());
  ASSERT_EQ(::symlink("/etc/passwd", path().c_str()), 0);
  EXPECT_THAT(Refusal(), HasSubstr("not a segment of shared memory"));
  ::unlink(path().c_str());
  ASSERT_EQ(::mkdir(path().c_str(), 0700), 0);
  EXPECT_THAT(Refusal(), HasSubstr("not a segment of shared memory"));
  ASSERT_EQ(::rmdir(path().c_str()), 0);
}

TEST_F(RefusedSegmentTest, AnotherUsersSegmentIsNeverWorkedOn) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  { OpenOrDie(); }
  ASSERT_EQ(::chown(path().c_str(), kOtherUser, kOtherUser), 0);

  EXPECT_THAT(Refusal(), AllOf(HasSubstr("belongs to another user (uid 65534"),
                               HasSubstr("\n  fix: ")));
  // Root may look, though.
  EXPECT_TRUE(ObservedRegion::Open(service()).ok());
}

TEST_F(RefusedSegmentTest, AnotherUserMayNotEvenLook) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const SharedRegion region = OpenOrDie();
  Child other([&](const Child::Meet&) {
    ASSERT_EQ(::setuid(kOtherUser), 0);
    const auto observed = ObservedRegion::Open(service());
    ASSERT_FALSE(observed.ok());
    EXPECT_THAT(observed.error().message,
                HasSubstr("belongs to another user (uid 0, this is uid 65534"));
    EXPECT_THAT(Refusal(), HasSubstr("belongs to another user"));
    EXPECT_TRUE(RemoveSegment(service()));
    EXPECT_TRUE(RemoveSegment(service(), true));
    const auto segments = ListSegments();
    for (const SegmentInfo& info : *segments) {
      EXPECT_NE(info.service, service());
    }
  });
  EXPECT_EQ(other.Join(), 0);
  EXPECT_FALSE(OpenOrDie().created());
}

TEST_F(RefusedSegmentTest, NoRoomIsSaidAtOnceAndLeavesNothing) {
  Child in_small_world([&](const Child::Meet&) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64k") != 0) {
      ::_exit(77);
    }
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("/dev/shm has no room"),
                                 HasSubstr("\n  fix: ")));
    EXPECT_TRUE(Directory().empty());
  });
  const int status = in_small_world.Join();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "needs the right to mount";
  }
  EXPECT_EQ(status, 0);
}

TEST_F(RefusedSegmentTest, NameThatLeadsElsewhere) {
  for (const std::string_view name :
       {"", "..", "a/b", "../etc/passwd", "UPPER", "a b"}) {
    EXPECT_FALSE(ObservedRegion::Open(name).ok()) << name;
    EXPECT_TRUE(RemoveSegment(name, true)) << name;
  }
  policy_.service = "a/b";
  EXPECT_FALSE(SharedRegion::Open(policy_, kStart).ok());
}

TEST_F(SegmentTest, MissingSegmentIsSaidToObservers) {
  const auto observed = ObservedRegion::Open(service());
  ASSERT_FALSE(observed.ok());
  EXPECT_THAT(observed.error().message, HasSubstr("there is no such segment"));
  EXPECT_NE(::access(path().c_str(), F_OK), 0) << "an observer made one";
}

TEST_F(SegmentTest, ObserverThatWritesChangesNothing) {
  const SharedRegion region = OpenOrDie();
  region->flags.level.store(1);
  auto observed = ObservedRegion::Open(service());
  ASSERT_TRUE(observed.ok());
  const_cast<Region*>(observed->get())->flags.level.store(2);
  EXPECT_EQ(region->flags.level.load(), 1);
}

TEST_F(SegmentTest, ObserverSeesWhatThereWasAtItsLastReading) {
  const SharedRegion region = OpenOrDie();
  auto observed = ObservedRegion::Open(service());
  ASSERT_TRUE(observed.ok());
  region->flags.level.store(3);
  EXPECT_EQ((*observed)->flags.level.load(), 0);
  EXPECT_FALSE(observed->Refresh());
  EXPECT_EQ((*observed)->flags.level.load(), 3);
}

// Pages that are gone would end a reader who has them mapped.
TEST_F(SegmentTest, AnObserversFileMayBeCutAndHeIsToldSo) {
  { OpenOrDie()->flags.level.store(3); }
  auto observed = ObservedRegion::Open(service());
  ASSERT_TRUE(observed.ok());
  ASSERT_EQ(::truncate(path().c_str(), 8192), 0);
  const auto wrong = observed->Refresh();
  ASSERT_TRUE(wrong);
  EXPECT_THAT(wrong->message, HasSubstr("it was cut short"));
  EXPECT_EQ((*observed)->flags.level.load(), 3) << "the last good reading";
}

// A planted segment must not lead `weir switch`, run by root, anywhere.
TEST_F(RefusedSegmentTest, HeaderThatNamesAnotherService) {
  std::string content = GoodContent();
  for (const std::string_view name : {"../../x", "other", "", "weir-test"}) {
    std::memset(content.data() + offsetof(Region::Header, service), 0,
                kMaxNameBytes + 1);
    name.copy(content.data() + offsetof(Region::Header, service), name.size());
    Plant(path(), content);
    ExpectRefused("holds the region of another service");
    ::unlink(path().c_str());
  }
}

TEST_F(SegmentTest, NamesOfASegmentAreShownWithoutWhatATerminalObeys) {
  const SharedRegion region = OpenOrDie();
  const auto row = *region->ResourceRow("api");
  region->resources[row].name[1].store('\x1b');
  region->resources[row].name[3].store('\n');
  EXPECT_EQ(Read(*region).resources[row].name, "a?i?");
}

TEST_F(SegmentTest, AGroupMayLookIfItIsLetAndNobodyMayWriteMore) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  constexpr gid_t kGroup = 65533;
  auto opened =
      SharedRegion::Open(policy_, kStart, {.mode = 0640, .group = kGroup});
  ASSERT_TRUE(opened.ok());
  const auto as = [&](gid_t group, const std::function<void()>& body) {
    Child child([&](const Child::Meet&) {
      ASSERT_EQ(::setgid(group), 0);
      ASSERT_EQ(::setgroups(0, nullptr), 0);
      ASSERT_EQ(::setuid(kOtherUser), 0);
      body();
    });
    EXPECT_EQ(child.Join(), 0);
  };
  as(kGroup, [&] {
    EXPECT_TRUE(ObservedRegion::Open(service()).ok());
    EXPECT_FALSE(SwitchBoard::Open(service()).ok());
    EXPECT_TRUE(RemoveSegment(service()));
    const auto segments = ListSegments();
    EXPECT_TRUE(std::any_of(
        segments->begin(), segments->end(),
        [&](const SegmentInfo& info) { return info.service == service(); }));
  });
  as(kOtherUser, [&] { EXPECT_FALSE(ObservedRegion::Open(service()).ok()); });
  EXPECT_FALSE(
      SharedRegion::Open(policy_, kStart, {.mode = 0660, .group = kGroup})
          .ok());
  // Whose policy no longer says so takes it back.
  OpenOrDie();
  as(kGroup, [&] { EXPECT_FALSE(ObservedRegion::Open(service()).ok()); });
}

TEST_F(SegmentTest, EachRegionHasASecretOfItsOwn) {
  const SharedRegion first = OpenOrDie();
  ASSERT_FALSE(RemoveSegment(service(), true));
  const SharedRegion second = OpenOrDie();
  EXPECT_NE(first->header.secret, second->header.secret);
  EXPECT_NE(first->Keyed(1), second->Keyed(1));
  EXPECT_EQ(second->Keyed(1), OpenOrDie()->Keyed(1));
  EXPECT_EQ(first->Keyed(0), 0U);
}

TEST_F(SegmentTest, ObserverTakesNoLockAndHoldsNobodyUp) {
  { OpenOrDie(); }
  const auto observed = ObservedRegion::Open(service());
  ASSERT_TRUE(observed.ok());
  EXPECT_FALSE(observed->removed());

  EXPECT_FALSE(RemoveSegment(service()));

  EXPECT_TRUE(observed->removed());
  EXPECT_TRUE(OpenOrDie().created());
  EXPECT_TRUE(observed->removed())
      << "of the old one, though a new one is there";
}

TEST_F(SegmentTest, IsNotRemovedWhileAnyProcessThatForkedWithItLives) {
  auto opener = std::make_unique<Child>([&](const Child::Meet& meet) {
    const SharedRegion region = OpenOrDie();
    Child worker([&](const Child::Meet& meet_opener) { meet_opener(); });
    ASSERT_TRUE(worker.Await());
    meet();
    worker.Kill();
    meet();
  });
  ASSERT_TRUE(opener->Await());
  const auto refused = RemoveSegment(service());
  ASSERT_TRUE(refused);
  EXPECT_THAT(refused->message, HasSubstr("still used"));
  opener->Release();
  ASSERT_TRUE(opener->Await());
  EXPECT_TRUE(RemoveSegment(service())) << "the opener itself is still there";
  opener->Kill();
  EXPECT_FALSE(RemoveSegment(service()));
  EXPECT_TRUE(RemoveSegment(service())) << "twice";
}

TEST_F(SegmentTest, ForcedRemovalLeavesTheRunningOnesTheirs) {
  const SharedRegion running = OpenOrDie();
  ASSERT_FALSE(RemoveSegment(service(), true));
  const SharedRegion next = OpenOrDie();
  EXPECT_TRUE(next.created());
  running->flags.level.store(3);
  EXPECT_EQ(next->flags.level.load(), 0);
  EXPECT_EQ(running->flags.level.load(), 3);
}

TEST_F(SegmentTest, AnotherContainersSegmentIsRefusedWhileItIsUsed) {
  const SharedRegion theirs = OpenOrDie();
  theirs->header.namespaces.store(Namespaces() + 1);
  EXPECT_THAT(Refusal(), HasSubstr("another pid or time namespace"));
  EXPECT_TRUE(ObservedRegion::Open(service()).ok());
  EXPECT_FALSE(ShardLease::Claim(*theirs).ok());
}

TEST_F(SegmentTest, WhatAContainerLeftBehindIsReplaced) {
  {
    const SharedRegion theirs = OpenOrDie();
    ASSERT_TRUE(theirs->ClaimShard({.pid = 1, .start = 1}));
    theirs->header.namespaces.store(Namespaces() + 1);
  }
  const SharedRegion ours = OpenOrDie();
  EXPECT_TRUE(ours.created());
  EXPECT_EQ(ours->Owner(0).pid, 0);
}

// Goal: of many that start at once over what a container left behind one makes
// the new segment, all share it and none fails.
TEST_F(SegmentTest, ManyThatReplaceAnOldSegmentAtOnceShareTheNewOne) {
  constexpr int kMakers = 6;
  for (int round = 0; round < 10; ++round) {
    ::unlink(path().c_str());
    { OpenOrDie()->header.namespaces.store(Namespaces() + 1); }
    std::deque<Child> makers;
    for (int i = 0; i < kMakers; ++i) {
      makers.emplace_back([&](const Child::Meet& meet) {
        meet();
        const SharedRegion region = OpenOrDie();
        region->flags.level.fetch_add(1);
        meet();
      });
    }
    for (Child& maker : makers) ASSERT_TRUE(maker.Await());
    for (Child& maker : makers) maker.Release();
    for (Child& maker : makers) ASSERT_TRUE(maker.Await()) << round;
    ASSERT_EQ(OpenOrDie()->flags.level.load(), kMakers) << "round " << round;
  }
}

// Goal: the same, at each point where another could have been between.
// Method: one is stopped at each edge of each of its system calls in turn;
// then another starts, and then the first goes on.
TEST_F(SegmentTest, OneWhoReplacesNeverTakesAwayWhatAnotherMadeMeanwhile) {
  for (int stop = 1;; ++stop) {
    ::unlink(path().c_str());
    { OpenOrDie()->header.namespaces.store(Namespaces() + 1); }
    std::optional<SharedRegion> slow;
    TracedChild child([] {},
                      [&] {
                        slow.emplace(OpenOrDie());
                        slow->get()->flags.level.fetch_add(1);
                        ::raise(SIGSTOP);
                      });
    for (int i = 0; i < stop && child.running(); ++i) child.StepSystemCall();
    if (!child.running()) break;
    // Where the first one holds the lock the other one waits for it; then the
    // first one must go on, so nothing is shown by it.
    const int fd = ::open(path().c_str(), O_RDONLY | O_CLOEXEC);
    const bool locked = fd >= 0 && ::flock(fd, LOCK_SH | LOCK_NB) != 0;
    ::close(fd);
    if (locked) continue;
    const SharedRegion other = OpenOrDie();
    for (int i = 0; i < 1000 && other->flags.level.load() == 0; ++i) {
      if (!child.StepSystemCall()) break;
    }
    EXPECT_EQ(other->flags.level.load(), 1) << "two regions, at stop " << stop;
    if (stop > 400) break;
  }
}

// Somebody asks for a moment whether it is used, as `weir segment remove` does.
TEST_F(SegmentTest, AMomentOfAnothersLockFailsNoStartAndNoRemoval) {
  for (const bool removal : {false, true}) {
    { OpenOrDie()->header.namespaces.store(Namespaces() + 1); }
    const int fd = ::open(path().c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(::flock(fd, LOCK_EX), 0);
    Child starts([&](const Child::Meet& meet) {
      ::close(fd);
      meet();
      if (removal) {
        EXPECT_FALSE(RemoveSegment(service()));
      } else {
        EXPECT_TRUE(OpenOrDie().created());
      }
    });
    ASSERT_TRUE(starts.Await());
    starts.Release();
    ::poll(nullptr, 0, 50);  // It tries meanwhile, and more than once.
    ::close(fd);
    EXPECT_EQ(starts.Join(), 0);
    ::unlink(path().c_str());
  }
}

TEST_F(SegmentTest, ListShowsUseAndTrouble) {
  const auto find = [&] {
    const auto segments = ListSegments();
    EXPECT_TRUE(segments.ok());
    for (const SegmentInfo& info : *segments) {
      if (info.service == service()) return info;
    }
    return SegmentInfo{};
  };
  EXPECT_EQ(find().service, "");
  {
    const SharedRegion region = OpenOrDie();
    EXPECT_EQ(find().workers, 0);
    const auto lease = ShardLease::Claim(*region);
    ASSERT_TRUE(region->ClaimShard({.pid = ::getpid(), .start = 1}));
    EXPECT_EQ(find().workers, 1) << "the second is not this process";
    EXPECT_EQ(find().problem, "");
    EXPECT_EQ(find().size, sizeof(Region));
    EXPECT_EQ(find().owner, ::geteuid());
  }
  ::unlink(path().c_str());
  Plant(path(), "junk");
  EXPECT_EQ(find().problem, "holds no region of weir");
}

}  // namespace
}  // namespace weir::shm
