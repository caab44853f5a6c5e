// Inbox: the bounded buffer between the thread that reads a link and the loop
// that executes its frames.
//
// A ring of bytes with one writer and one reader.  The writer looks at headers
// as bytes come in, so that the reader sees whole, valid frames only and knows
// how much has arrived before it gets there.
//
//      read_           whole_         written_       (+ size)
//   ----|===============|--------------|................|---
//        whole frames    part of one    room

#ifndef WEIR_STREAM_INBOX_H_
#define WEIR_STREAM_INBOX_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weir/stream/frame.h"

namespace weir::stream {

class Inbox {
 public:
  // `bytes` is a power of 2 and at least twice `max_frame_bytes`, so that
  // there is room for a half as soon as all whole frames are read.
  // Frames of a kind past `last` are none.
  Inbox(size_t bytes, size_t max_frame_bytes, Kind last = Kind::kStamped)
      : bytes_(std::make_unique<std::byte[]>(bytes)),
        size_(bytes),
        max_frame_bytes_(max_frame_bytes),
        last_(last) {}

  // The writer's side.

  // Room for the next bytes, as far as they lie in one piece; maybe none.
  std::span<std::byte> Room();
  // `count` bytes were put there.  False when the stream is not ours: nothing
  // of what follows is shown to the reader, and the link should be closed.
  [[nodiscard]] bool Wrote(size_t count);
  // No room: the writer stops.  True when there is enough room by now and it
  // must go on; else Release() of the reader will tell.
  [[nodiscard]] bool Pause();

  // The reader's side.

  // The next frame; its payload is valid until Release().  False: none is
  // whole.
  struct Frame {
    Kind kind = Kind::kMessage;
    uint32_t stamp = 0;
    size_t frame_bytes = 0;
    std::span<const std::byte> payload;
  };
  [[nodiscard]] bool Next(Frame& frame);
  bool empty() const { return read_ == whole_.load(); }
  // Skips messages up to the next frame with a stamp, or the end, by their
  // headers.
  struct Skipped {
    size_t messages = 0;
    size_t bytes = 0;
  };
  Skipped SkipMessages();
  // Gives back the room of what was read.  True when the writer has paused and
  // must be told to go on.
  [[nodiscard]] bool Release();

  // Whole frames that arrived and their messages, since the start.  Bytes of
  // frames that are not whole do not count.  Any thread.
  uint64_t arrived_bytes() const { return whole_.load(); }
  uint64_t arrived_messages() const { return messages_.load(); }

 private:
  void Copy(uint64_t from, std::span<std::byte> to) const;
  Header HeaderAt(uint64_t at) const;
  // A quarter is filled with whole frames, or less: time to read more.
  bool Low() const;

  const std::unique_ptr<std::byte[]> bytes_;
  const size_t size_;
  const size_t max_frame_bytes_;
  const Kind last_;
  // Positions in the stream.
  uint64_t written_ = 0;            // The writer's.
  std::atomic<uint64_t> whole_{0};  // Set by the writer.
  std::atomic<uint64_t> messages_{0};
  uint64_t read_ = 0;                  // The reader's, and
  std::atomic<uint64_t> released_{0};  // what the writer knows of it.
  std::atomic<bool> paused_{false};
  std::vector<std::byte> unwrapped_;  // Payload that lay across the end.
};

}  // namespace weir::stream

#endif  // WEIR_STREAM_INBOX_H_
