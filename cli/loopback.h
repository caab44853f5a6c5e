// Ports of the loopback.

#ifndef WEIR_CLI_LOOPBACK_H_
#define WEIR_CLI_LOOPBACK_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::cli {

// A port of 127.0.0.1 that nobody listened on a moment ago.
Result<uint16_t> FreePort();

// Whether one may listen on 127.0.0.1:`port`; else why not.
std::optional<Error> CheckPort(uint16_t port);

struct HostPort {
  std::string host;  // A name or an address; IPv6 without brackets.
  uint16_t port = 0;

  std::string text() const;  // "host:port", "[::1]:80".
};

// Reads "host:port" or "[v6]:port"; a leading "http://" and a trailing "/" are
// forgiven.
Result<HostPort> ParseHostPort(std::string_view text);

// Connects and hangs up; nothing when that worked, else why it did not.
std::optional<Error> TryConnect(const HostPort& to,
                                std::chrono::milliseconds timeout);

}  // namespace weir::cli

#endif  // WEIR_CLI_LOOPBACK_H_
