#include "weir/http/request_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace weir::http {
namespace {

using namespace std::chrono_literals;
using ::testing::Eq;
using ::testing::Optional;

constexpr Instant kBegan = Instant(5s);
constexpr Instant kAsked = Instant(7s);

class FakeProperties final : public Properties {
 public:
  FakeProperties& With(std::string name, std::string value) {
    headers_.emplace_back(std::move(name), std::move(value));
    return *this;
  }
  FakeProperties& WithVariable(std::string name, std::string value) {
    variables_.emplace_back(std::move(name), std::move(value));
    return *this;
  }

  std::optional<std::string_view> Header(std::string_view name,
                                         int nth) override {
    for (const auto& [key, value] : headers_) {
      if (key == name && nth-- == 0) return value;
    }
    return std::nullopt;
  }
  std::optional<std::string_view> Variable(std::string_view name) override {
    for (const auto& [key, value] : variables_) {
      if (key == name) return value;
    }
    return std::nullopt;
  }

 private:
  std::vector<std::pair<std::string, std::string>> headers_;
  std::vector<std::pair<std::string, std::string>> variables_;
};

Source Header(std::string key) {
  return {Source::Kind::kHeader, std::move(key)};
}
Source Baggage(std::string key) {
  return {Source::Kind::kBaggage, std::move(key)};
}
Source Variable(std::string key) {
  return {Source::Kind::kVariable, std::move(key)};
}

Policy MakePolicy() {
  Policy policy;
  policy.service = "shop";
  policy.deadline = 1s;
  policy.deadline_ceiling = 10s;
  policy.criticality_from = {Header("x-criticality"), Baggage("criticality")};
  policy.deadline_from = {Header("grpc-timeout"),
                          Header("x-envoy-expected-rq-timeout-ms"),
                          Header("x-budget")};
  policy.client_from = {Header("x-client"), Variable("remote_addr")};
  policy.resources.resize(2);
  policy.resources[0].name = "api";
  policy.resources[1].name = "slow";
  policy.resources[1].criticality = Criticality::kSheddable;
  policy.resources[1].deadline = 5s;
  return policy;
}

Request Read(const Policy& policy, FakeProperties properties,
             bool trusted = true, uint16_t resource = 0) {
  return ReadRequest(policy, resource, trusted, properties, kBegan, kAsked);
}

TEST(ReadRequestTest, TheAttemptIsReadFromEachOfItsHeaders) {
  const auto attempt = [](std::string name, std::string value,
                          bool trusted = true) {
    FakeProperties properties;
    properties.With(std::move(name), std::move(value));
    return ReadRequest(MakePolicy(), 0, trusted, properties, kBegan, kAsked)
        .attempt;
  };
  EXPECT_EQ(attempt("weir-attempt", "2"), 2);
  EXPECT_EQ(attempt("grpc-previous-rpc-attempts", "1"), 1);
  EXPECT_EQ(attempt("x-envoy-attempt-count", "1"), 0);
  EXPECT_EQ(attempt("x-envoy-attempt-count", "3"), 2);
  EXPECT_EQ(attempt("x-envoy-attempt-count", "0"), 0);
  EXPECT_EQ(attempt("weir-attempt", "99999999999999999999"), 255);
  EXPECT_EQ(attempt("weir-attempt", "-1"), 0);
  EXPECT_EQ(attempt("weir-attempt", "two"), 0);
  EXPECT_EQ(attempt("weir-attempt", "2", false), 0);
  EXPECT_EQ(attempt("other", "2"), 0);
}

TEST(ReadRequestTest, TakesTheResourcesValuesWhenTheRequestBringsNone) {
  const Policy policy = MakePolicy();

  const Request plain = Read(policy, {});
  EXPECT_EQ(plain.criticality, Criticality::kImportant);
  EXPECT_EQ(plain.client, 0u);
  EXPECT_EQ(plain.arrived, kAsked);
  EXPECT_EQ(plain.deadline, kAsked + 1s);

  const Request slow = Read(policy, {}, true, 1);
  EXPECT_EQ(slow.resource, 1);
  EXPECT_EQ(slow.criticality, Criticality::kSheddable);
  EXPECT_EQ(slow.deadline, kAsked + 5s);
}

TEST(ReadRequestTest, OnlyAStatedBudgetIsEatenByWhatCameBeforeTheDecision) {
  const Policy policy = MakePolicy();
  EXPECT_EQ(Read(policy, {}).deadline, kAsked + 1s);
  EXPECT_EQ(Read(policy, FakeProperties().With("x-budget", "1s")).deadline,
            kBegan + 1s);
}

TEST(ReadRequestTest, AForwardedClientIsTheLastThatNoTrustedNetworkAdded) {
  Policy policy = MakePolicy();
  policy.client_from = {Header("x-forwarded-for")};
  policy.trusted = {{MapIPv4({10, 0, 0, 0}), 96 + 8}};
  const auto client = [&](std::vector<std::string> lines, bool trusted = true) {
    FakeProperties properties;
    for (std::string& line : lines) {
      properties.With("x-forwarded-for", std::move(line));
    }
    return Read(policy, std::move(properties), trusted).client;
  };
  const uint64_t honest = HashClient("192.0.2.7");
  EXPECT_EQ(client({"192.0.2.7"}), honest);
  // Whatever the client writes before it.
  EXPECT_EQ(client({"1.2.3.4, 192.0.2.7"}), honest);
  EXPECT_EQ(client({"1.2.3.5,192.0.2.7 , 10.0.0.1"}), honest);
  EXPECT_EQ(client({"6.6.6.6", "192.0.2.7", "10.0.0.1, 10.9.9.9"}), honest);
  EXPECT_EQ(client({"10.0.0.5, 192.0.2.7, , 10.0.0.1:8080,"}), honest);
  EXPECT_EQ(client({"1.1.1.1, [2001:db8::1]:443, 10.0.0.1"}),
            HashClient("[2001:db8::1]:443"));
  EXPECT_EQ(client({"1.1.1.1, unknown, 10.0.0.1"}), HashClient("unknown"));
  EXPECT_EQ(client({"10.0.0.5, 10.0.0.1"}), HashClient("10.0.0.5"));
  EXPECT_EQ(client({" , "}), 0u);
  EXPECT_EQ(client({}), 0u);
  EXPECT_EQ(client({"192.0.2.7"}, false), 0u);
}

TEST(PrintBudgetTest, IsReadAsItWasMeantToTheMillisecond) {
  for (const std::string_view name :
       {"grpc-timeout", "x-envoy-expected-rq-timeout-ms", "x-budget"}) {
    for (const Duration budget : {1ms, 529ms, 7000ms, 3600'000ms}) {
      EXPECT_EQ(ParseBudget(name, PrintBudget(name, budget).text()), budget)
          << name;
    }
    // No header may say "no timeout" for a budget that is spent.
    EXPECT_EQ(ParseBudget(name, PrintBudget(name, Duration(0)).text()), 1ms);
    EXPECT_EQ(ParseBudget(name, PrintBudget(name, -5s).text()), 1ms);
  }
  EXPECT_EQ(PrintBudget("grpc-timeout", 30h).text(), "108000S");
  EXPECT_EQ(PrintBudget("grpc-timeout", Duration::max()).text(), "99999999S");
  EXPECT_EQ(PrintBudget("x-a-ms", 1999us).text(), "1");
  EXPECT_EQ(PrintBudget("x-budget", 70ms).text(), "70ms");
}

TEST(ReadRequestTest, TheFirstSourceThatParsesWins) {
  const Policy policy = MakePolicy();
  FakeProperties both;
  both.With("baggage", "criticality=vital").With("x-criticality", "sheddable");
  EXPECT_EQ(Read(policy, both).criticality, Criticality::kSheddable);

  FakeProperties broken;
  broken.With("baggage", "criticality=vital").With("x-criticality", "urgent!");
  EXPECT_EQ(Read(policy, broken).criticality, Criticality::kVital);
}

TEST(ReadRequestTest, OfAHeaderSentTwiceTheFirstThatParsesWins) {
  const Policy policy = MakePolicy();
  FakeProperties twice;
  twice.With("grpc-timeout", "soon").With("grpc-timeout", "200m");
  twice.With("grpc-timeout", "7S");
  EXPECT_EQ(Read(policy, twice).deadline, kBegan + 200ms);

  FakeProperties baggage;
  baggage.With("baggage", "a=b").With("baggage", "x=1, criticality=vital");
  EXPECT_EQ(Read(policy, baggage).criticality, Criticality::kVital);
}

TEST(ReadRequestTest, HeadersOfUntrustedPeersAreNotRead) {
  const Policy policy = MakePolicy();
  FakeProperties properties;
  properties.With("x-criticality", "vital")
      .With("baggage", "criticality=vital")
      .With("grpc-timeout", "8S")
      .With("x-client", "someone-else")
      .WithVariable("remote_addr", "192.0.2.1");

  const Request request = Read(policy, properties, false);

  EXPECT_EQ(request.criticality, Criticality::kImportant);
  EXPECT_EQ(request.deadline, kAsked + 1s);
  EXPECT_EQ(request.client, HashClient("192.0.2.1"));
  EXPECT_EQ(Read(policy, properties).client, HashClient("someone-else"));
}

TEST(ReadRequestTest, ADeadlineIsCutToTheCeiling) {
  const Policy policy = MakePolicy();
  EXPECT_EQ(
      Read(policy, FakeProperties().With("grpc-timeout", "9999H")).deadline,
      kBegan + 10s);
  EXPECT_EQ(Read(policy, FakeProperties().With("x-envoy-expected-rq-timeout-ms",
                                               "99999999999999999999999999"))
                .deadline,
            kBegan + 10s);
}

TEST(ReadRequestTest, EveryHeaderIsReadTheWayItsNameSays) {
  const Policy policy = MakePolicy();
  const auto deadline = [&](std::string name, std::string value) {
    return Read(policy,
                FakeProperties().With(std::move(name), std::move(value)))
        .deadline;
  };
  EXPECT_EQ(deadline("grpc-timeout", "20m"), kBegan + 20ms);
  EXPECT_EQ(deadline("x-envoy-expected-rq-timeout-ms", "30"), kBegan + 30ms);
  EXPECT_EQ(deadline("x-budget", "40ms"), kBegan + 40ms);
}

TEST(ReadRequestTest, AZeroBudgetHasPassedExceptEnvoysWhichMeansNone) {
  const Policy policy = MakePolicy();
  EXPECT_EQ(Read(policy, FakeProperties().With("grpc-timeout", "0n")).deadline,
            kBegan);
  EXPECT_EQ(Read(policy, FakeProperties().With("x-budget", "0s")).deadline,
            kBegan);
  EXPECT_EQ(
      Read(policy, FakeProperties().With("x-envoy-expected-rq-timeout-ms", "0"))
          .deadline,
      kAsked + 1s);
}

TEST(ReadRequestTest, AVariableIsReadLikeAPolicysDuration) {
  Policy policy = MakePolicy();
  policy.deadline_from = {Variable("arg_budget"), Variable("grpc-timeout")};
  FakeProperties properties;
  properties.WithVariable("arg_budget", "750ms");
  properties.WithVariable("grpc-timeout", "1S");
  EXPECT_EQ(Read(policy, properties, false).deadline, kBegan + 750ms);
}

TEST(ReadRequestTest, AnEmptyClientKeyIsNoKey) {
  const Policy policy = MakePolicy();
  FakeProperties properties;
  properties.With("x-client", "  ").WithVariable("remote_addr", "192.0.2.1");
  EXPECT_EQ(Read(policy, properties).client, HashClient("192.0.2.1"));
  properties = {};
  properties.WithVariable("remote_addr", "");
  EXPECT_EQ(Read(policy, properties).client, 0u);
}

TEST(ReadRequestTest, BaggageValuesArePercentDecoded) {
  Policy policy = MakePolicy();
  policy.client_from = {Baggage("user")};
  EXPECT_EQ(
      Read(policy, FakeProperties().With("baggage", "user=a%41%20b")).client,
      HashClient("aA b"));
  for (const char* broken : {"user=%", "user=%4", "user=%zz", "user="}) {
    EXPECT_EQ(Read(policy, FakeProperties().With("baggage", broken)).client, 0u)
        << broken;
  }
  const std::string longest(256, 'k');
  EXPECT_EQ(
      Read(policy, FakeProperties().With("baggage", "user=" + longest)).client,
      HashClient(longest));
  EXPECT_EQ(
      Read(policy, FakeProperties().With("baggage", "user=" + longest + "k"))
          .client,
      0u);
}

TEST(BaggageMemberTest, FindsAMemberAmongOthers) {
  constexpr std::string_view kHeader =
      "a=1,\tcriticality = vital ; until=9;x , criticality2=no,empty=,=v,alone";
  EXPECT_THAT(BaggageMember(kHeader, "a"), Optional(Eq("1")));
  EXPECT_THAT(BaggageMember(kHeader, "criticality"), Optional(Eq("vital")));
  EXPECT_THAT(BaggageMember(kHeader, "criticality2"), Optional(Eq("no")));
  EXPECT_THAT(BaggageMember(kHeader, "empty"), Optional(Eq("")));
  EXPECT_EQ(BaggageMember(kHeader, "alone"), std::nullopt);
  EXPECT_EQ(BaggageMember(kHeader, "until"), std::nullopt);
  EXPECT_EQ(BaggageMember(kHeader, "Criticality"), std::nullopt);
}

TEST(BaggageMemberTest, OfTwoWithOneNameTheFirstCounts) {
  EXPECT_THAT(BaggageMember("k=1,k=2", "k"), Optional(Eq("1")));
}

TEST(BaggageMemberTest, SurvivesWhatIsNoBaggage) {
  for (const char* text :
       {"", ",", ",,,", "=", ";", "k", "k;=1", " ", "k;k=1"}) {
    EXPECT_EQ(BaggageMember(text, "k"), std::nullopt) << text;
  }
}

TEST(GrpcTimeoutTest, ReadsEveryUnit) {
  EXPECT_EQ(ParseGrpcTimeout("2H"), 2h);
  EXPECT_EQ(ParseGrpcTimeout("3M"), 3min);
  EXPECT_EQ(ParseGrpcTimeout("4S"), 4s);
  EXPECT_EQ(ParseGrpcTimeout("5m"), 5ms);
  EXPECT_EQ(ParseGrpcTimeout("6u"), 6us);
  EXPECT_EQ(ParseGrpcTimeout("7n"), 7ns);
  EXPECT_EQ(ParseGrpcTimeout("00000001S"), 1s);
}

TEST(GrpcTimeoutTest, TheLargestDoesNotWrap) {
  // 99999999 h are 11 thousand years.
  EXPECT_EQ(ParseGrpcTimeout("99999999H"), Duration::max());
  EXPECT_EQ(ParseGrpcTimeout("99999999M"), 99999999min);
}

TEST(GrpcTimeoutTest, RefusesWhatTheSpecificationDoesNotAllow) {
  for (const char* text : {"", "S", "1", "1s", "-1S", "+1S", " 1S", "1 S",
                           "1.5S", "1SS", "123456789S", "0x1S", "1e3m"}) {
    EXPECT_EQ(ParseGrpcTimeout(text), std::nullopt) << text;
  }
}

TEST(MillisecondsTest, ReadsDigitsAndNothingElse) {
  EXPECT_EQ(ParseMilliseconds("250"), 250ms);
  EXPECT_EQ(ParseMilliseconds("9223372036854775807"), Duration::max());
  EXPECT_EQ(ParseMilliseconds("92233720368547758070"), Duration::max());
  for (const char* text : {"", "0", "000", "-1", "1.5", "1ms", " 1", "NaN"}) {
    EXPECT_EQ(ParseMilliseconds(text), std::nullopt) << text;
  }
}

TEST(BudgetTest, AHeadersNameSaysHowItIsWritten) {
  EXPECT_EQ(ParseBudget("grpc-timeout", "250m"), 250ms);
  EXPECT_EQ(ParseBudget("x-request-timeout-ms", "250"), 250ms);
  EXPECT_EQ(ParseBudget("x-timeout", "250ms"), 250ms);
  EXPECT_EQ(ParseBudget("x-timeout", "1.5s"), 1500ms);
  EXPECT_EQ(ParseBudget("x-timeout", "250"), std::nullopt);
  EXPECT_EQ(ParseBudget("x-timeout", "-1s"), std::nullopt);
  EXPECT_EQ(ParseBudget("x-timeout", "inf"), std::nullopt);
}

TEST(ReadRequestTest, AnIPv6ClientIsItsSlash64) {
  for (const char* same : {"2001:db8:1:2::1", "2001:DB8:1:2:ffff::9",
                           "2001:0db8:0001:0002:0000:0000:0000:0001"}) {
    EXPECT_EQ(HashClient(same), HashClient("2001:db8:1:2::")) << same;
  }
  EXPECT_NE(HashClient("2001:db8:1:3::1"), HashClient("2001:db8:1:2::1"));
  EXPECT_EQ(HashClient("fe80::1%eth0"), HashClient("fe80::2"));
  EXPECT_EQ(HashClient("::ffff:192.0.2.1"), HashClient("192.0.2.1"));
  EXPECT_NE(HashClient("::ffff:192.0.2.1"), HashClient("::ffff:192.0.2.2"));
  EXPECT_EQ(HashClient("[2001:db8:1:2::1]:443"), HashClient("2001:db8:1:2::2"));
  EXPECT_EQ(HashClient("192.0.2.1:5678"), HashClient("192.0.2.1"));
  EXPECT_NE(HashClient("user:1"), HashClient("user:2"));
}

TEST(ReadRequestTest, AnAddressInBytesIsReadAsOne) {
  Policy policy = MakePolicy();
  policy.client_from = {Variable("binary_remote_addr")};
  const auto client = [&](std::string bytes) {
    return Read(policy,
                FakeProperties().WithVariable("binary_remote_addr", bytes))
        .client;
  };
  const std::string net("\x20\x01\x0d\xb8\0\1\0\2", 8);
  EXPECT_EQ(client(net + "12345678"), client(net + "87654321"));
  EXPECT_EQ(client(net + "12345678"), HashClient("2001:db8:1:2::1"));
  // Neither byte is a blank to cut off.
  EXPECT_NE(client(std::string("\x0a\0\0\x20", 4)),
            client(std::string("\x0a\0\0\x09", 4)));
}

TEST(ClientTest, HashesAreStableAndNeverZero) {
  // Workers of two versions share a region, so the values may not change.
  EXPECT_EQ(HashClient("a"), HashClient("a"));
  EXPECT_NE(HashClient("a"), HashClient("b"));
  EXPECT_NE(HashClient(std::string_view("\0", 1)), 0u);
  EXPECT_EQ(HashClient(""), 0u);
  EXPECT_EQ(HashClient("192.0.2.1"), 10359461536433910595u);
}

TEST(NetworkTest, MatchesByPrefix) {
  const Address inside = MapIPv4({10, 1, 2, 3});
  const auto network = [](std::array<uint8_t, 4> address, uint8_t bits) {
    return Network{MapIPv4(address), static_cast<uint8_t>(bits + 96)};
  };
  EXPECT_TRUE(Contains(network({10, 0, 0, 0}, 8), inside));
  EXPECT_TRUE(Contains(network({10, 1, 2, 3}, 32), inside));
  EXPECT_TRUE(Contains(network({10, 1, 2, 2}, 31), inside));
  EXPECT_FALSE(Contains(network({10, 1, 2, 2}, 32), inside));
  EXPECT_TRUE(Contains(network({10, 1, 0, 0}, 15), inside));
  EXPECT_FALSE(Contains(network({10, 2, 0, 0}, 15), inside));
  EXPECT_TRUE(Contains(network({0, 0, 0, 0}, 0), inside));
}

TEST(NetworkTest, IPv4AnyDoesNotContainIPv6) {
  Address loopback6{};
  loopback6[15] = 1;
  EXPECT_FALSE(Contains({MapIPv4({0, 0, 0, 0}), 96}, loopback6));
  EXPECT_TRUE(Contains({{}, 0}, loopback6));
  EXPECT_TRUE(Contains({loopback6, 128}, loopback6));
}

TEST(NetworkTest, NobodyIsTrustedWhenNoNetworkIs) {
  EXPECT_FALSE(IsTrusted({}, MapIPv4({127, 0, 0, 1})));
  EXPECT_TRUE(
      IsTrusted({{MapIPv4({10, 0, 0, 0}), 104}, {MapIPv4({127, 0, 0, 0}), 104}},
                MapIPv4({127, 0, 0, 1})));
}

}  // namespace
}  // namespace weir::http
