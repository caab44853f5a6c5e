// How the two halves of weir speak over HTTP and gRPC.
//
// Names of headers, and their values as text; no library of either protocol.
//
//   request                                  answer
//   weir-criticality: deferrable             retry-after: 2               (s)
//   weir-client: 81985529216486895           grpc-retry-pushback-ms: 150
//   weir-attempt: 1                          weir-reason: level
//   x-envoy-expected-rq-timeout-ms: 230      weir-level: sheddable;ttl_ms=180
//
// gRPC has its own headers for the attempt and for the time that is left, and
// uses those.  A push-back below zero, or one that is no number, means that
// nobody need try again.
//
// Source: [GRPC-A6] for push-back and attempts; RFC 9110 section 10.2.3 for
// retry-after, of which only the form in seconds is understood.

#ifndef WEIR_CLIENT_WIRE_H_
#define WEIR_CLIENT_WIRE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/client/client_call.h"
#include "weir/client/overload_level.h"

namespace weir::wire {

inline constexpr std::string_view kCriticality = "weir-criticality";
inline constexpr std::string_view kClient = "weir-client";
inline constexpr std::string_view kAttempt = "weir-attempt";
inline constexpr std::string_view kGrpcAttempts = "grpc-previous-rpc-attempts";
inline constexpr std::string_view kBudget = "x-envoy-expected-rq-timeout-ms";
inline constexpr std::string_view kRetryAfter = "retry-after";
inline constexpr std::string_view kPushback = "grpc-retry-pushback-ms";
inline constexpr std::string_view kReason = "weir-reason";
inline constexpr std::string_view kLevel = "weir-level";

// A short text in place.
class Text {
 public:
  Text& operator<<(std::string_view text);  // What does not fit is cut off.
  Text& operator<<(int64_t number);
  Text& operator<<(uint64_t number);
  std::string_view view() const { return {bytes_.data(), size_}; }

 private:
  std::array<char, 48> bytes_{};
  size_t size_ = 0;
};

enum class Protocol : uint8_t { kHttp, kGrpc };

// Calls put(name, value) for each header of an attempt.  The value lives until
// put() returns.
template <typename Put>
void PutRequestHeaders(Protocol protocol, const ClientCall& call,
                       const Attempt& attempt, Put put) {
  put(kCriticality, Name(call.criticality));
  if (call.client != 0) put(kClient, (Text() << call.client).view());
  if (attempt.previous_attempts > 0) {
    put(protocol == Protocol::kHttp ? kAttempt : kGrpcAttempts,
        (Text() << int64_t{attempt.previous_attempts}).view());
  }
  if (protocol == Protocol::kHttp) {
    put(kBudget,
        (Text() << int64_t{attempt.budget / std::chrono::milliseconds(1)})
            .view());
  }
}

// Values for a server's answers.
Text FormatPushback(std::optional<Duration> retry_after);  // Nothing: never.
Text FormatLevel(const OverloadLevel& level);
std::optional<OverloadLevel> ParseLevel(std::string_view text);

// Notes what one header (or trailer) of an answer says; the name in any case.
// Headers that mean nothing here are passed over.
void ReadAnswerHeader(std::string_view name, std::string_view value,
                      Answer& answer);

// What a status says about how an attempt ended.  HTTP: 429 and 503 are
// refusals, 502 is unavailable, 504 timed out, other 5xx errors; the rest is
// answered.  gRPC: RESOURCE_EXHAUSTED is a refusal, UNAVAILABLE unavailable,
// DEADLINE_EXCEEDED timed out, CANCELLED cancelled, UNKNOWN, INTERNAL and
// DATA_LOSS errors; the rest is answered.
AnswerKind KindOfHttpStatus(int status);
AnswerKind KindOfGrpcCode(int code);

}  // namespace weir::wire

#endif  // WEIR_CLIENT_WIRE_H_
