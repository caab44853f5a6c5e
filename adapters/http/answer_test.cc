#include "weir/http/answer.h"

#include <gtest/gtest.h>

#include <set>

namespace weir::http {
namespace {

using namespace std::chrono_literals;

Decision Shed(Reason reason, Duration retry_after = {}) {
  return {Verdict::kShed, reason, retry_after};
}

TEST(AnswerTest, TheServersShortageIsThePolicysStatus) {
  Policy policy;
  for (const Reason reason : {Reason::kLevel, Reason::kLimit}) {
    policy.shed_status = 503;
    EXPECT_EQ(AnswerTo(Shed(reason), policy, false, 0).status, 503);
    policy.shed_status = 429;
    const Answer answer = AnswerTo(Shed(reason), policy, false, 0);
    EXPECT_EQ(answer.status, 429);
    EXPECT_EQ(answer.grpc_status, kResourceExhausted);
  }
}

TEST(AnswerTest, OnlyAShortageOfThisReplicaIsUnavailableAndOnlyIfAsked) {
  const auto code = [](Reason reason, bool elsewhere) {
    Policy policy;
    policy.try_elsewhere = elsewhere;
    const Answer answer = AnswerTo(Shed(reason, 1s), policy, false, 0);
    EXPECT_EQ(answer.pushback_ms.value_or(0), elsewhere ? 0 : 1000)
        << Name(reason);
    return answer.grpc_status;
  };
  for (const Reason reason :
       {Reason::kLevel, Reason::kLimit, Reason::kSystem, Reason::kDeadline}) {
    EXPECT_EQ(code(reason, false), kResourceExhausted) << Name(reason);
    EXPECT_EQ(code(reason, true), kUnavailable) << Name(reason);
  }
  for (const Reason reason : {Reason::kQuota, Reason::kTiers, Reason::kStale}) {
    Policy policy;
    policy.try_elsewhere = true;
    const Answer answer = AnswerTo(Shed(reason, 1s), policy, false, 0);
    EXPECT_EQ(answer.grpc_status, kResourceExhausted) << Name(reason);
    EXPECT_EQ(answer.pushback_ms, 1000) << Name(reason);
  }
  // It is what the policy says, not a status of HTTP.
  Policy policy;
  policy.try_elsewhere = true;
  EXPECT_EQ(AnswerTo(Shed(Reason::kLevel), policy, false, 0).status, 503);
  EXPECT_EQ(AnswerTo(Shed(Reason::kDeadline), policy, true, 0).grpc_status,
            kDeadlineExceeded);
  Decision never = Shed(Reason::kLevel);
  never.never_retry = true;
  EXPECT_EQ(AnswerTo(never, policy, false, 0).grpc_status, kResourceExhausted);
}

TEST(AnswerTest, WhoShallNotTryAgainIsToldSoInBothProtocols) {
  Decision decision = Shed(Reason::kLevel, 30s);
  decision.never_retry = true;
  const Answer answer = AnswerTo(decision, Policy(), false, 0);
  EXPECT_EQ(answer.pushback_ms, -1);
  EXPECT_EQ(answer.retry_after_s, 30);
  EXPECT_EQ(answer.status, 503);
}

TEST(AnswerTest, APauseIsNoQuotaOfTheCaller) {
  Policy policy;
  policy.shed_status = 429;
  const Answer answer = AnswerTo(Shed(Reason::kPaused, 5s), policy, false, 0);
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.grpc_status, kUnavailable);
  EXPECT_EQ(answer.retry_after_s, 5);
}

TEST(AnswerTest, OnlyAPassedDeadlineIs504) {
  const Policy policy;
  const Answer expired = AnswerTo(Shed(Reason::kDeadline), policy, true, ~0u);
  EXPECT_EQ(expired.status, 504);
  EXPECT_EQ(expired.retry_after_s, 0);
  EXPECT_EQ(expired.grpc_status, kDeadlineExceeded);
  EXPECT_EQ(expired.pushback_ms, -1);

  const Answer near = AnswerTo(Shed(Reason::kDeadline), policy, false, 0);
  EXPECT_EQ(near.status, 503);
  EXPECT_EQ(near.retry_after_s, 1);
  EXPECT_EQ(AnswerTo(Shed(Reason::kLevel), policy, true, 0).status, 503);
}

TEST(AnswerTest, ASpentQuotaIs429AndTheOtherStagesThePolicysStatus) {
  const Policy policy;
  EXPECT_EQ(AnswerTo(Shed(Reason::kQuota), policy, false, 0).status, 429);
  EXPECT_EQ(AnswerTo(Shed(Reason::kQuota), policy, false, 0).grpc_status,
            kResourceExhausted);
  for (const Reason reason :
       {Reason::kStale, Reason::kTiers, Reason::kSystem}) {
    EXPECT_EQ(AnswerTo(Shed(reason), policy, false, 0).status, 503);
  }
}

TEST(AnswerTest, RetryAfterIsRoundedUpToWholeSecondsOfAtLeastOne) {
  const Policy policy;
  const auto seconds = [&](Duration wait) {
    return AnswerTo(Shed(Reason::kLevel, wait), policy, false, 0).retry_after_s;
  };
  EXPECT_EQ(seconds(0ns), 1);
  EXPECT_EQ(seconds(1ns), 1);
  EXPECT_EQ(seconds(1s), 1);
  EXPECT_EQ(seconds(1s + 1ns), 2);
  EXPECT_EQ(seconds(Duration::max()), 3600);
}

// Or it would override the backoff that the caller has of its own.
TEST(AnswerTest, NoPushbackIsSaidRatherThanATinyOne) {
  const Policy policy;
  for (const Reason reason : {Reason::kDeadline, Reason::kLevel, Reason::kLimit,
                              Reason::kSystem, Reason::kStale}) {
    for (const Duration wait : {Duration(0), Duration(1), Duration(99ms)}) {
      EXPECT_EQ(AnswerTo(Shed(reason, wait), policy, false, ~0u).pushback_ms,
                std::nullopt)
          << Name(reason);
    }
  }
  EXPECT_EQ(AnswerTo(Shed(Reason::kLevel, 100ms), policy, false, 0).pushback_ms,
            100);
}

TEST(AnswerTest, WhoGoesElsewhereNeedNotWait) {
  Policy policy;
  EXPECT_EQ(AnswerTo(Shed(Reason::kShutdown, 5s), policy, false, 0).pushback_ms,
            std::nullopt);
  EXPECT_EQ(AnswerTo(Shed(Reason::kPaused, 5s), policy, false, 0).pushback_ms,
            5000);
  policy.try_elsewhere = true;
  for (const Reason reason : {Reason::kPaused, Reason::kLevel, Reason::kLimit,
                              Reason::kSystem, Reason::kDeadline}) {
    const Answer answer = AnswerTo(Shed(reason, 5s), policy, false, 0);
    EXPECT_EQ(answer.grpc_status, kUnavailable) << Name(reason);
    EXPECT_EQ(answer.pushback_ms, std::nullopt) << Name(reason);
    // HTTP has no such difference: whoever comes back here comes later.
    EXPECT_EQ(answer.retry_after_s, 5) << Name(reason);
  }
}

TEST(AnswerTest, JitterAddsUpToHalf) {
  const Policy policy;
  std::set<int64_t> seconds;
  std::set<int64_t> ms;
  for (uint64_t random = 0; random < 1ull << 32; random += 1u << 20) {
    const Answer answer = AnswerTo(Shed(Reason::kLevel, 10s), policy, false,
                                   static_cast<uint32_t>(random));
    seconds.insert(answer.retry_after_s);
    ms.insert(answer.pushback_ms.value());
  }
  EXPECT_EQ(seconds, (std::set<int64_t>{10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(*ms.begin(), 10000);
  EXPECT_GT(*ms.rbegin(), 14900);
  EXPECT_LE(*ms.rbegin(), 15000);

  EXPECT_EQ(AnswerTo(Shed(Reason::kLevel), policy, false, ~0u).retry_after_s,
            2);
}

TEST(GrpcTest, IsToldByItsContentType) {
  for (const char* yes :
       {"application/grpc", "application/grpc+proto",
        "Application/GRPC;charset=x", "application/grpc ;a"}) {
    EXPECT_TRUE(IsGrpc(yes)) << yes;
  }
  for (const char* no : {"", "application/grp", "application/grpc-web",
                         "application/grpcx", "text/application/grpc"}) {
    EXPECT_FALSE(IsGrpc(no)) << no;
  }
}

}  // namespace
}  // namespace weir::http
