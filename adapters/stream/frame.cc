#include "weir/stream/frame.h"

#include <algorithm>
#include <limits>

namespace weir::stream {
namespace {

void AppendNumber(std::vector<std::byte>& out, uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.push_back(static_cast<std::byte>(number >> shift));
  }
}

void AppendHeader(std::vector<std::byte>& out, Kind kind, size_t rest) {
  AppendNumber(out, static_cast<uint32_t>(rest + 1));
  out.push_back(static_cast<std::byte>(kind));
}

}  // namespace

uint32_t ReadNumber(std::span<const std::byte, 4> bytes) {
  uint32_t number = 0;
  for (const std::byte byte : bytes) {
    number = number << 8 | static_cast<uint32_t>(byte);
  }
  return number;
}

std::optional<Header> ReadHeader(std::span<const std::byte, kHeaderBytes> bytes,
                                 size_t max_frame_bytes, Kind last) {
  const size_t length = ReadNumber(bytes.first<4>());
  const auto kind = static_cast<Kind>(bytes[4]);
  const Header header{length + 4, kind};
  if (kind > last || length == 0 || header.frame_bytes > max_frame_bytes ||
      header.frame_bytes < header.payload_at() ||
      (kind == Kind::kHello && header.frame_bytes != header.payload_at())) {
    return std::nullopt;
  }
  return header;
}

void AppendMessage(std::vector<std::byte>& out,
                   std::span<const std::byte> payload) {
  AppendHeader(out, Kind::kMessage, payload.size());
  out.insert(out.end(), payload.begin(), payload.end());
}

void AppendStamped(std::vector<std::byte>& out, uint32_t stamp,
                   std::span<const std::byte> payload) {
  AppendHeader(out, Kind::kStamped, kStampBytes + payload.size());
  AppendNumber(out, stamp);
  out.insert(out.end(), payload.begin(), payload.end());
}

void AppendHello(std::vector<std::byte>& out, uint32_t stamp) {
  AppendHeader(out, Kind::kHello, kStampBytes);
  AppendNumber(out, stamp);
}

void AppendRefusal(std::vector<std::byte>& out, const Refusal& refusal) {
  const auto head =
      refusal.head.first(std::min(refusal.head.size(), kMostHeadBytes));
  const int64_t ms =
      std::chrono::ceil<std::chrono::milliseconds>(refusal.retry_after).count();
  AppendHeader(out, Kind::kRefusal, kRefusalBytes + head.size());
  out.push_back(static_cast<std::byte>(refusal.reason));
  out.push_back(static_cast<std::byte>(refusal.never_retry ? 1 : 0));
  AppendNumber(out, static_cast<uint32_t>(std::clamp<int64_t>(
                        ms, 0, std::numeric_limits<uint32_t>::max())));
  out.insert(out.end(), head.begin(), head.end());
}

std::optional<Refusal> ReadRefusal(std::span<const std::byte> payload) {
  if (payload.size() < kRefusalBytes) return std::nullopt;
  Refusal refusal;
  const auto reason = static_cast<size_t>(payload[0]);
  if (reason >= kFirstShedReason && reason < kReasons) {
    refusal.reason = static_cast<Reason>(reason);
  }
  refusal.never_retry = (payload[1] & std::byte{1}) != std::byte{};
  refusal.retry_after =
      std::chrono::milliseconds(ReadNumber(payload.subspan(2).first<4>()));
  refusal.head = payload.subspan(kRefusalBytes);
  return refusal;
}

}  // namespace weir::stream
