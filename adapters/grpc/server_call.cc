#include "server_call.h"

#include <arpa/inet.h>
#include <grpc/support/time.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>

#include "details.h"
#include "weir/client/wire.h"
#include "weir/degrade/ladder.h"

namespace weir::grpc {
namespace {

std::string_view View(::grpc::string_ref text) {
  return {text.data(), text.size()};
}

::grpc::string_ref Ref(std::string_view text) {
  return {text.data(), text.size()};
}

using Metadata = std::multimap<::grpc::string_ref, ::grpc::string_ref>;

// As nginx writes it to the service behind.
constexpr std::string_view kDegrade = "weir-degrade";
constexpr std::string_view kLevels = "01234";
static_assert(kLevels.size() == DegradeLadder::kMaxLevels + 1);

// Leaves `value` as the only one of that name, or none when it is empty.
// Neither is copied.
void Note(Metadata& metadata, std::string_view name, std::string_view value) {
  const auto [first, last] = metadata.equal_range(Ref(name));
  const bool alone = first != last && std::next(first) == last;
  if (alone && View(first->second) == value) return;
  metadata.erase(first, last);
  if (!value.empty()) metadata.emplace(Ref(name), Ref(value));
}

// "1.2.3.4" of "ipv4:1.2.3.4:80", "::1" of "ipv6:[::1]:80"; else empty.
std::string AddressText(std::string_view peer) {
  const size_t scheme = peer.find(':');
  const size_t port = peer.rfind(':');
  if (scheme == std::string_view::npos || port <= scheme) return {};
  std::string_view host = peer.substr(scheme + 1, port - scheme - 1);
  for (const std::string_view open : {"[", "%5B"}) {
    if (host.substr(0, open.size()) == open) host.remove_prefix(open.size());
  }
  for (const std::string_view close : {"]", "%5D"}) {
    const size_t at = host.rfind(close);
    if (at != std::string_view::npos) host = host.substr(0, at);
  }
  return std::string(host.substr(0, host.find('%')));  // Without a zone.
}

}  // namespace

Instant DeadlineOf(const ::grpc::ServerContextBase& context) {
  return InstantOf(context.raw_deadline());
}

Instant InstantOf(gpr_timespec time) {
  if (gpr_time_cmp(time, gpr_inf_future(time.clock_type)) == 0) return kNever;
  time = gpr_convert_clock_type(time, GPR_CLOCK_MONOTONIC);
  // Chosen: a century from the clock's start is never.
  constexpr int64_t kMostSeconds = int64_t{100} * 365 * 86400;
  if (time.tv_sec > kMostSeconds) return kNever;
  return Instant(std::chrono::seconds(time.tv_sec) +
                 std::chrono::nanoseconds(time.tv_nsec));
}

Instant ServerCallView::Deadline() { return DeadlineOf(context_); }

std::optional<std::string_view> ServerCallView::Header(std::string_view name,
                                                       int nth) {
  if (name == "grpc-timeout") {
    const Instant deadline = Deadline();
    if (nth > 0 || deadline == kNever) return std::nullopt;
    // At most eight digits: microseconds up to 99 s, then milliseconds.
    const int64_t us = std::max<int64_t>((deadline - now_).count() / 1000, 0);
    const bool fits = us < 100'000'000;
    char* const end =
        std::to_chars(timeout_.data(), timeout_.data() + timeout_.size() - 1,
                      fits ? us : std::min<int64_t>(us / 1000, 99'999'999))
            .ptr;
    *end = fits ? 'u' : 'm';
    return std::string_view(timeout_.data(),
                            static_cast<size_t>(end + 1 - timeout_.data()));
  }
  const auto& metadata = context_.client_metadata();
  auto [it, last] =
      metadata.equal_range(::grpc::string_ref(name.data(), name.size()));
  while (it != last && nth > 0) ++it, --nth;
  if (it == last) return std::nullopt;
  return View(it->second);
}

std::optional<std::string_view> ServerCallView::Variable(
    std::string_view name) {
  if (name == "remote_addr") {
    variable_ = AddressText(context_.peer());
  } else if (name == "peer_identity") {
    const auto auth = context_.auth_context();
    if (auth == nullptr || !auth->IsPeerAuthenticated()) return std::nullopt;
    const auto identity = auth->GetPeerIdentity();
    if (identity.empty()) return std::nullopt;
    variable_.assign(identity[0].data(), identity[0].size());
  } else {
    return std::nullopt;
  }
  if (variable_.empty()) return std::nullopt;
  return variable_;
}

std::optional<http::Address> ServerCallView::Peer() {
  return ParsePeer(context_.peer());
}

std::optional<http::Address> ParsePeer(std::string_view peer) {
  constexpr std::string_view kUnix = "unix:";
  if (peer.substr(0, kUnix.size()) == kUnix) {
    return http::MapIPv4({127, 0, 0, 1});
  }
  const std::string text = AddressText(peer);
  std::array<uint8_t, 4> v4;
  if (inet_pton(AF_INET, text.c_str(), v4.data()) == 1) {
    return http::MapIPv4(v4);
  }
  http::Address v6;
  if (inet_pton(AF_INET6, text.c_str(), v6.data()) == 1) return v6;
  return std::nullopt;
}

void NoteDecision(const ServiceGuard::Call& call,
                  const ::grpc::ServerContextBase& context) {
  // gRPC shows the map as constant and keeps it as a variable, which nobody
  // but this call's thread has seen yet.
  auto& metadata = const_cast<Metadata&>(context.client_metadata());
  Note(metadata, wire::kCriticality, Name(call.request().criticality));
  const uint8_t degrade = call.decision().degrade;
  Note(metadata, kDegrade,
       degrade == 0 ? std::string_view() : kLevels.substr(degrade, 1));
}

uint8_t DegradeOf(const ::grpc::ServerContextBase& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(Ref(kDegrade));
  if (found == metadata.end()) return 0;
  const size_t level = kLevels.find(View(found->second));
  return level < kLevels.size() ? static_cast<uint8_t>(level) : uint8_t{0};
}

::grpc::Status Refuse(ServiceGuard& guard, const ServiceGuard::Call& call,
                      ::grpc::ServerContextBase& context, Instant now) {
  const http::Answer answer = guard.AnswerTo(call, now);
  const std::string_view reason = Name(call.decision().reason);
  const auto add = [&context](std::string_view name, std::string_view value) {
    context.AddTrailingMetadata(std::string(name), std::string(value));
  };
  if (answer.pushback_ms) {
    add(wire::kPushback, std::to_string(*answer.pushback_ms));
  }
  add(wire::kReason, reason);
  if (const auto level = guard.Level(now)) {
    add(wire::kLevel, wire::FormatLevel(*level).view());
  }
  const Refusal refusal{
      .code = answer.grpc_status,
      .message = "shed by weir: " + std::string(reason),
      .reason = reason,
      .service = guard.region().service(),
      .resource = guard.ResourceName(call),
      .retry_after_ms = answer.pushback_ms.value_or(-1),
  };
  return {static_cast<::grpc::StatusCode>(refusal.code), refusal.message,
          EncodeStatus(refusal)};
}

Outcome Judge(::grpc::StatusCode code, Duration taken, Duration base_latency) {
  switch (code) {
    case ::grpc::StatusCode::OK:
      return Outcome::kOk;
    // Answers all the same: what was wrong is the caller's own.  One that came
    // before the work says nothing of how long that takes.
    case ::grpc::StatusCode::INVALID_ARGUMENT:
    case ::grpc::StatusCode::NOT_FOUND:
    case ::grpc::StatusCode::ALREADY_EXISTS:
    case ::grpc::StatusCode::PERMISSION_DENIED:
    case ::grpc::StatusCode::FAILED_PRECONDITION:
    case ::grpc::StatusCode::ABORTED:
    case ::grpc::StatusCode::OUT_OF_RANGE:
    case ::grpc::StatusCode::UNAUTHENTICATED:
      return taken < base_latency / 2 ? Outcome::kIgnored : Outcome::kOk;
    case ::grpc::StatusCode::CANCELLED:
      return Outcome::kCancelled;
    case ::grpc::StatusCode::DEADLINE_EXCEEDED:
      return Outcome::kTimedOut;
    // Whoever was asked for it has refused, or was not there.
    case ::grpc::StatusCode::RESOURCE_EXHAUSTED:
    case ::grpc::StatusCode::UNAVAILABLE:
    case ::grpc::StatusCode::UNIMPLEMENTED:
      return Outcome::kIgnored;
    default:
      return taken < base_latency / 2 ? Outcome::kIgnored : Outcome::kError;
  }
}

}  // namespace weir::grpc
