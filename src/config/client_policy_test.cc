#include "weir/config/client_policy.h"

#include <gtest/gtest.h>

#include <string>

#include "weir/config/complaint.h"

namespace weir::config {
namespace {

using namespace std::chrono_literals;

struct Reading {
  ClientSettings settings;
  std::string complaints;
};

Reading Read(const std::string& text) {
  Document document = Document::Parse(text, "client.toml");
  Reading reading;
  reading.settings = ReadClientSettings(document.root());
  const Complaints& complaints = document.Finish();
  if (!complaints.empty()) reading.complaints = complaints.Print();
  return reading;
}

TEST(ClientPolicyTest, AnEmptyTableIsTheDefault) {
  const Reading reading = Read("");
  EXPECT_EQ(reading.complaints, "");
  EXPECT_EQ(reading.settings, ClientSettings());
  EXPECT_FALSE(reading.settings.policy.Check());
}

TEST(ClientPolicyTest, EveryKeyIsRead) {
  const Reading reading = Read(R"(
throttle = { mode = "shadow", k = 1.1, window = "30s", least_requests = 5, probe_interval = "1s" }
breaker = { mode = "off", failure_ratio = 0.3, window = "3s", least_calls = 50, unreached = 7, slow_call = "1s", open_for = "2s", open_for_ceiling = "1m", probes = 5, probe_lease = "4s" }
level = { mode = "off", probe_ratio = 0.05, probe_interval = "1s" }
deadline = { margin = "5ms", ceiling = "10s" }
hedge = { after = "40ms" }
[retries]
max = 3
on = ["unavailable", "timed_out"]
backoff = "3s"
factor = 3
ceiling = "27s"
max_tokens = 20
token_ratio = 0.2
per_window = 600
window = "10m"
)");
  ASSERT_EQ(reading.complaints, "");
  const ClientPolicy expected{
      .throttle = {.mode = StageMode::kShadow,
                   .k = 1.1,
                   .window = 30s,
                   .least_requests = 5,
                   .probe_interval = 1s},
      .breaker = {.mode = StageMode::kOff,
                  .failure_ratio = 0.3,
                  .window = 3s,
                  .least_calls = 50,
                  .unreached = 7,
                  .slow_call = 1s,
                  .open_for = 2s,
                  .open_for_ceiling = 1min,
                  .probes = 5,
                  .probe_lease = 4s},
      .level = {.mode = StageMode::kOff,
                .probe_ratio = 0.05,
                .probe_interval = 1s},
      .retries = {.max_retries = 3,
                  .backoff = {.first = 3s, .factor = 3, .ceiling = 27s},
                  .on_unavailable = true,
                  .on_refused = false,
                  .on_timed_out = true},
      .tokens = {.max_tokens = 20, .token_ratio = 0.2},
      .deadline = {.margin = 5ms, .ceiling = 10s},
      .hedge_after = 40ms};
  EXPECT_EQ(reading.settings.policy, expected);
  EXPECT_EQ(reading.settings.allowance,
            (RetryAllowance::Config{.retries = 600, .window = 10min}));
}

TEST(ClientPolicyTest, WhatIsReadWithoutComplaintPassesItsCheck) {
  for (const char* text :
       {"breaker = { open_for = '40s' }", "breaker = { probes = 16 }",
        "retries = { backoff = '20s' }",
        "retries = { backoff = '20s', ceiling = '1s' }", "throttle = { k = 1 }",
        "retries = { token_ratio = 0.0001 }"}) {
    const Reading reading = Read(text);
    EXPECT_TRUE(!reading.complaints.empty() || !reading.settings.policy.Check())
        << text;
  }
}

TEST(ClientPolicyTest, AnUnknownKeyIsNamed) {
  EXPECT_NE(Read("throttle = { kk = 2 }")
                .complaints.find("client.toml:1:14: error: unknown key `kk`"),
            std::string::npos);
}

}  // namespace
}  // namespace weir::config
