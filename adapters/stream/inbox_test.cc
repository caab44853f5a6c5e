#include "inbox.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <string>
#include <thread>

namespace weir::stream {
namespace {

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Puts all of `bytes` in; there must be room.
bool Write(Inbox& inbox, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto room = inbox.Room();
    const size_t count = std::min(room.size(), bytes.size());
    EXPECT_GT(count, 0u);
    std::memcpy(room.data(), bytes.data(), count);
    if (!inbox.Wrote(count)) return false;
    bytes = bytes.subspan(count);
  }
  return true;
}

TEST(InboxTest, FramesComeOutAsTheyWentIn) {
  Inbox inbox(1024, 512);
  std::vector<std::byte> out;
  AppendHello(out, 0xfedcba98);
  AppendMessage(out, Bytes("one"));
  AppendStamped(out, 7, Bytes("two"));
  AppendMessage(out, {});
  ASSERT_TRUE(Write(inbox, out));

  Inbox::Frame frame;
  ASSERT_TRUE(inbox.Next(frame));
  EXPECT_EQ(frame.kind, Kind::kHello);
  EXPECT_EQ(frame.stamp, 0xfedcba98u);
  EXPECT_EQ(frame.frame_bytes, 9u);
  ASSERT_TRUE(inbox.Next(frame));
  EXPECT_EQ(frame.kind, Kind::kMessage);
  EXPECT_EQ(Text(frame.payload), "one");
  ASSERT_TRUE(inbox.Next(frame));
  EXPECT_EQ(frame.kind, Kind::kStamped);
  EXPECT_EQ(frame.stamp, 7u);
  EXPECT_EQ(Text(frame.payload), "two");
  ASSERT_TRUE(inbox.Next(frame));
  EXPECT_TRUE(frame.payload.empty());
  EXPECT_FALSE(inbox.Next(frame));
  EXPECT_EQ(inbox.arrived_messages(), 3u);
  EXPECT_EQ(inbox.arrived_bytes(), out.size());
}

TEST(InboxTest, SkipsToTheNextStamp) {
  Inbox inbox(1024, 512);
  std::vector<std::byte> out;
  for (int i = 0; i < 10; ++i) AppendMessage(out, Bytes("stale"));
  const size_t slice = out.size();
  AppendHello(out, 5);
  AppendMessage(out, Bytes("fresh"));
  ASSERT_TRUE(Write(inbox, out));

  const Inbox::Skipped skipped = inbox.SkipMessages();
  EXPECT_EQ(skipped.messages, 10u);
  EXPECT_EQ(skipped.bytes, slice);
  Inbox::Frame frame;
  ASSERT_TRUE(inbox.Next(frame));
  EXPECT_EQ(frame.stamp, 5u);
}

TEST(InboxTest, AFrameIsSeenOnlyWhenItIsWhole) {
  Inbox inbox(64, 32);
  std::vector<std::byte> out;
  AppendMessage(out, Bytes("slow"));
  Inbox::Frame frame;
  for (const std::byte& byte : out) {
    ASSERT_FALSE(inbox.Next(frame));
    ASSERT_EQ(inbox.SkipMessages().messages, 0u);
    ASSERT_EQ(inbox.arrived_messages(), 0u);
    ASSERT_TRUE(Write(inbox, {&byte, 1}));
  }
  ASSERT_TRUE(inbox.Next(frame));
  EXPECT_EQ(Text(frame.payload), "slow");
}

TEST(InboxTest, WhatIsNoFrameEndsTheStream) {
  const std::vector<std::vector<int>> kBad = {
      {0, 0, 0, 0, 0},   // No kind.
      {0, 0, 0, 1, 3},   // Unknown kind.
      {0, 0, 0, 1, 1},   // A Hello without a stamp.
      {0, 0, 0, 6, 1},   // A Hello with a payload.
      {0, 0, 0, 4, 2},   // A stamped one with half a stamp.
      {0, 0, 0, 29, 0},  // 33 bytes, one too many.
      {255, 255, 255, 255, 0},
  };
  for (const auto& bad : kBad) {
    Inbox inbox(64, 32);
    std::vector<std::byte> out;
    AppendMessage(out, Bytes("good"));
    const size_t good = out.size();
    for (const int byte : bad) out.push_back(static_cast<std::byte>(byte));
    EXPECT_FALSE(Write(inbox, out)) << bad[3] << ' ' << bad[4];
    EXPECT_EQ(inbox.arrived_bytes(), good);
    Inbox::Frame frame;
    ASSERT_TRUE(inbox.Next(frame));
    EXPECT_FALSE(inbox.Next(frame));
  }
}

TEST(InboxTest, ABoundedBufferPausesItsWriter) {
  Inbox inbox(64, 32);
  std::vector<std::byte> out;
  for (int i = 0; i < 8; ++i) AppendMessage(out, Bytes("abc"));  // 8 bytes.
  ASSERT_TRUE(Write(inbox, out));
  EXPECT_TRUE(inbox.Room().empty());
  EXPECT_FALSE(inbox.Pause());
  Inbox::Frame frame;
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(inbox.Next(frame));
    // A quarter is 16 bytes: two frames left.
    EXPECT_EQ(inbox.Release(), i == 5) << i;
  }
  EXPECT_EQ(inbox.Room().size(), 64u);
}

// Goal: whatever sizes frames and reads have, what goes in comes out, at the
// smallest ring that is allowed, with a reader in a thread of its own.
TEST(InboxTest, NothingIsLostBetweenTwoThreads) {
  constexpr int kFrames = 3000;
  Inbox inbox(128, 64);
  std::atomic<bool> go{true};
  std::thread reader([&] {
    Inbox::Frame frame;
    for (int i = 0; i < kFrames;) {
      if (!inbox.Next(frame)) {
        std::this_thread::yield();
        continue;
      }
      const std::string expected(static_cast<size_t>(i * 7 % 56),
                                 static_cast<char>('a' + i % 26));
      EXPECT_EQ(Text(frame.payload), expected);
      ++i;
      if (inbox.Release()) go.store(true);
    }
  });
  std::vector<std::byte> out;
  for (int i = 0; i < kFrames; ++i) {
    const std::string text(static_cast<size_t>(i * 7 % 56),
                           static_cast<char>('a' + i % 26));
    AppendMessage(out, Bytes(text));
  }
  std::span<const std::byte> rest(out);
  while (!rest.empty()) {
    if (!go.load()) {
      std::this_thread::yield();
      continue;
    }
    const auto room = inbox.Room();
    if (room.empty()) {
      go.store(false);
      if (inbox.Pause()) go.store(true);
      continue;
    }
    const size_t count =
        std::min({room.size(), rest.size(), 1 + rest.size() % 40});
    std::memcpy(room.data(), rest.data(), count);
    ASSERT_TRUE(inbox.Wrote(count));
    rest = rest.subspan(count);
  }
  reader.join();
  EXPECT_EQ(inbox.arrived_messages(), static_cast<uint64_t>(kFrames));
}

TEST(FrameTest, ARefusalComesOutAsItWentIn) {
  std::vector<std::byte> out;
  AppendRefusal(out, {.reason = Reason::kStale,
                      .retry_after = std::chrono::microseconds(1500),
                      .never_retry = true,
                      .head = Bytes("0123456789abcdefg")});
  EXPECT_EQ(out.size(), kMostRefusalFrameBytes);
  Inbox inbox(1024, 512, Kind::kRefusal);
  ASSERT_TRUE(Write(inbox, out));
  Inbox::Frame frame;
  ASSERT_TRUE(inbox.Next(frame));
  EXPECT_EQ(frame.kind, Kind::kRefusal);
  const auto refusal = ReadRefusal(frame.payload);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, Reason::kStale);
  EXPECT_EQ(refusal->retry_after, std::chrono::milliseconds(2));  // Not before.
  EXPECT_TRUE(refusal->never_retry);
  EXPECT_EQ(Text(refusal->head), "0123456789abcdef");
}

TEST(FrameTest, ARefusalOfANewerServerIsOneForLackOfRoom) {
  const std::string bytes{"\xff\x02\xff\xff\xff\xff", 6};
  const auto refusal = ReadRefusal(Bytes(bytes));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, Reason::kLimit);
  EXPECT_FALSE(refusal->never_retry);
  EXPECT_EQ(refusal->retry_after, std::chrono::milliseconds(0xffffffff));
  EXPECT_TRUE(refusal->head.empty());
  EXPECT_FALSE(ReadRefusal(Bytes("short")));
}

TEST(FrameTest, OnlyServersRefuse) {
  std::vector<std::byte> out;
  AppendRefusal(out, {});
  Inbox inbox(1024, 512);
  EXPECT_FALSE(Write(inbox, out));
}

}  // namespace
}  // namespace weir::stream
