#include "foreign_words.h"

#include <algorithm>
#include <array>

namespace weir::config {
namespace {

constexpr std::string_view kQuota =
    "a fixed rate of one resource is its quota: write `quota = { calls = 100, "
    "window = \"1s\" }`";
constexpr std::string_view kCriticality =
    "write `criticality`, which is \"vital\", \"important\", \"deferrable\" or "
    "\"sheddable\"";
constexpr std::string_view kDeadline = "write `deadline`";
constexpr std::string_view kLearned =
    "remove it; how much may run at once is learned, for all resources "
    "together; a service with a fixed number of threads sets `limit.workers`";
constexpr std::string_view kCallers =
    "remove it; it belongs to the callers, who have a client guard of their "
    "own";
constexpr std::string_view kDegrade =
    "write `degrade = [{ name = \"...\" }]`, the cheaper ways to answer";

struct Word {
  std::string_view row;  // Of the table that it stands in.
  std::string_view key;  // In lower case, without '_' and '-'.
  std::string_view advice;
};

// Source: the documentation of each, as in docs/references.md.
//   Sentinel: FlowRule, DegradeRule, SystemRule.  Envoy: circuit breakers,
//   local rate limit, adaptive concurrency.  nginx: limit_req, limit_conn,
//   proxy_read_timeout.  HAProxy: server, timeout.  resilience4j: Bulkhead,
//   RateLimiter, TimeLimiter, CircuitBreaker.
constexpr std::array kWords = {
    Word{"resource.*", "qps", kQuota},
    Word{"resource.*", "rps", kQuota},
    Word{"resource.*", "rate", kQuota},
    Word{"resource.*", "ratelimit", kQuota},
    Word{"resource.*", "limitreq", kQuota},
    Word{"resource.*", "count", kQuota},
    Word{"resource.*", "burst", kQuota},
    Word{"resource.*", "maxtokens", kQuota},
    Word{"resource.*", "tokensperfill", kQuota},
    Word{"resource.*", "requestsperunit", kQuota},
    Word{"resource.*", "limitforperiod", kQuota},
    Word{"resource.*", "limitrefreshperiod", kQuota},
    Word{"resource.*", "priority", kCriticality},
    Word{"resource.*", "importance", kCriticality},
    Word{"resource.*", "weight", kCriticality},
    Word{"resource.*", "timeout", kDeadline},
    Word{"resource.*", "timeoutduration", kDeadline},
    Word{"resource.*", "maxwaitduration", kDeadline},
    Word{"resource.*", "maxqueueingtimems", kDeadline},
    Word{"resource.*", "proxyreadtimeout", kDeadline},
    Word{"resource.*", "maxconcurrency", kLearned},
    Word{"resource.*", "maxconcurrentcalls", kLearned},
    Word{"resource.*", "concurrency", kLearned},
    Word{"resource.*", "concurrencylimit", kLearned},
    Word{"resource.*", "maxconn", kLearned},
    Word{"resource.*", "maxconnections", kLearned},
    Word{"resource.*", "maxrequests", kLearned},
    Word{"resource.*", "maxpendingrequests", kLearned},
    Word{"resource.*", "maxthread", kLearned},
    Word{"resource.*", "limitconn", kLearned},
    Word{"resource.*", "limit", kLearned},
    Word{"resource.*", "maxqueue", kLearned},
    Word{"resource.*", "avgrt",
         "remove it; `[system]` has `latency`, for all resources together"},
    Word{"resource.*", "maxretries", kCallers},
    Word{"resource.*", "retries", kCallers},
    Word{"resource.*", "failureratethreshold", kCallers},
    Word{"resource.*", "slowcalldurationthreshold", kCallers},
    Word{"resource.*", "fallback", kDegrade},
    Word{"system", "highestsystemload", "write `load`"},
    Word{"system", "highestcpuusage", "write `cpu`"},
    Word{"system", "avgrt", "write `latency`"},
    Word{"system", "maxthread", "write `threads`"},
    Word{"system", "rps", "write `qps`"},
    Word{"limit", "maxconcurrency", "write `ceiling`"},
    Word{"limit", "maxconcurrencylimit", "write `ceiling`"},
    Word{"limit", "maxconn", "write `ceiling`"},
    Word{"limit", "max", "write `ceiling`"},
    Word{"limit", "minconcurrency", "write `floor`"},
    Word{"limit", "min", "write `floor`"},
    Word{"limit", "threads", "write `workers`"},
    Word{"limit", "maxthread", "write `workers`"},
    Word{"limit", "maxconcurrentcalls", "write `workers`"},
    Word{"deadline", "timeout", "write `default`"},
    Word{"deadline", "max", "write `ceiling`"},
    Word{"", "timeout", "write `deadline.default`"},
    Word{"", "maxconcurrency",
         "write `limit.workers` for a service with a fixed number of threads; "
         "else remove it, since the limit is learned"},
    Word{"", "maxconn",
         "write `limit.workers` for a service with a fixed number of threads; "
         "else remove it, since the limit is learned"},
    Word{"", "priority", "write `criticality` in a resource"},
    Word{"", "qps", "write `system.qps`, or a `quota` in a resource"},
    Word{"", "name", "write `service`"},
};

}  // namespace

std::string AdviseForeignWord(std::string_view row, std::string_view key) {
  std::string plain;
  for (const char c : key) {
    if (c == '_' || c == '-') continue;
    plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  const auto* word =
      std::find_if(kWords.begin(), kWords.end(), [&](const Word& known) {
        return known.row == row && known.key == plain;
      });
  return word == kWords.end() ? std::string() : std::string(word->advice);
}

}  // namespace weir::config
