#include "details.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "echo.pb.h"
#include "server_call.h"

namespace weir::grpc {
namespace {

using namespace std::chrono_literals;

TEST(DetailsTest, ProtobufReadsWhatWeWrite) {
  testing::RpcStatus status;
  ASSERT_TRUE(status.ParseFromString(EncodeStatus({.code = 8,
                                                   .message = "shed",
                                                   .reason = "limit",
                                                   .service = "shop",
                                                   .resource = "Buy",
                                                   .retry_after_ms = 61'234})));
  EXPECT_EQ(status.code(), 8);
  EXPECT_EQ(status.message(), "shed");
  ASSERT_EQ(status.details_size(), 2);

  testing::RetryInfo retry;
  EXPECT_EQ(status.details(0).type_url(),
            "type.googleapis.com/google.rpc.RetryInfo");
  ASSERT_TRUE(retry.ParseFromString(status.details(0).value()));
  EXPECT_EQ(retry.retry_delay().seconds(), 61);
  EXPECT_EQ(retry.retry_delay().nanos(), 234'000'000);

  testing::ErrorInfo error;
  EXPECT_EQ(status.details(1).type_url(),
            "type.googleapis.com/google.rpc.ErrorInfo");
  ASSERT_TRUE(error.ParseFromString(status.details(1).value()));
  EXPECT_EQ(error.reason(), "LIMIT");
  EXPECT_EQ(error.domain(), "weir");
  EXPECT_EQ(error.metadata().at("service"), "shop");
  EXPECT_EQ(error.metadata().at("resource"), "Buy");
  EXPECT_EQ(error.metadata().at("executed"), "false");
}

TEST(DetailsTest, WithoutARetryThereIsNoRetryInfo) {
  testing::RpcStatus status;
  ASSERT_TRUE(status.ParseFromString(EncodeStatus(
      {.reason = "deadline", .resource = "Buy", .retry_after_ms = -1})));
  ASSERT_EQ(status.details_size(), 1);
  EXPECT_EQ(status.details(0).type_url(),
            "type.googleapis.com/google.rpc.ErrorInfo");
}

TEST(DetailsTest, LongTextsAreWrittenWhole) {
  const std::string text(300, 'x');
  testing::RpcStatus status;
  ASSERT_TRUE(status.ParseFromString(
      EncodeStatus({.message = text, .reason = "limit", .resource = text})));
  EXPECT_EQ(status.message(), text);
}

// The code in docs/grpc.md is the one in examples/grpc/main.cc.
TEST(DocsTest, TheExamplesAreTheOnesThatAreBuilt) {
  const std::string root = std::getenv("WEIR_SOURCE_DIR");
  const auto read = [](const std::string& path) {
    std::ifstream file(path);
    EXPECT_TRUE(file) << path;
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string docs = read(root + "/docs/grpc.md");
  std::istringstream source(read(root + "/examples/grpc/main.cc"));
  int blocks = 0;
  bool inside = false;
  std::string block;
  size_t indent = 0;
  for (std::string line; std::getline(source, line);) {
    const size_t mark = line.find("// docs: ");
    if (mark == std::string::npos) {
      if (inside) block += "    " + line.substr(indent) + "\n";
      continue;
    }
    if (inside) {
      EXPECT_NE(docs.find("\n" + block), std::string::npos) << block;
      ++blocks;
    }
    inside = !inside;
    indent = mark;
    block = "";
  }
  EXPECT_EQ(blocks, 3);
}

TEST(ServerCallTest, PeersAreReadAsGrpcWritesThem) {
  const auto v4 = http::MapIPv4({10, 1, 2, 3});
  EXPECT_EQ(ParsePeer("ipv4:10.1.2.3:50051"), v4);
  EXPECT_EQ(ParsePeer("unix:/run/shop.sock"), http::MapIPv4({127, 0, 0, 1}));
  http::Address loopback{};
  loopback[15] = 1;
  EXPECT_EQ(ParsePeer("ipv6:[::1]:50051"), loopback);
  EXPECT_EQ(ParsePeer("ipv6:%5B::1%5D:50051"), loopback);
  EXPECT_EQ(ParsePeer("ipv6:%5B::1%25eth0%5D:50051"), loopback);
  for (const char* odd : {"", "ipv4", "ipv4:", "ipv4:1.2.3:1", "dns:shop:80"}) {
    EXPECT_EQ(ParsePeer(odd), std::nullopt) << odd;
  }
}

TEST(ServerCallTest, OnlyWorkTeaches) {
  using ::grpc::StatusCode;
  EXPECT_EQ(Judge(StatusCode::OK, 1us, 10ms), Outcome::kOk);
  EXPECT_EQ(Judge(StatusCode::INTERNAL, 8ms, 10ms), Outcome::kError);
  EXPECT_EQ(Judge(StatusCode::INTERNAL, 4ms, 10ms), Outcome::kIgnored);
  EXPECT_EQ(Judge(StatusCode::INTERNAL, 4ms, 0ms), Outcome::kError);
  EXPECT_EQ(Judge(StatusCode::RESOURCE_EXHAUSTED, 20ms, 10ms),
            Outcome::kIgnored);
  EXPECT_EQ(Judge(StatusCode::UNAVAILABLE, 20ms, 10ms), Outcome::kIgnored);
  EXPECT_EQ(Judge(StatusCode::CANCELLED, 20ms, 10ms), Outcome::kCancelled);
  EXPECT_EQ(Judge(StatusCode::DEADLINE_EXCEEDED, 20ms, 10ms),
            Outcome::kTimedOut);
}

// A service that mostly answers "no such thing" has a latency all the same.
TEST(ServerCallTest,
     AnErrorOfTheCallersOwnIsAnAnswerUnlessItCameBeforeTheWork) {
  using ::grpc::StatusCode;
  for (const StatusCode code :
       {StatusCode::NOT_FOUND, StatusCode::INVALID_ARGUMENT,
        StatusCode::ALREADY_EXISTS, StatusCode::PERMISSION_DENIED,
        StatusCode::FAILED_PRECONDITION, StatusCode::ABORTED,
        StatusCode::OUT_OF_RANGE, StatusCode::UNAUTHENTICATED}) {
    EXPECT_EQ(Judge(code, 8ms, 10ms), Outcome::kOk) << code;
    EXPECT_EQ(Judge(code, 4ms, 10ms), Outcome::kIgnored) << code;
  }
}

}  // namespace
}  // namespace weir::grpc
