// Frames: how messages and Hellos lie in a stream.
//
//   length   4 bytes, big-endian: of all that follows, at least 1
//   kind     1 byte
//   stamp    4 bytes, big-endian: of kHello and kStamped only
//   payload  the rest; none in kHello
//
// The length comes first so that a frame can be skipped by its first 5 bytes.

#ifndef WEIR_STREAM_FRAME_H_
#define WEIR_STREAM_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::stream {

enum class Kind : uint8_t {
  kMessage = 0,
  kHello = 1,
  kStamped = 2,  // A message with a stamp of its own.
};

inline constexpr size_t kHeaderBytes = 5;
inline constexpr size_t kStampBytes = 4;

struct Header {
  size_t frame_bytes = 0;  // Of the whole frame, the length included.
  Kind kind = Kind::kMessage;
  size_t payload_at() const {
    return kHeaderBytes + (kind == Kind::kMessage ? 0 : kStampBytes);
  }
};

// Nothing when these bytes begin no frame, or one above `max_frame_bytes`.
std::optional<Header> ReadHeader(std::span<const std::byte, kHeaderBytes> bytes,
                                 size_t max_frame_bytes);

uint32_t ReadNumber(std::span<const std::byte, 4> bytes);

// Appends a frame to `out`.
void AppendMessage(std::vector<std::byte>& out,
                   std::span<const std::byte> payload);
void AppendStamped(std::vector<std::byte>& out, uint32_t stamp,
                   std::span<const std::byte> payload);
void AppendHello(std::vector<std::byte>& out, uint32_t stamp);

}  // namespace weir::stream

#endif  // WEIR_STREAM_FRAME_H_
