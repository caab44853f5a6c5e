#include "weir/config/policy_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace weir::config {
namespace {

namespace fs = std::filesystem;
using Change = PolicyFile::Change;
using testing::HasSubstr;

std::string WithFloor(int floor) {
  return "service = \"x\"\n[limit]\nfloor = " + std::to_string(floor) +
         "\n[resource.api]\n";
}

class PolicyFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "weir-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { fs::remove_all(dir_); }

  // Writes in place; each time with another modification time, however quick
  // the test is.
  void Write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    const timespec times[2] = {{++clock_, 0}, {clock_, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  void Replace(const fs::path& path, const std::string& text) {
    Write(dir_ / "new", text);
    fs::rename(dir_ / "new", path);
  }

  fs::path File() const { return dir_ / "shop.toml"; }

  fs::path dir_;
  time_t clock_ = 1'000'000;
};

TEST_F(PolicyFileTest, AReplacedFileIsTakenOnceItIsSeenTwice) {
  Write(File(), WithFloor(1));
  PolicyFile file(File());
  ASSERT_EQ(file.Reload(), Change::kPolicy) << file.report();
  EXPECT_EQ(file.Poll(), Change::kNone);

  Replace(File(), WithFloor(2));

  EXPECT_EQ(file.Poll(), Change::kNone);
  EXPECT_EQ(file.policy()->limit_floor, 1);
  EXPECT_EQ(file.Poll(), Change::kPolicy);
  EXPECT_EQ(file.policy()->limit_floor, 2);
  EXPECT_EQ(file.Poll(), Change::kNone);
}

TEST_F(PolicyFileTest, AWrittenFileOfTheSameSizeIsTaken) {
  Write(File(), WithFloor(1));
  PolicyFile file(File());
  ASSERT_EQ(file.Reload(), Change::kPolicy);
  Write(File(), WithFloor(2));
  file.Poll();
  EXPECT_EQ(file.Poll(), Change::kPolicy);
  EXPECT_EQ(file.policy()->limit_floor, 2);
}

TEST_F(PolicyFileTest, ATornWriteIsNeitherTakenNorReported) {
  Write(File(), WithFloor(1));
  PolicyFile file(File());
  ASSERT_EQ(file.Reload(), Change::kPolicy);
  const std::string text = WithFloor(2);
  for (size_t size = 0; size <= text.size(); ++size) {
    Write(File(), text.substr(0, size));
    ASSERT_EQ(file.Poll(), Change::kNone) << size;
    ASSERT_EQ(file.policy()->limit_floor, 1);
  }
  EXPECT_EQ(file.Poll(), Change::kPolicy);
  EXPECT_EQ(file.policy()->limit_floor, 2);
}

TEST_F(PolicyFileTest, ComplaintsAreReportedOnceAndTheLastGoodPolicyStays) {
  Write(File(), WithFloor(3));
  PolicyFile file(File());
  ASSERT_EQ(file.Reload(), Change::kPolicy);

  Write(File(), WithFloor(0));
  file.Poll();
  ASSERT_EQ(file.Poll(), Change::kComplaints);
  EXPECT_THAT(file.report(), HasSubstr("`limit.floor` is 0, below 1"));
  EXPECT_EQ(file.policy()->limit_floor, 3);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(file.Poll(), Change::kNone);

  Write(File(), WithFloor(0));  // Touched, and as wrong as before.
  file.Poll();
  EXPECT_EQ(file.Poll(), Change::kNone);

  Write(File(), WithFloor(-1));
  file.Poll();
  EXPECT_EQ(file.Poll(), Change::kComplaints);
  EXPECT_EQ(file.policy()->limit_floor, 3);

  Write(File(), WithFloor(3));  // Mended, to what is in force.
  file.Poll();
  EXPECT_EQ(file.Poll(), Change::kPolicy);
  EXPECT_EQ(file.report(), "");
}

TEST_F(PolicyFileTest, AFileThatStaysEmptyIsReported) {
  Write(File(), WithFloor(1));
  PolicyFile file(File());
  ASSERT_EQ(file.Reload(), Change::kPolicy);
  Write(File(), "");
  EXPECT_EQ(file.Poll(), Change::kNone);
  EXPECT_EQ(file.Poll(), Change::kComplaints);
  EXPECT_THAT(file.report(), HasSubstr("`service` is missing"));
  EXPECT_EQ(file.policy()->limit_floor, 1);
}

TEST_F(PolicyFileTest, AFileThatGoesAndComesBackIsFollowed) {
  Write(File(), WithFloor(1));
  PolicyFile file(File());
  ASSERT_EQ(file.Reload(), Change::kPolicy);
  fs::remove(File());
  EXPECT_EQ(file.Poll(), Change::kNone);
  Write(File(), WithFloor(2));  // An editor that removes, then writes.
  EXPECT_EQ(file.Poll(), Change::kNone);
  EXPECT_EQ(file.Poll(), Change::kPolicy);

  fs::remove(File());
  file.Poll();
  EXPECT_EQ(file.Poll(), Change::kComplaints);
  EXPECT_THAT(file.report(), HasSubstr("No such file"));
  EXPECT_EQ(file.policy()->limit_floor, 2);
}

// How a mounted ConfigMap changes: shop.toml -> ..data/shop.toml, where ..data
// is a link to a directory that is swapped by one rename.
TEST_F(PolicyFileTest, ASwappedLinkToADirectoryIsFollowed) {
  for (const int floor : {1, 2}) {
    const fs::path version = dir_ / ("..v" + std::to_string(floor));
    fs::create_directory(version);
    Write(version / "shop.toml", WithFloor(floor));
  }
  fs::create_directory_symlink("..v1", dir_ / "..data");
  fs::create_symlink("..data/shop.toml", File());
  PolicyFile file(File());
  ASSERT_EQ(file.Reload(), Change::kPolicy) << file.report();
  EXPECT_EQ(file.policy()->limit_floor, 1);

  fs::create_directory_symlink("..v2", dir_ / "..data_tmp");
  fs::rename(dir_ / "..data_tmp", dir_ / "..data");

  file.Poll();
  EXPECT_EQ(file.Poll(), Change::kPolicy);
  EXPECT_EQ(file.policy()->limit_floor, 2);
}

TEST_F(PolicyFileTest, ATouchedFileIsNoNewPolicy) {
  Write(File(), WithFloor(1));
  PolicyFile file(File());
  ASSERT_EQ(file.Reload(), Change::kPolicy);
  Write(File(), "# a comment\n" + WithFloor(1));
  file.Poll();
  EXPECT_EQ(file.Poll(), Change::kNone);
}

TEST_F(PolicyFileTest, ReloadAnswersEachTime) {
  PolicyFile file(File());
  EXPECT_EQ(file.Reload(), Change::kComplaints);
  EXPECT_EQ(file.Reload(), Change::kComplaints);
  EXPECT_EQ(file.policy(), nullptr);
  Write(File(), WithFloor(1));
  EXPECT_EQ(file.Reload(), Change::kPolicy);
  EXPECT_EQ(file.Reload(), Change::kPolicy);
  EXPECT_EQ(file.Poll(), Change::kNone);
}

TEST_F(PolicyFileTest, WhatCannotBeReadSaysWhy) {
  PolicyFile directory(dir_);
  EXPECT_EQ(directory.Reload(), Change::kComplaints);
  EXPECT_THAT(directory.report(), HasSubstr("it is a directory"));

  ASSERT_EQ(mkfifo((dir_ / "fifo").c_str(), 0600), 0);
  PolicyFile fifo(dir_ / "fifo");
  EXPECT_EQ(fifo.Reload(), Change::kComplaints);
  EXPECT_THAT(fifo.report(), HasSubstr("no regular file"));

  if (geteuid() == 0) return;  // Root may read everything.
  Write(File(), WithFloor(1));
  fs::permissions(File(), fs::perms::none);
  PolicyFile secret(File());
  EXPECT_EQ(secret.Reload(), Change::kComplaints);
  EXPECT_THAT(secret.report(), HasSubstr("Permission denied"));
}

}  // namespace
}  // namespace weir::config
