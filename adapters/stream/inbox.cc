#include "inbox.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace weir::stream {

std::span<std::byte> Inbox::Room() {
  const size_t used = static_cast<size_t>(written_ - released_.load());
  const size_t at = static_cast<size_t>(written_) & (size_ - 1);
  return {bytes_.get() + at, std::min(size_ - used, size_ - at)};
}

bool Inbox::Wrote(size_t count) {
  written_ += count;
  uint64_t whole = whole_.load();
  uint64_t messages = messages_.load();
  bool valid = true;
  while (written_ - whole >= kHeaderBytes) {
    std::array<std::byte, kHeaderBytes> bytes;
    Copy(whole, bytes);
    const auto header = ReadHeader(bytes, max_frame_bytes_, last_);
    valid = header.has_value();
    if (!valid || written_ - whole < header->frame_bytes) break;
    whole += header->frame_bytes;
    if (header->kind != Kind::kHello) ++messages;
  }
  messages_.store(messages);
  whole_.store(whole);
  return valid;
}

// Either the reader sees that we have paused or we see what it has released:
// all of these are sequentially consistent.
bool Inbox::Pause() {
  paused_.store(true);
  return Low() && paused_.exchange(false);
}

bool Inbox::Release() {
  released_.store(read_);
  return paused_.load() && Low() && paused_.exchange(false);
}

bool Inbox::Low() const {
  return whole_.load() - released_.load() <= size_ / 4;
}

bool Inbox::Next(Frame& frame) {
  if (read_ == whole_.load()) return false;
  const Header header = HeaderAt(read_);
  frame.kind = header.kind;
  frame.frame_bytes = header.frame_bytes;
  frame.stamp = 0;
  if (HasStamp(header.kind)) {
    std::array<std::byte, kStampBytes> stamp;
    Copy(read_ + kHeaderBytes, stamp);
    frame.stamp = ReadNumber(stamp);
  }
  const uint64_t from = read_ + header.payload_at();
  const size_t length = header.frame_bytes - header.payload_at();
  const size_t at = static_cast<size_t>(from) & (size_ - 1);
  if (at + length <= size_) {
    frame.payload = {bytes_.get() + at, length};
  } else {
    unwrapped_.resize(length);
    Copy(from, unwrapped_);
    frame.payload = unwrapped_;
  }
  read_ += header.frame_bytes;
  return true;
}

Inbox::Skipped Inbox::SkipMessages() {
  const uint64_t whole = whole_.load();
  Skipped skipped;
  while (read_ != whole) {
    const Header header = HeaderAt(read_);
    if (header.kind != Kind::kMessage) break;
    read_ += header.frame_bytes;
    skipped.bytes += header.frame_bytes;
    ++skipped.messages;
  }
  return skipped;
}

// Of a frame that Wrote() has found to be valid.
Header Inbox::HeaderAt(uint64_t at) const {
  std::array<std::byte, kHeaderBytes> bytes;
  Copy(at, bytes);
  return {ReadNumber(std::span(bytes).first<4>()) + size_t{4},
          static_cast<Kind>(bytes[4])};
}

void Inbox::Copy(uint64_t from, std::span<std::byte> to) const {
  if (to.empty()) return;
  const size_t at = static_cast<size_t>(from) & (size_ - 1);
  const size_t first = std::min(to.size(), size_ - at);
  std::memcpy(to.data(), bytes_.get() + at, first);
  if (first < to.size()) {
    std::memcpy(to.data() + first, bytes_.get(), to.size() - first);
  }
}

}  // namespace weir::stream
