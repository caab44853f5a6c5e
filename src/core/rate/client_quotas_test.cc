#include "weir/rate/client_quotas.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <unordered_map>

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Instant kStart{minutes(1000)};  // Where a window of a minute begins.

class ClientQuotasTest : public ::testing::Test {
 protected:
  bool Take(uint64_t client, Instant now = kStart) {
    return quotas_->Take(config_, client, now).admitted;
  }

  ClientQuotas::Config config_{.calls = 5};
  std::unique_ptr<ClientQuotas> quotas_ = std::make_unique<ClientQuotas>();
};

TEST_F(ClientQuotasTest, OnlyTheClientThatSpentItsCallsIsRefused) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Take(1));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Take(1));
  EXPECT_TRUE(Take(2));
}

TEST_F(ClientQuotasTest, TheNextWindowStartsAnewAndTheAnswerSaysWhen) {
  const Instant now = kStart + seconds(20);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Take(1, now));
  const auto refused = quotas_->Take(config_, 1, now);
  EXPECT_FALSE(refused.admitted);
  EXPECT_EQ(refused.retry_after, seconds(40));
  EXPECT_FALSE(Take(1, now + seconds(40) - Duration(1)));
  EXPECT_TRUE(Take(1, now + seconds(40)));
}

// Callers whose clocks differ by ten seconds take turns at the edge.
TEST_F(ClientQuotasTest, AClockThatIsLateDoesNotBeginTheWindowAnew) {
  const Instant edge = kStart + minutes(1);
  int passed = 0;
  for (int i = 0; i < 20; ++i) {
    passed += Take(1, edge + seconds(5));
    passed += Take(1, edge - seconds(5));
  }
  EXPECT_EQ(passed, 5);
}

TEST_F(ClientQuotasTest, WhoIsUnknownIsNotCounted) {
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(Take(0));
}

TEST_F(ClientQuotasTest, WhatIsGivenBackMayBeTakenAgain) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Take(1));
  const auto last = quotas_->Take(config_, 1, kStart);
  EXPECT_FALSE(Take(1));
  quotas_->GiveBack(1, last.window);
  EXPECT_TRUE(Take(1));
  EXPECT_FALSE(Take(1));
  // That of a window that is over is not this one's.
  quotas_->GiveBack(1, last.window - 1);
  EXPECT_FALSE(Take(1));
}

// Goal: a million clients, most seen once, with some that ask without end
// between them, in fixed memory: nobody passes more than his calls, however
// often he is forgotten; and those that stay within their calls are served.
TEST_F(ClientQuotasTest, AMillionClientsGainNoFreshQuotaAndFewAreWronged) {
  constexpr unsigned kSeed = 1;
  constexpr int kCalls = 1'500'000;
  config_.calls = 100;
  std::mt19937_64 random(kSeed);
  std::unordered_map<uint64_t, int> hogs;
  int64_t meek = 0;
  int64_t wronged = 0;
  for (int i = 0; i < kCalls; ++i) {
    const uint64_t draw = random();
    if (draw % 3 == 0) {
      const uint64_t hog = 1 + (draw >> 32) % 50;
      hogs[hog] += Take(hog);
    } else {
      ++meek;
      wronged += !Take(1000 + (draw >> 32) % 1'000'000);
    }
  }
  for (const auto& [hog, passed] : hogs) EXPECT_EQ(passed, 100) << hog;
  EXPECT_EQ(wronged, 0) << "of " << meek;
}

// Goal: the same where the table is far too small: within one window nobody
// passes more than his calls.
TEST_F(ClientQuotasTest, InACrowdNobodyPassesMoreThanHisCalls) {
  constexpr unsigned kSeed = 2;
  config_.calls = 3;
  std::mt19937_64 random(kSeed);
  std::unordered_map<uint64_t, int> passed;
  for (int i = 0; i < 1'000'000; ++i) {
    const uint64_t client = 1 + random() % 300'000;
    passed[client] += Take(client);
  }
  for (const auto& [client, calls] : passed) ASSERT_LE(calls, 3) << client;
}

TEST_F(ClientQuotasTest, ConfigsOutOfRangeAreRefused) {
  EXPECT_FALSE(ClientQuotas::Check({.calls = 1}));
  EXPECT_TRUE(ClientQuotas::Check({.calls = 0}));
  EXPECT_TRUE(ClientQuotas::Check({.calls = 2'000'000'001}));
  EXPECT_TRUE(ClientQuotas::Check({.calls = 1, .window = milliseconds(9)}));
  EXPECT_TRUE(ClientQuotas::Check({.calls = 1, .window = minutes(1441)}));
}

}  // namespace
}  // namespace weir
