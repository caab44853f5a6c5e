#include "weir/http/request_inputs.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <limits>
#include <tuple>

#include "weir/client/wire.h"
#include "weir/config/units.h"
#include "weir/text.h"

namespace weir::http {
namespace {

using namespace std::string_view_literals;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Digits alone, at least one; as much as fits when it is too large.
std::optional<int64_t> ParseDigits(std::string_view text) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  if (text.empty()) return std::nullopt;
  int64_t value = 0;
  for (const char c : text) {
    if (!IsDigit(c)) return std::nullopt;
    value = value > (kMax - 9) / 10 ? kMax : value * 10 + (c - '0');
  }
  return value;
}

Duration Times(int64_t count, Duration unit) {
  return count > Duration::max() / unit ? Duration::max() : count * unit;
}

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// An address as it stands in x-forwarded-for, maybe with a port.
std::optional<Address> ParseAddress(std::string_view text) {
  if (text.starts_with('[')) {
    text = text.substr(1, text.find(']') - 1);
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    text = text.substr(0, text.find(':'));
  }
  text = text.substr(0, text.find('%'));
  std::array<char, INET6_ADDRSTRLEN> copy{};
  if (text.size() >= copy.size()) return std::nullopt;
  std::memcpy(copy.data(), text.data(), text.size());
  std::array<uint8_t, 4> four;
  if (inet_pton(AF_INET, copy.data(), four.data()) == 1) return MapIPv4(four);
  Address six;
  if (inet_pton(AF_INET6, copy.data(), six.data()) == 1) return six;
  return std::nullopt;
}

// FNV-1a, then a finalizer that lets every byte reach every bit.
// Source: [FNV], [MURMUR3] fmix64.
uint64_t HashBytes(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccd;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53;
  hash ^= hash >> 33;
  return hash == 0 ? 1 : hash;
}

// The client that comes from an IPv6 address: its /64, or the IPv4 address that
// it stands for.
uint64_t HashAddress(const Address& address) {
  constexpr std::array<uint8_t, 12> kMapped{0, 0, 0, 0, 0,    0,
                                            0, 0, 0, 0, 0xff, 0xff};
  std::array<char, INET_ADDRSTRLEN> v4;
  if (std::equal(kMapped.begin(), kMapped.end(), address.begin()) &&
      inet_ntop(AF_INET, address.data() + kMapped.size(), v4.data(),
                v4.size()) != nullptr) {
    return HashBytes(v4.data());
  }
  return HashBytes({reinterpret_cast<const char*>(address.data()), 8});
}

// nginx has addresses in bytes, too, of which none is a blank.
constexpr std::string_view kBinaryAddress = "binary_remote_addr";

uint64_t HashClientFrom(const Source& source, std::string_view value) {
  if (source.kind == Source::Kind::kVariable && source.key == kBinaryAddress &&
      value.size() == std::tuple_size_v<Address>) {
    Address address;
    std::copy(value.begin(), value.end(), address.begin());
    return HashAddress(address);
  }
  return HashClient(value);
}

// A percent-decoded value, in place of an allocation.
class Decoded {
 public:
  // Chosen: no name of a class and no sensible client key is longer; what is
  // reads as if it were not there.
  static constexpr size_t kMost = 256;

  std::optional<std::string_view> Decode(std::string_view text) {
    size_t size = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      if (size == kMost) return std::nullopt;
      char c = text[i];
      if (c == '%') {
        if (i + 2 >= text.size()) return std::nullopt;
        const int high = HexDigit(text[i + 1]);
        const int low = HexDigit(text[i + 2]);
        if (high < 0 || low < 0) return std::nullopt;
        c = static_cast<char>(high * 16 + low);
        i += 2;
      }
      bytes_[size++] = c;
    }
    return std::string_view(bytes_.data(), size);
  }

 private:
  std::array<char, kMost> bytes_;
};

// Hands each value that `source` has to `parse` until one parses.
template <typename T, typename Parse>
std::optional<T> First(const Source& source, bool trusted,
                       Properties& properties, Parse parse) {
  if (source.kind == Source::Kind::kVariable) {
    const auto value = properties.Variable(source.key);
    if (!value) return std::nullopt;
    return parse(source.key == kBinaryAddress ? *value : text::Trim(*value));
  }
  if (!trusted) return std::nullopt;
  const bool baggage = source.kind == Source::Kind::kBaggage;
  const std::string_view name = baggage ? "baggage"sv : source.key;
  for (int nth = 0;; ++nth) {
    const auto line = properties.Header(name, nth);
    if (!line) return std::nullopt;
    std::optional<std::string_view> value = text::Trim(*line);
    Decoded decoded;
    if (baggage) {
      value = BaggageMember(*line, source.key);
      if (value) value = decoded.Decode(*value);
      if (!value) continue;
    }
    if (std::optional<T> parsed = parse(*value)) return parsed;
  }
}

template <typename T, typename Parse>
std::optional<T> FirstOf(const std::vector<Source>& sources, bool trusted,
                         Properties& properties, Parse parse) {
  for (const Source& source : sources) {
    auto parsed =
        First<T>(source, trusted, properties,
                 [&](std::string_view text) { return parse(source, text); });
    if (parsed) return parsed;
  }
  return std::nullopt;
}

constexpr std::string_view kForwardedFor = "x-forwarded-for";

// Each proxy adds whom it got the request from at the end, so the last address
// that is no proxy of ours is the client; when all are ours, the first.
std::optional<std::string_view> ForwardedFor(const Policy& policy,
                                             Properties& properties) {
  int lines = 0;
  while (properties.Header(kForwardedFor, lines)) ++lines;
  std::optional<std::string_view> client;
  while (--lines >= 0) {
    std::string_view rest = *properties.Header(kForwardedFor, lines);
    while (!rest.empty()) {
      const size_t comma = rest.rfind(',');
      const bool first = comma == std::string_view::npos;
      const std::string_view part =
          text::Trim(first ? rest : rest.substr(comma + 1));
      rest = first ? std::string_view() : rest.substr(0, comma);
      if (part.empty()) continue;
      client = part;
      const auto address = ParseAddress(part);
      if (!address || !IsTrusted(policy.trusted, *address)) return client;
    }
  }
  return client;
}

std::optional<uint64_t> ParseClient(const Source& source,
                                    std::string_view key) {
  const uint64_t hash = HashClientFrom(source, key);
  return hash == 0 ? std::nullopt : std::optional<uint64_t>(hash);
}

std::optional<uint64_t> ReadClient(const Policy& policy, bool trusted,
                                   Properties& properties) {
  for (const Source& source : policy.client_from) {
    std::optional<uint64_t> client;
    if (source.kind == Source::Kind::kHeader && source.key == kForwardedFor) {
      const auto address =
          trusted ? ForwardedFor(policy, properties) : std::nullopt;
      if (address) client = ParseClient(source, *address);
    } else {
      client = First<uint64_t>(
          source, trusted, properties,
          [&](std::string_view key) { return ParseClient(source, key); });
    }
    if (client) return client;
  }
  return std::nullopt;
}

std::optional<Duration> ReadBudget(const Policy& policy, bool trusted,
                                   Properties& properties) {
  return FirstOf<Duration>(
      policy.deadline_from, trusted, properties,
      [](const Source& source, std::string_view text) {
        // Only a header's name says how its value is written.
        const bool header = source.kind == Source::Kind::kHeader;
        return ParseBudget(header ? source.key : std::string_view(), text);
      });
}

// How often it was tried before; Envoy counts the first time as 1.
uint8_t ReadAttempt(bool trusted, Properties& properties) {
  if (!trusted) return 0;
  const auto read = [&](std::string_view name, int64_t first) -> uint8_t {
    const auto line = properties.Header(name, 0);
    const auto number = line ? ParseDigits(text::Trim(*line)) : std::nullopt;
    if (!number) return 0;
    return static_cast<uint8_t>(std::clamp<int64_t>(*number - first, 0, 255));
  };
  return std::max({read(wire::kAttempt, 0), read(wire::kGrpcAttempts, 0),
                   read("x-envoy-attempt-count", 1)});
}

}  // namespace

Request ReadRequest(const Policy& policy, uint16_t index, bool trusted,
                    Properties& properties, Instant began, Instant asked) {
  const Resource& resource = policy.resources[index];
  Request request;
  request.resource = index;
  request.arrived = asked;
  request.criticality =
      FirstOf<Criticality>(policy.criticality_from, trusted, properties,
                           [](const Source&, std::string_view text) {
                             return ParseCriticality(text);
                           })
          .value_or(resource.criticality);
  request.client = ReadClient(policy, trusted, properties).value_or(0);
  request.attempt = ReadAttempt(trusted, properties);
  const auto stated = ReadBudget(policy, trusted, properties);
  const Duration budget =
      stated.value_or(resource.deadline.value_or(policy.deadline));
  request.deadline =
      (stated ? began : asked) + std::min(budget, policy.deadline_ceiling);
  return request;
}

Address MapIPv4(const std::array<uint8_t, 4>& address) {
  Address mapped{};
  mapped[10] = mapped[11] = 0xff;
  std::copy(address.begin(), address.end(), mapped.begin() + 12);
  return mapped;
}

bool Contains(const Network& network, const Address& address) {
  const size_t bytes = std::min<size_t>(network.prefix_bits / 8, 16);
  if (!std::equal(address.begin(), address.begin() + bytes,
                  network.address.begin())) {
    return false;
  }
  const int rest = network.prefix_bits % 8;
  if (bytes == 16 || rest == 0) return true;
  return ((address[bytes] ^ network.address[bytes]) >> (8 - rest)) == 0;
}

bool IsTrusted(const std::vector<Network>& networks, const Address& address) {
  return std::any_of(networks.begin(), networks.end(),
                     [&](const Network& n) { return Contains(n, address); });
}

std::optional<std::string_view> BaggageMember(std::string_view header,
                                              std::string_view key) {
  while (!header.empty()) {
    const size_t comma = header.find(',');
    const std::string_view member = header.substr(0, comma);
    header.remove_prefix(comma == std::string_view::npos ? header.size()
                                                         : comma + 1);
    const size_t equals = member.find('=');
    if (equals == std::string_view::npos) continue;
    if (text::Trim(member.substr(0, equals)) != key) continue;
    const std::string_view rest = member.substr(equals + 1);
    return text::Trim(rest.substr(0, rest.find(';')));
  }
  return std::nullopt;
}

std::optional<Duration> ParseGrpcTimeout(std::string_view text) {
  if (text.size() < 2 || text.size() > 9) return std::nullopt;
  const std::optional<int64_t> count =
      ParseDigits(text.substr(0, text.size() - 1));
  if (!count) return std::nullopt;
  switch (text.back()) {
    case 'H':
      return Times(*count, std::chrono::hours(1));
    case 'M':
      return Times(*count, std::chrono::minutes(1));
    case 'S':
      return Times(*count, std::chrono::seconds(1));
    case 'm':
      return Times(*count, std::chrono::milliseconds(1));
    case 'u':
      return Times(*count, std::chrono::microseconds(1));
    case 'n':
      return Times(*count, Duration(1));
    default:
      return std::nullopt;
  }
}

std::optional<Duration> ParseMilliseconds(std::string_view text) {
  const std::optional<int64_t> count = ParseDigits(text);
  if (!count || *count == 0) return std::nullopt;
  return Times(*count, std::chrono::milliseconds(1));
}

std::optional<Duration> ParseBudget(std::string_view name,
                                    std::string_view text) {
  if (name == "grpc-timeout") return ParseGrpcTimeout(text);
  if (name.ends_with("-ms")) return ParseMilliseconds(text);
  // What programs write most; the whole grammar takes four times as long.
  if (text.ends_with("ms") && text.size() <= 10) {
    const auto count = ParseDigits(text.substr(0, text.size() - 2));
    if (count) return Times(*count, std::chrono::milliseconds(1));
  }
  const Result<Duration> parsed = config::ParseDuration(text);
  return parsed ? std::optional(*parsed) : std::nullopt;
}

BudgetText PrintBudget(std::string_view name, Duration budget) {
  constexpr int64_t kMostOfGrpc = 99'999'999;  // Eight digits.
  const bool grpc = name == "grpc-timeout";
  std::string_view unit = grpc ? "m"sv : name.ends_with("-ms") ? ""sv : "ms"sv;
  int64_t count = std::max<int64_t>(1, budget / std::chrono::milliseconds(1));
  if (grpc && count > kMostOfGrpc) {
    unit = "S";
    count = std::min(count / 1000, kMostOfGrpc);
  }
  BudgetText text;
  char* const end =
      std::to_chars(text.bytes.begin(), text.bytes.end(), count).ptr;
  text.size = static_cast<size_t>(std::copy(unit.begin(), unit.end(), end) -
                                  text.bytes.begin());
  return text;
}

uint64_t HashClient(std::string_view key) {
  if (key.empty()) return 0;
  if (key.find(':') != std::string_view::npos) {
    if (const auto address = ParseAddress(key)) return HashAddress(*address);
  }
  return HashBytes(key);
}

}  // namespace weir::http
