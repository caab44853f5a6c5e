#include "weir/client/replica_load.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1000s};

// Plays calls to two replicas, of which the one that is down answers nothing
// and at once, the other after 10 ms; returns how many went to the one first.
int CallsToTheDeadOne(AnswerKind how_it_fails) {
  std::array<ReplicaLoad, 2> replicas;
  const auto replica = [&](size_t i) -> const ReplicaLoad& {
    return replicas[i];
  };
  SplitMix64 draws(3);
  std::multimap<Instant, size_t> running;
  Instant now = kStart;
  int dead = 0;
  for (int i = 0; i < 4000; ++i, now += 2500us) {
    while (!running.empty() && running.begin()->first <= now) {
      replicas[running.begin()->second].OnEnded(AnswerKind::kOk, now);
      running.erase(running.begin());
    }
    const size_t first = ChooseTwo(2, replica, now, draws.Next()).first;
    replicas[first].OnSent();
    if (first == 0) {
      ++dead;
      replicas[0].OnEnded(how_it_fails, now);
    } else {
      running.emplace(now + 10ms, first);
    }
  }
  return dead;
}

// By running calls alone nearly all 4000 go to the dead one.
TEST(ReplicaLoadTest, WhoFailsFastestIsNotPreferred) {
  for (const AnswerKind kind :
       {AnswerKind::kUnavailable, AnswerKind::kRefused, AnswerKind::kError}) {
    EXPECT_LT(CallsToTheDeadOne(kind), 200) << static_cast<int>(kind);
  }
}

TEST(ReplicaLoadTest, WhatFailedIsForgottenWithinSeconds) {
  ReplicaLoad replica;
  for (int i = 0; i < 10; ++i) replica.OnDropped(kStart);
  EXPECT_DOUBLE_EQ(replica.Load(kStart), 10);
  EXPECT_LT(replica.Load(kStart + 20s), 0.5);
}

TEST(ReplicaLoadTest, ACallerThatLeftIsNoFailure) {
  ReplicaLoad replica;
  replica.OnSent();
  EXPECT_DOUBLE_EQ(replica.Load(kStart), 1);
  replica.OnEnded(AnswerKind::kCancelled, kStart);
  EXPECT_DOUBLE_EQ(replica.Load(kStart), 0);
}

TEST(ReplicaLoadTest, AFreshReplicaIsGivenItsShareLittleByLittle) {
  std::array<ReplicaLoad, 4> replicas;
  ReplicaLoad fresh(kStart, 10s);
  const auto replica = [&](size_t i) -> const ReplicaLoad& {
    return i == 3 ? fresh : replicas[i];
  };
  const auto first_of_hundred = [&](Instant now) {
    SplitMix64 draws(9);
    int calls = 0;
    for (int i = 0; i < 10'000; ++i) {
      calls += ChooseTwo(4, replica, now, draws.Next()).first == 3;
    }
    return calls / 100;
  };
  EXPECT_NEAR(first_of_hundred(kStart), 3, 1);
  EXPECT_NEAR(first_of_hundred(kStart + 5s), 14, 1);
  EXPECT_NEAR(first_of_hundred(kStart + 10s), 25, 1);
}

TEST(ReplicaLoadTest, OneReplicaIsBothChoices) {
  ReplicaLoad only;
  const auto [first, second] = ChooseTwo(
      1, [&](size_t) -> const ReplicaLoad& { return only; }, kStart, 5);
  EXPECT_EQ(first, 0u);
  EXPECT_EQ(second, 0u);
}

}  // namespace
}  // namespace weir
