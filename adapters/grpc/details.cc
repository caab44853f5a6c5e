#include "details.h"

namespace weir::grpc {
namespace {

void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    out.push_back(static_cast<char>(value | 0x80));
  }
  out.push_back(static_cast<char>(value));
}

void AppendInteger(std::string& out, uint32_t field, int64_t value) {
  if (value == 0) return;
  AppendVarint(out, field << 3);
  AppendVarint(out, static_cast<uint64_t>(value));
}

void AppendBytes(std::string& out, uint32_t field, std::string_view bytes) {
  AppendVarint(out, field << 3 | 2);
  AppendVarint(out, bytes.size());
  out += bytes;
}

// A google.protobuf.Any among the details of a google.rpc.Status.
void AppendDetail(std::string& out, std::string_view type,
                  std::string_view message) {
  std::string any;
  AppendBytes(any, 1, "type.googleapis.com/google.rpc." + std::string(type));
  AppendBytes(any, 2, message);
  AppendBytes(out, 3, any);
}

std::string RetryInfo(int64_t ms) {
  std::string duration;
  AppendInteger(duration, 1, ms / 1000);
  AppendInteger(duration, 2, ms % 1000 * 1'000'000);
  std::string info;
  AppendBytes(info, 1, duration);
  return info;
}

std::string ErrorInfo(const Refusal& refusal) {
  std::string info;
  std::string reason(refusal.reason);
  for (char& c : reason) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  AppendBytes(info, 1, reason);
  AppendBytes(info, 2, "weir");
  const auto add = [&info](std::string_view key, std::string_view value) {
    std::string entry;
    AppendBytes(entry, 1, key);
    AppendBytes(entry, 2, value);
    AppendBytes(info, 3, entry);
  };
  add("executed", "false");
  add("resource", refusal.resource);
  add("service", refusal.service);
  return info;
}

}  // namespace

std::string EncodeStatus(const Refusal& refusal) {
  std::string status;
  AppendInteger(status, 1, refusal.code);
  AppendBytes(status, 2, refusal.message);
  if (refusal.retry_after_ms >= 0) {
    AppendDetail(status, "RetryInfo", RetryInfo(refusal.retry_after_ms));
  }
  AppendDetail(status, "ErrorInfo", ErrorInfo(refusal));
  return status;
}

}  // namespace weir::grpc
