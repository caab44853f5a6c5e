#include "outcome.h"

#include <gtest/gtest.h>

namespace weir::nginx {
namespace {

using namespace std::chrono_literals;

Ending Answered(int status) {
  Ending ending;
  ending.status = status;
  ending.whole = true;
  ending.contact = Contact::kAnswered;
  ending.taken = 20ms;
  ending.base_latency = 20ms;
  return ending;
}

TEST(OutcomeTest, AnAnswerOfTheServiceTeaches) {
  for (const int status : {200, 204, 302, 304, 400, 404, 418}) {
    EXPECT_EQ(Judge(Answered(status)), Outcome::kOk) << status;
  }
}

TEST(OutcomeTest, ALateErrorTeachesAndAnEarlyOneDoesNot) {
  Ending error = Answered(500);
  EXPECT_EQ(Judge(error), Outcome::kError);
  error.taken = 10ms;
  EXPECT_EQ(Judge(error), Outcome::kError);
  error.taken = 10ms - 1ns;
  EXPECT_EQ(Judge(error), Outcome::kIgnored);
  error.base_latency = {};
  EXPECT_EQ(Judge(error), Outcome::kError);
}

TEST(OutcomeTest, ARefusalByTheServiceIsNoWork) {
  EXPECT_EQ(Judge(Answered(429)), Outcome::kIgnored);
  EXPECT_EQ(Judge(Answered(503)), Outcome::kIgnored);
}

TEST(OutcomeTest, ARefusedConnectionTeachesNothingHoweverLongItTook) {
  Ending refused = Answered(502);
  refused.contact = Contact::kNotReached;
  refused.taken = 1ms;
  EXPECT_EQ(Judge(refused), Outcome::kIgnored);
  refused.taken = 1s;
  EXPECT_EQ(Judge(refused), Outcome::kIgnored);
}

TEST(OutcomeTest, ATimeoutIsOneWhetherConnectedOrNot) {
  for (const Contact contact :
       {Contact::kNotReached, Contact::kNoAnswer, Contact::kAnswered}) {
    Ending timeout = Answered(504);
    timeout.contact = contact;
    EXPECT_EQ(Judge(timeout), Outcome::kTimedOut);
  }
}

TEST(OutcomeTest, AClientThatLeavesCancelsUnlessTheAnswerIsWhole) {
  Ending gone = Answered(499);
  gone.client_gone = true;
  gone.whole = false;
  EXPECT_EQ(Judge(gone), Outcome::kCancelled);
  gone.contact = Contact::kNotReached;
  EXPECT_EQ(Judge(gone), Outcome::kCancelled);
  Ending late = Answered(200);
  late.client_gone = true;
  EXPECT_EQ(Judge(late), Outcome::kOk);
}

TEST(OutcomeTest, AnAnswerThatBreaksOffIsAnError) {
  Ending broken = Answered(200);
  broken.whole = false;
  EXPECT_EQ(Judge(broken), Outcome::kError);
}

TEST(OutcomeTest, StreamsTeachNothing) {
  Ending stream = Answered(101);
  stream.stream = true;
  EXPECT_EQ(Judge(stream), Outcome::kIgnored);
}

TEST(OutcomeTest, ASlowReaderIsNoSlowService) {
  Ending slow = Answered(200);
  slow.held_back = true;
  EXPECT_EQ(Judge(slow), Outcome::kIgnored);
  slow.status = 500;
  EXPECT_EQ(Judge(slow), Outcome::kError);
}

TEST(OutcomeTest, WhatNginxAnswersBeforeTheServiceTeachesNothing) {
  for (const int status : {301, 401, 403, 404, 413}) {
    Ending early = Answered(status);
    early.contact = Contact::kNone;
    EXPECT_EQ(Judge(early), Outcome::kIgnored) << status;
  }
  Ending cached = Answered(200);
  cached.contact = Contact::kCache;
  EXPECT_EQ(Judge(cached), Outcome::kIgnored);
}

TEST(OutcomeTest, AGrpcAnswerIsJudgedByItsOwnStatus) {
  const auto outcome = [](int grpc_status) {
    Ending ending = Answered(200);
    ending.grpc_status = grpc_status;
    return Judge(ending);
  };
  for (const int answer : {0, 3, 5, 6, 7, 9, 10, 11, 12, 16}) {
    EXPECT_EQ(outcome(answer), Outcome::kOk) << answer;
  }
  EXPECT_EQ(outcome(1), Outcome::kCancelled);
  EXPECT_EQ(outcome(4), Outcome::kTimedOut);
  EXPECT_EQ(outcome(8), Outcome::kIgnored);
  EXPECT_EQ(outcome(14), Outcome::kIgnored);
  for (const int error : {2, 13, 15}) {
    EXPECT_EQ(outcome(error), Outcome::kError) << error;
  }
}

TEST(OutcomeTest, WorkInsideNginxTeachesLikeAnyOther) {
  Ending inside = Answered(200);
  inside.contact = Contact::kNone;
  EXPECT_EQ(Judge(inside), Outcome::kOk);
}

}  // namespace
}  // namespace weir::nginx
