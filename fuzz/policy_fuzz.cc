// Whatever the bytes: ParsePolicy() returns; what it accepts passes
// Policy::Check() and prints to a policy that reads back the same; what it
// refuses has complaints whose text is safe for a terminal.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "weir/config/policy.h"

namespace {

void Expect(bool holds, const char* what, const std::string& text) {
  if (holds) return;
  std::fprintf(stderr, "policy_fuzz: %s\n%s\n", what, text.c_str());
  std::abort();
}

bool IsPrintable(const std::string& text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n') || byte == 0x7f) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto policy = weir::config::ParsePolicy(text, "fuzz.toml");
  if (!policy) {
    const std::string report = policy.complaints().Print();
    Expect(!policy.complaints().empty(), "refused without a complaint", text);
    Expect(IsPrintable(report), "a report with control characters", report);
    return 0;
  }
  Expect(!policy->Check(), "accepted, but does not pass Check()", text);
  const std::string printed = weir::config::PrintPolicy(*policy);
  const auto again = weir::config::ParsePolicy(printed, "printed.toml");
  Expect(again.ok(), "the normal form is refused", printed);
  Expect(*again == *policy, "the normal form is another policy", printed);
  return 0;
}
