// Texts for sources and networks.

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "weir/config/policy.h"

namespace weir::config {
namespace {

using Kind = weir::Source::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 3> kKinds = {
    {{"header:", Kind::kHeader},
     {"baggage:", Kind::kBaggage},
     {"variable:", Kind::kVariable}}};

constexpr uint8_t kMappedBits = 96;
constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0,    0,
                                             0, 0, 0, 0, 0xff, 0xff};

bool IsAlnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9');
}

// Source: RFC 9110 section 5.6.2, token; W3C baggage keys are tokens too.
bool IsTokenChar(char c) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return IsAlnum(c) || kMarks.find(c) != std::string_view::npos;
}

bool IsVariableChar(char c) { return IsAlnum(c) || c == '_'; }

bool IsMapped(const Network& network) {
  return network.prefix_bits >= kMappedBits &&
         std::equal(kMapped.begin(), kMapped.end(), network.address.begin());
}

// The address with all bits after the prefix cleared.
Network Masked(Network network) {
  for (size_t i = 0; i < network.address.size(); ++i) {
    const int keep =
        std::clamp(network.prefix_bits - static_cast<int>(i) * 8, 0, 8);
    network.address[i] &= static_cast<uint8_t>(0xff00 >> keep);
  }
  return network;
}

// Reads the address; the prefix becomes that of this one address.
bool ReadAddress(const std::string& text, Network& network, int& bits) {
  uint8_t* bytes = network.address.data();
  if (inet_pton(AF_INET, text.c_str(), bytes + kMapped.size()) == 1) {
    std::copy(kMapped.begin(), kMapped.end(), bytes);
    bits = 32;
    return true;
  }
  bits = 128;
  return inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

}  // namespace

Result<Source> ParseSource(std::string_view text) {
  for (const auto& [name, kind] : kKinds) {
    if (!text.starts_with(name)) continue;
    std::string key(text.substr(name.size()));
    if (key.empty())
      return Error{"names nothing after `" + std::string(name) + '`'};
    const bool variable = kind == Kind::kVariable;
    if (variable && key[0] == '$')
      return Error{"has a `$`, which is not part of the name"};
    if (!std::all_of(key.begin(), key.end(),
                     variable ? IsVariableChar : IsTokenChar)) {
      return Error{"has a character that no such name can have"};
    }
    if (kind == Kind::kHeader) {
      for (char& c : key) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
      }
    }
    return Source{kind, std::move(key)};
  }
  return Error{"does not say where to look"};
}

std::string NearestSource(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c != ' ') plain += c;
  }
  std::string lower = plain;
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  // "Header: X", "$remote_addr", "variable:$remote_addr", "x-api-key".
  const size_t colon = plain.find(':');
  std::string guess = colon == std::string::npos
                          ? plain
                          : lower.substr(0, colon) + plain.substr(colon);
  if (guess.starts_with('$')) guess = "variable:" + guess.substr(1);
  if (guess.starts_with("variable:$")) guess.erase(9, 1);
  if (guess.find(':') == std::string::npos &&
      guess.find('-') != std::string::npos) {
    guess = "header:" + guess;
  }
  return ParseSource(guess) ? guess : std::string();
}

std::string NearestNetwork(std::string_view text) {
  // "10.0.0.1/8": the network that it lies in.
  const size_t slash = text.find('/');
  Network network;
  int most = 0;
  const std::string address(text.substr(0, slash));
  if (slash == std::string_view::npos ||
      address.find('\0') != std::string::npos ||
      !ReadAddress(address, network, most)) {
    return {};
  }
  int bits = 0;
  const std::string_view prefix = text.substr(slash + 1);
  const char* end = prefix.data() + prefix.size();
  const auto read = std::from_chars(prefix.data(), end, bits);
  if (read.ec != std::errc() || read.ptr != end || bits < 0 || bits > most) {
    return {};
  }
  network.prefix_bits = static_cast<uint8_t>(bits + 128 - most);
  return FormatNetwork(Masked(network));
}

std::string FormatSource(const Source& source) {
  for (const auto& [name, kind] : kKinds) {
    if (kind == source.kind) return std::string(name) + source.key;
  }
  return source.key;
}

Result<Network> ParseNetwork(std::string_view text) {
  const size_t slash = text.find('/');
  Network network;
  int most = 0;
  // A NUL byte would end the text for inet_pton() alone.
  const std::string address(text.substr(0, slash));
  if (address.find('\0') != std::string::npos ||
      !ReadAddress(address, network, most)) {
    return Error{"is no IP address"};
  }
  int bits = most;
  if (slash != std::string_view::npos) {
    const std::string_view prefix = text.substr(slash + 1);
    const char* end = prefix.data() + prefix.size();
    const auto read = std::from_chars(prefix.data(), end, bits);
    if (read.ec != std::errc() || read.ptr != end || bits < 0 || bits > most) {
      return Error{"has a prefix that is not from 0 to " +
                   std::to_string(most)};
    }
  }
  network.prefix_bits = static_cast<uint8_t>(bits + 128 - most);
  const Network masked = Masked(network);
  if (masked != network) {
    return Error{"has bits after its prefix; its network is " +
                 FormatNetwork(masked)};
  }
  return network;
}

std::string FormatNetwork(const Network& network) {
  std::array<char, INET6_ADDRSTRLEN> buffer;
  const bool mapped = IsMapped(network);
  const uint8_t* bytes = network.address.data();
  inet_ntop(mapped ? AF_INET : AF_INET6,
            mapped ? bytes + kMapped.size() : bytes, buffer.data(),
            buffer.size());
  const int bits = network.prefix_bits - (mapped ? kMappedBits : 0);
  return std::string(buffer.data()) + '/' + std::to_string(bits);
}

}  // namespace weir::config
