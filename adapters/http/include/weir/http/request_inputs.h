// What a request says about itself: criticality, client and deadline.
//
// An adapter shows a request through Properties; which of them are read, and
// in what order, is the policy's (criticality_from, deadline_from,
// client_from).  Headers are hearsay: they are read only when the peer that
// sent them is in one of the policy's trusted networks.  Variables are the
// adapter's own words and are always read.
//
// Nothing here fails.  What is malformed reads as if it were not there, so
// that a broken caller gets the resource's own values and no error.

#ifndef WEIR_HTTP_REQUEST_INPUTS_H_
#define WEIR_HTTP_REQUEST_INPUTS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "weir/policy.h"
#include "weir/request.h"
#include "weir/time.h"

namespace weir::http {

// A request as an adapter sees it.  What is returned must stay valid until
// ReadRequest() is done.
class Properties {
 public:
  // The value of line `nth` (from 0) of those with that name, in the order in
  // which they came.  `name` is lower case; the match must ignore case.
  virtual std::optional<std::string_view> Header(std::string_view name,
                                                 int nth) = 0;
  // The adapter's variable of that name; nothing when there is none such.
  virtual std::optional<std::string_view> Variable(std::string_view name) = 0;

 protected:
  ~Properties() = default;
};

// The request to hand to Guard::Admit().
//
// The deadline is `began`, when the request came, plus the first budget that is
// present and parses; else `asked`, when it is decided and the service could
// begin, plus the resource's budget, else the policy's: nobody asked for that
// one, so an upload or a delay before the decision does not eat it.  Budgets
// are cut to Policy::deadline_ceiling. A client that is read from
// x-forwarded-for is the last address in it that is not in a trusted network:
// what stands before it anybody may have written. The attempt is read from
// weir-attempt, grpc-previous-rpc-attempts (both 0 or absent for the first
// time) and x-envoy-attempt-count (1 for the first); the largest counts.
// `resource` indexes policy.resources.  O(sources * headers); allocates only
// for a malformed duration.
Request ReadRequest(const Policy& policy, uint16_t resource, bool trusted,
                    Properties& properties, Instant began, Instant asked);

// An address as Network holds it: IPv6, or IPv4 as ::ffff:a.b.c.d.
using Address = std::array<uint8_t, 16>;
Address MapIPv4(const std::array<uint8_t, 4>& address);
bool Contains(const Network& network, const Address& address);
bool IsTrusted(const std::vector<Network>& networks, const Address& address);

// The parts, for adapters that need just one.

// The value of the first member of that name in a W3C baggage header, without
// properties, still percent-encoded.
// Source: [W3C-BAGGAGE] section 3.3.1.
std::optional<std::string_view> BaggageMember(std::string_view header,
                                              std::string_view key);

// 1 to 8 digits and one of H M S m u n.  Zero: the deadline has passed.
// Source: [GRPC-HTTP2], "Timeout".
std::optional<Duration> ParseGrpcTimeout(std::string_view text);

// Digits alone, milliseconds.  Nothing for 0, which in
// x-envoy-expected-rq-timeout-ms means that there is no timeout.  What is
// longer than 292 years is cut to that.
std::optional<Duration> ParseMilliseconds(std::string_view text);

// As the header named `name` is written: grpc-timeout as above, names that end
// in "-ms" in milliseconds, others with their unit, as in a policy ("250ms").
std::optional<Duration> ParseBudget(std::string_view name,
                                    std::string_view text);

// The other way round, rounded down to milliseconds, at least one: zero would
// mean that there is no timeout in some headers.
struct BudgetText {
  std::array<char, 24> bytes;
  size_t size = 0;
  std::string_view text() const { return {bytes.data(), size}; }
};
BudgetText PrintBudget(std::string_view name, Duration budget);

// A stable, never 0 hash of a client key; 0 when it is empty.  A key that is an
// IPv6 address, as text, counts as its /64: whoever has one has all of it.  The
// port of an address does not count.
uint64_t HashClient(std::string_view key);

}  // namespace weir::http

#endif  // WEIR_HTTP_REQUEST_INPUTS_H_
