#include "weir/client/wire.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "weir/client/deadline.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1000s};

std::map<std::string, std::string> HeadersOf(wire::Protocol protocol,
                                             const ClientCall& call,
                                             const Attempt& attempt) {
  std::map<std::string, std::string> headers;
  wire::PutRequestHeaders(protocol, call, attempt,
                          [&](std::string_view name, std::string_view value) {
                            headers[std::string(name)] = value;
                          });
  return headers;
}

TEST(WireTest, RequestsSayHowCriticalHowOftenAndHowLong) {
  const ClientCall call{.criticality = Criticality::kDeferrable, .client = 77};
  const Attempt attempt{.budget = 230900us, .previous_attempts = 1};
  EXPECT_EQ(HeadersOf(wire::Protocol::kHttp, call, attempt),
            (std::map<std::string, std::string>{
                {"weir-criticality", "deferrable"},
                {"weir-client", "77"},
                {"weir-attempt", "1"},
                {"x-envoy-expected-rq-timeout-ms", "230"}}));
  EXPECT_EQ(HeadersOf(wire::Protocol::kGrpc, call, attempt),
            (std::map<std::string, std::string>{
                {"weir-criticality", "deferrable"},
                {"weir-client", "77"},
                {"grpc-previous-rpc-attempts", "1"}}));
  EXPECT_EQ(HeadersOf(wire::Protocol::kGrpc, {}, {}).size(), 1u);
}

Answer AnswerWith(std::string_view name, std::string_view value) {
  Answer answer;
  wire::ReadAnswerHeader(name, value, answer);
  return answer;
}

TEST(WireTest, PushbackIsReadAsGrpcSays) {
  EXPECT_EQ(AnswerWith("grpc-retry-pushback-ms", "150").retry_after, 150ms);
  EXPECT_EQ(AnswerWith("Grpc-Retry-Pushback-Ms", "0").retry_after, 0ms);
  for (const char* never : {"-1", "soon", "", "12ms", "99999999999", "1.5"}) {
    const Answer answer = AnswerWith("grpc-retry-pushback-ms", never);
    EXPECT_TRUE(answer.never_retry) << never;
    EXPECT_FALSE(answer.retry_after) << never;
  }
}

TEST(WireTest, RetryAfterIsReadInSecondsOnly) {
  EXPECT_EQ(AnswerWith("Retry-After", "2").retry_after, 2s);
  EXPECT_FALSE(
      AnswerWith("Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT").retry_after);
  EXPECT_FALSE(AnswerWith("Retry-After", "-3").retry_after);
}

TEST(WireTest, TheFinerOfTwoPushbacksCounts) {
  for (const bool fine_first : {true, false}) {
    Answer answer;
    for (const bool fine : {fine_first, !fine_first}) {
      fine ? wire::ReadAnswerHeader("grpc-retry-pushback-ms", "250", answer)
           : wire::ReadAnswerHeader("retry-after", "1", answer);
    }
    EXPECT_EQ(answer.retry_after, 250ms);
  }
}

TEST(WireTest, AnswersAreWrittenAsTheyAreRead) {
  EXPECT_EQ(wire::FormatPushback(150ms).view(), "150");
  EXPECT_EQ(wire::FormatPushback(1ns).view(), "1");
  EXPECT_EQ(wire::FormatPushback(std::nullopt).view(), "-1");
  EXPECT_EQ(wire::FormatPushback(Duration::max() - 1h).view(), "2147483647");
  const OverloadLevel level{Criticality::kDeferrable, 180ms};
  EXPECT_EQ(wire::FormatLevel(level).view(), "deferrable;ttl_ms=180");
  EXPECT_EQ(wire::ParseLevel("deferrable;ttl_ms=180"), level);
  EXPECT_EQ(AnswerWith("weir-level", "deferrable;ttl_ms=180").level, level);
  for (const char* bad : {"", "deferrable", "nice;ttl_ms=1", "vital;ttl_ms=",
                          "vital;ttl_ms=0", "vital;ttl_ms=-5"}) {
    EXPECT_FALSE(wire::ParseLevel(bad)) << bad;
  }
}

TEST(WireTest, WhatDoesNotFitIsCutOff) {
  wire::Text text;
  for (int i = 0; i < 10; ++i) text << "0123456789";
  EXPECT_EQ(text.view().size(), 48u);
}

TEST(WireTest, StatusesAreClassified) {
  using enum AnswerKind;
  const std::map<int, AnswerKind> http = {
      {200, kOk},          {302, kOk},      {404, kOk},
      {429, kRefused},     {500, kError},   {501, kError},
      {502, kUnavailable}, {503, kRefused}, {504, kTimedOut}};
  for (const auto& [status, kind] : http) {
    EXPECT_EQ(wire::KindOfHttpStatus(status), kind) << status;
  }
  const AnswerKind grpc[] = {kOk,    kCancelled, kError, kOk,      kTimedOut,
                             kOk,    kOk,        kOk,    kRefused, kOk,
                             kOk,    kOk,        kOk,    kError,   kUnavailable,
                             kError, kOk};
  for (int code = 0; code <= 16; ++code) {
    EXPECT_EQ(wire::KindOfGrpcCode(code), grpc[code]) << code;
  }
}

TEST(DeadlineTest, WhatIsLeftShrinksAtEachHop) {
  const DeadlineRules rules{.margin = 0ms};
  // Of 30 s, 7 are used, then 4.
  const Instant a = rules.Receive(30s, kStart);
  EXPECT_EQ(rules.Budget(a, kStart + 7s), 23s);
  const Instant b = rules.Receive(23s, kStart);
  EXPECT_EQ(rules.Budget(b, kStart + 4s), 19s);
}

// A waits 10 s, B begins after 8 s: what it calls must not get 20 s.
TEST(DeadlineTest, NobodyGivesMoreThanIsLeft) {
  const DeadlineRules rules{.margin = 100ms, .ceiling = 20s};
  const Instant deadline = rules.Receive(10s, kStart);
  EXPECT_EQ(rules.Budget(deadline, kStart + 8s), 1900ms);
  EXPECT_EQ(rules.Budget(deadline, kStart + 9899ms), 1ms);
  EXPECT_FALSE(rules.Budget(deadline, kStart + 9900ms));
  EXPECT_FALSE(rules.Budget(deadline, kStart + 20s));
  EXPECT_EQ(rules.Budget(kNever, kStart), 20s);
  EXPECT_EQ(rules.Budget(kStart + 1h, kStart), 20s);
  EXPECT_EQ(rules.Receive(1h, kStart), kStart + 20s);
  EXPECT_EQ(rules.Receive(-1s, kStart), kStart);
}

TEST(DeadlineTest, AStageThatCannotEndInTimeIsNotBegun) {
  EXPECT_TRUE(CanFinish(kNever, kStart, 1h));
  EXPECT_TRUE(CanFinish(kStart + 1s, kStart, 1s));
  EXPECT_FALSE(CanFinish(kStart + 1s, kStart, 1001ms));
  EXPECT_FALSE(CanFinish(kStart, kStart));
}

}  // namespace
}  // namespace weir
