// Frames: how messages, Hellos and refusals lie in a stream.
//
//   length   4 bytes, big-endian: of all that follows, at least 1
//   kind     1 byte
//   stamp    4 bytes, big-endian: of kHello and kStamped only
//   payload  the rest; none in kHello
//
// The payload of kRefusal, which servers send and nobody else:
//
//   reason   1 byte: weir::Reason
//   flags    1 byte: 1, never retry; other bits are to be ignored
//   retry    4 bytes, big-endian: when to come back, in ms
//   head     the rest: how the payload of the refused message begins
//
// The length comes first so that a frame can be skipped by its first 5 bytes.

#ifndef WEIR_STREAM_FRAME_H_
#define WEIR_STREAM_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weir/decision.h"
#include "weir/time.h"

namespace weir::stream {

enum class Kind : uint8_t {
  kMessage = 0,
  kHello = 1,
  kStamped = 2,  // A message with a stamp of its own.
  kRefusal = 3,
};

constexpr bool HasStamp(Kind kind) {
  return kind == Kind::kHello || kind == Kind::kStamped;
}

inline constexpr size_t kHeaderBytes = 5;
inline constexpr size_t kStampBytes = 4;

struct Header {
  size_t frame_bytes = 0;  // Of the whole frame, the length included.
  Kind kind = Kind::kMessage;
  size_t payload_at() const {
    return kHeaderBytes + (HasStamp(kind) ? kStampBytes : 0);
  }
};

// Nothing when these bytes begin no frame, one above `max_frame_bytes`, or one
// of a kind past `last`.
std::optional<Header> ReadHeader(std::span<const std::byte, kHeaderBytes> bytes,
                                 size_t max_frame_bytes, Kind last);

uint32_t ReadNumber(std::span<const std::byte, 4> bytes);

// Appends a frame to `out`.
void AppendMessage(std::vector<std::byte>& out,
                   std::span<const std::byte> payload);
void AppendStamped(std::vector<std::byte>& out, uint32_t stamp,
                   std::span<const std::byte> payload);
void AppendHello(std::vector<std::byte>& out, uint32_t stamp);

// A message that a server's guard refused.
struct Refusal {
  Reason reason = Reason::kLimit;
  // After what time a new attempt is likely to meet room; at most 49 days.
  Duration retry_after{};
  bool never_retry = false;
  // How the message began, for protocols that have a number there.
  std::span<const std::byte> head;
};
// Of Refusal::head.  Chosen: a number of a request, or two.
inline constexpr size_t kMostHeadBytes = 16;
inline constexpr size_t kRefusalBytes = 6;
inline constexpr size_t kMostRefusalFrameBytes =
    kHeaderBytes + kRefusalBytes + kMostHeadBytes;

// Takes the first kMostHeadBytes of `head`.
void AppendRefusal(std::vector<std::byte>& out, const Refusal& refusal);
// From the payload of a kRefusal, which must live as long.  A reason that is
// not known here, of a newer server, becomes kLimit.
std::optional<Refusal> ReadRefusal(std::span<const std::byte> payload);

}  // namespace weir::stream

#endif  // WEIR_STREAM_FRAME_H_
