#include "log_profile.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "weir/scenario/random.h"

namespace weir::cli {
namespace {

// Paths that are told apart, 2 KiB each; what comes after them is one route.
constexpr size_t kMostPaths = 1024;
constexpr std::string_view kOtherRoute = "/other";

constexpr size_t kMostClients = 65'536;

// Deeper parts of a path rarely say what kind of request it is.
constexpr size_t kMostParts = 4;

uint64_t HashOf(std::string_view text) {
  uint64_t hash = text.size();
  for (const char c : text) {
    hash = scenario::Mix(hash ^ static_cast<unsigned char>(c));
  }
  return hash;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A number, or a key such as a UUID or a hash: eight and more hexadecimal
// digits and dashes, at least one of them 0-9.
bool LooksLikeKey(std::string_view part) {
  if (part.empty()) return false;
  if (std::all_of(part.begin(), part.end(), IsDigit)) return true;
  return part.size() >= 8 && std::any_of(part.begin(), part.end(), IsDigit) &&
         std::all_of(part.begin(), part.end(), [](char c) {
           return IsDigit(c) || (c >= 'a' && c <= 'f') ||
                  (c >= 'A' && c <= 'F') || c == '-';
         });
}

bool IsAllowed(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         c == '.' || c == '_' || c == '-';
}

// The byte of an escape at the front of `text`, as callers write it ("%D0") or
// nginx does ("\\xD0"), and its length; 0: there is none.
struct Escape {
  int byte = 0;
  size_t length = 0;
};
Escape EscapeOf(std::string_view text) {
  const size_t mark = text.starts_with('%')     ? 1
                      : text.starts_with("\\x") ? 2
                                                : 0;
  Escape escape;
  if (mark == 0 || text.size() < mark + 2) return escape;
  const char* digits = text.data() + mark;
  const auto read = std::from_chars(digits, digits + 2, escape.byte, 16);
  if (read.ec == std::errc() && read.ptr == digits + 2)
    escape.length = mark + 2;
  return escape;
}

// The start of a part of a path, not cut within a character: neither within an
// escape nor between those of one UTF-8 character.
std::string_view Start(std::string_view part) {
  // Chosen: no name of a kind of request is longer than this.
  constexpr size_t kMost = 40;
  size_t end = 0;
  while (end < part.size()) {
    size_t next = end + std::max<size_t>(EscapeOf(part.substr(end)).length, 1);
    for (;;) {
      const Escape more = EscapeOf(part.substr(next));
      if (next == end + 1 || more.length == 0 || (more.byte & 0xc0) != 0x80) {
        break;
      }
      next += more.length;
    }
    if (next > kMost) break;
    end = next;
  }
  return part.substr(0, end);
}

}  // namespace

Result<LogRule> LogRule::Parse(std::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0 ||
      equals + 1 == text.size()) {
    return Error{fmt::format("`{}` is no PATTERN=VALUE", text)};
  }
  LogRule rule;
  rule.value = text.substr(equals + 1);
  std::string_view pattern = text.substr(0, equals);
  if (const size_t space = pattern.find(' ');
      space != std::string_view::npos && !pattern.starts_with('/')) {
    rule.method = pattern.substr(0, space);
    pattern.remove_prefix(space + 1);
  }
  rule.pattern = pattern;
  if (pattern.empty() || (pattern[0] != '/' && pattern[0] != '*')) {
    return Error{fmt::format(
        "the pattern of `{}` matches no path; they begin with `/`", text)};
  }
  return rule;
}

bool LogRule::Matches(const LogEntry& entry) const {
  if (!method.empty() && method != entry.method) return false;
  // Long paths are matched by their first part, which is where rules look.
  char path[1024];
  const size_t length = std::min(entry.path.size(), sizeof path - 1);
  std::copy_n(entry.path.begin(), length, path);
  path[length] = '\0';
  return fnmatch(pattern.c_str(), path, 0) == 0;
}

void ClientCounts::Add(std::string_view client) {
  ++requests_;
  const uint64_t hash = HashOf(client);
  const auto kept = [this](uint64_t h) {
    return shift_ == 0 || h >> (64 - shift_) == 0;
  };
  if (!kept(hash)) return;
  ++counts_[hash];
  while (counts_.size() > kMostClients) {
    ++shift_;
    std::erase_if(counts_, [&](const auto& item) { return !kept(item.first); });
  }
}

double ClientCounts::Collision() const {
  double pairs = 0;
  for (const auto& [hash, count] : counts_) {
    pairs += static_cast<double>(count) * (static_cast<double>(count) - 1);
  }
  const auto n = static_cast<double>(requests_);
  return n < 2 ? 0 : pairs * static_cast<double>(1 << shift_) / (n * (n - 1));
}

double ClientCounts::TopShare() const {
  uint32_t most = 0;
  for (const auto& [hash, count] : counts_) most = std::max(most, count);
  return requests_ == 0
             ? 0
             : static_cast<double>(most) / static_cast<double>(requests_);
}

LogProfile::LogProfile(const LogFormat& format, const Options& options)
    : format_(format),
      options_(options),
      timeline_(format.has_milliseconds()
                    ? Duration(std::chrono::milliseconds(100))
                    : Duration(std::chrono::seconds(1))) {}

void LogProfile::Add(const LogEntry& entry) {
  if (!zone_) zone_ = entry.zone;
  if (latest_ && entry.ended < *latest_) {
    ++counts_.out_of_order;
    counts_.most_out_of_order =
        std::max(counts_.most_out_of_order, *latest_ - entry.ended);
  }
  latest_ = std::max(latest_.value_or(entry.ended), entry.ended);

  if (entry.path.empty()) {
    ++counts_.not_http;
    return;
  }
  const bool refused = entry.shed || entry.status == 429 || entry.status == 503;
  // 499: the caller left before there was an answer.
  const bool failed = !refused && entry.status >= 499;
  if (format_.has_upstream_time() && !entry.upstream_time && !refused &&
      !failed) {
    ++counts_.answered_by_nginx;
    return;
  }
  // nginx logs a request when it ends.
  const Duration arrived =
      entry.ended - entry.request_time.value_or(Duration{});
  if ((options_.from && arrived < *options_.from) ||
      (options_.to && arrived >= *options_.to)) {
    ++counts_.outside;
    return;
  }
  ++counts_.requests;
  counts_.refused += refused;
  counts_.failed += failed;
  const Criticality criticality = ClassOf(entry);
  ++classes_[Index(criticality)];
  timeline_.AddArrival(arrived, criticality);
  clients_.Add(entry.client);
  Route& route = RouteOf(entry);
  ++route.requests;

  const std::optional<Duration> time =
      format_.has_upstream_time() ? entry.upstream_time : entry.request_time;
  if (!time || refused || failed) return;
  ++counts_.timed;
  route.times.Add(*time);
  timeline_.AddWork(entry.ended - *time, entry.ended);
}

Criticality LogProfile::ClassOf(const LogEntry& entry) const {
  for (const LogRule& rule : options_.classes) {
    if (rule.Matches(entry)) {
      return ParseCriticality(rule.value).value_or(Criticality::kImportant);
    }
  }
  return entry.criticality.value_or(Criticality::kImportant);
}

LogProfile::Route& LogProfile::RouteOf(const LogEntry& entry) {
  const auto rule =
      std::find_if(options_.routes.begin(), options_.routes.end(),
                   [&](const LogRule& r) { return r.Matches(entry); });
  if (rule != options_.routes.end()) {
    route_name_ = rule->value;
  } else {
    RouteOfPath(entry.path, route_name_);
  }
  auto found = routes_.find(route_name_);
  if (found == routes_.end()) {
    if (routes_.size() >= kMostPaths) {
      routes_overflowed_ = true;
      route_name_ = kOtherRoute;
    }
    found = routes_.try_emplace(route_name_).first;
  }
  return found->second;
}

void RouteOfPath(std::string_view path, std::string& route) {
  route.clear();
  for (size_t parts = 0; !path.empty() && parts < kMostParts; ++parts) {
    path.remove_prefix(1);  // The slash.
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(end);
    if (part.empty() && (!path.empty() || parts > 0)) continue;
    route += '/';
    if (LooksLikeKey(part)) {
      route += '_';
      continue;
    }
    for (const char c : Start(part)) route += IsAllowed(c) ? c : '_';
  }
  if (route.empty()) route = "/";
}

}  // namespace weir::cli
