// The text of a replayed scenario.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "replay.h"
#include "weir/config/units.h"
#include "weir/scenario/capacity.h"
#include "weir/scenario/read.h"

namespace weir::cli {
namespace {

using config::FormatDuration;
using config::FormatNumber;
using scenario::Span;

// Chosen: as long as a phase may be.
constexpr Duration kLongestReplay = std::chrono::hours(24);

// Six digits: far below what counts differ by from run to run.
std::string Digits(double number) {
  return FormatNumber(std::stod(fmt::format("{:.6g}", number)));
}

std::string Percent(double ratio) {
  return fmt::format("{:.1f} %", ratio * 100);
}

std::string Milliseconds(double seconds) {
  return fmt::format("{:.4g} ms", seconds * 1e3);
}

// "1 line", "2 lines".
std::string Count(uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

struct RouteShare {
  std::string name;
  uint64_t requests = 0;
  TimeSample times{};
};

class Writer {
 public:
  Writer(const LogProfile& profile, const LogFormat& format,
         const ReplayOptions& options)
      : profile_(profile), format_(format), options_(options) {}

  Result<ReplayedScenario> Write();

 private:
  template <typename... Args>
  void Note(fmt::format_string<Args...> text, Args&&... args) {
    notes_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  std::optional<Error> Check() const;
  void NoteCounts();
  std::vector<RouteShare> ChooseRoutes();
  std::string RouteLines();
  std::string SpanKeys(const RouteShare& route);
  std::string ServiceLines();
  int Workers();
  std::string ClassLines() const;
  std::string PhaseLines(double capacity);
  std::string ClientLines();
  std::string Head() const;
  bool has_classes() const {
    return std::count_if(profile_.classes().begin(), profile_.classes().end(),
                         [](uint64_t n) { return n > 0; }) > 1;
  }

  const LogProfile& profile_;
  const LogFormat& format_;
  const ReplayOptions& options_;
  std::vector<std::string> notes_;
  std::vector<RouteShare> routes_;
  std::vector<RateStep> steps_;
  TimeSample all_times_;
};

std::optional<Error> Writer::Check() const {
  const LogProfile::Counts& counts = profile_.counts();
  if (counts.requests == 0) {
    return Error{fmt::format(
        "no requests to replay: {} outside --from and --to, {} answered by "
        "nginx itself, {} that are no HTTP",
        counts.outside, counts.answered_by_nginx, counts.not_http)};
  }
  const LogTimeline& timeline = profile_.timeline();
  if (timeline.end() - timeline.begin() > kLongestReplay) {
    return Error{fmt::format(
        "the log spans {:.1f} hours ({} to {}), and a replay is at most a day: "
        "choose a part with --from and --to",
        ToSeconds(timeline.end() - timeline.begin()) / 3600,
        FormatLogTime(timeline.begin(), profile_.zone()),
        FormatLogTime(timeline.end(), profile_.zone()))};
  }
  if (counts.timed == 0 && !options_.time) {
    return Error{
        format_.has_time()
            ? "no request was answered, so nothing says how long they take: "
              "pass --time, such as --time 20ms"
            : "the log does not say how long requests took: pass --time, such "
              "as --time 20ms, or log $upstream_response_time (weir replay "
              "--help shows a log_format)"};
  }
  return std::nullopt;
}

void Writer::NoteCounts() {
  const LogProfile::Counts& counts = profile_.counts();
  const LogTimeline& timeline = profile_.timeline();
  Note("{} from {} to {} ({}), {:.6g}/s on average",
       Count(counts.requests, "request"),
       FormatLogTime(timeline.begin(), profile_.zone()),
       FormatLogTime(timeline.end(), profile_.zone()),
       (profile_.zone() == Duration{} ? "" : "the log's own time, ") +
           FormatZone(profile_.zone()),
       static_cast<double>(counts.requests) /
           ToSeconds(timeline.end() - timeline.begin()));
  if (counts.answered_by_nginx > 0) {
    Note("left out: {} that nginx answered by itself",
         Count(counts.answered_by_nginx, "request"));
  }
  if (counts.not_http > 0) {
    Note("left out: {} without a method and a path",
         Count(counts.not_http, "line"));
  }
  if (counts.outside > 0) {
    Note("left out: {} outside --from and --to",
         Count(counts.outside, "request"));
  }
  if (counts.refused > 0 || counts.failed > 0) {
    Note(
        "{} of them were refused and {} failed; they are offered like all "
        "others.  What callers tried again is in the log as requests of its "
        "own, so the scenario has no retries",
        counts.refused, counts.failed);
  }
  if (counts.out_of_order > 0) {
    Note(
        "out of order: {}, by {:.3g} s at most; requests count when "
        "they arrived",
        Count(counts.out_of_order, "line"),
        ToSeconds(counts.most_out_of_order));
  }
}

std::vector<RouteShare> Writer::ChooseRoutes() {
  std::vector<RouteShare> routes;
  for (const auto& [name, route] : profile_.routes()) {
    all_times_.Add(route.times);
    routes.push_back({name, route.requests, route.times});
  }
  std::stable_sort(routes.begin(), routes.end(),
                   [](const RouteShare& a, const RouteShare& b) {
                     return a.requests > b.requests;
                   });
  if (routes.size() > options_.most_routes) {
    RouteShare other{.name = "/other"};
    const size_t kept = std::max<size_t>(options_.most_routes, 1) - 1;
    Note("{} routes; the {} with the least requests are \"/other\"{}",
         routes.size(), routes.size() - kept,
         profile_.routes_overflowed()
             ? ", and so are paths beyond the first 1024: merge them with "
               "--route"
             : "");
    for (size_t i = kept; i < routes.size(); ++i) {
      other.requests += routes[i].requests;
      other.times.Add(routes[i].times);
    }
    routes.resize(kept);
    const auto same = std::find_if(
        routes.begin(), routes.end(),
        [&](const RouteShare& route) { return route.name == other.name; });
    if (same == routes.end()) {
      routes.push_back(other);
    } else {
      same->requests += other.requests;
      same->times.Add(other.times);
    }
  }
  return routes;
}

std::string Writer::RouteLines() {
  if (routes_.size() == 1 && routes_[0].name == "/") return "";
  std::string lines = "routes = [\n";
  const auto all = static_cast<double>(profile_.counts().requests);
  for (const RouteShare& route : routes_) {
    lines +=
        fmt::format("  {{ name = \"{}\", share = {} }},\n", route.name,
                    FormatNumber(static_cast<double>(route.requests) / all));
  }
  return lines + "]\n";
}

// The keys of a stage that say how its times spread, and a note on how well
// they do.
std::string Writer::SpanKeys(const RouteShare& route) {
  if (options_.time) {
    return fmt::format("time = \"{}\"", FormatDuration(*options_.time));
  }
  const bool own = route.times.count() > 0;
  const TimeSample& times = own ? route.times : all_times_;
  const TimeFit fit = FitTimes(times);
  const Span& span = fit.span;
  std::string keys;
  std::string_view name;
  switch (span.distribution) {
    using enum Span::Distribution;
    case kConstant:
      name = "constant";
      break;
    case kExponential:
      name = "exponential";
      break;
    case kUniform:
      name = "uniform";
      break;
    case kLognormal:
      name = "lognormal";
      break;
    case kBimodal:
      name = "bimodal";
      keys = fmt::format(", fast = \"{}\", slow = \"{}\", slow_ratio = {}",
                         FormatDuration(span.fast), FormatDuration(span.slow),
                         Digits(span.slow_ratio));
      break;
  }
  if (span.distribution != Span::Distribution::kBimodal) {
    keys = fmt::format(", time = \"{}\"", FormatDuration(span.mean));
  }
  if (span.distribution == Span::Distribution::kLognormal) {
    keys += ", sigma = " + Digits(span.sigma);
  }
  Note(
      "{}: {}{}, mean {}, cv2 {:.3g}: {}, {} off on average; p50 {} "
      "here and {} in the log, p99 {} and {}",
      route.name, Count(times.count(), "time"),
      own ? "" : " (of all routes, it has none)", Milliseconds(times.mean()),
      fit.cv2, name, Percent(fit.distance), Milliseconds(FitQuantile(span, .5)),
      Milliseconds(times.Quantile(.5)), Milliseconds(FitQuantile(span, .99)),
      Milliseconds(times.Quantile(.99)));
  return fmt::format("distribution = \"{}\"{}", name, keys);
}

int Writer::Workers() {
  const auto windows = profile_.timeline().Windows();
  const auto busiest = std::max_element(windows.begin(), windows.end(),
                                        [](const auto& a, const auto& b) {
                                          return a.concurrency < b.concurrency;
                                        });
  // Times of the busiest tenth of the windows against those of the quieter
  // half: where the first are much longer, requests waited inside the service.
  auto sorted = windows;
  std::erase_if(sorted,
                [](const auto& window) { return window.finished == 0; });
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.concurrency < b.concurrency;
  });
  const auto mean = [&](size_t from, size_t to) {
    double seconds = 0;
    double count = 0;
    for (size_t i = from; i < to; ++i) {
      seconds +=
          sorted[i].mean_seconds * static_cast<double>(sorted[i].finished);
      count += static_cast<double>(sorted[i].finished);
    }
    return count > 0 ? seconds / count : 0;
  };
  if (sorted.size() >= 20) {
    const double quiet = mean(0, sorted.size() / 2);
    const double busy = mean(sorted.size() - sorted.size() / 10, sorted.size());
    if (quiet > 0 && busy > 1.5 * quiet) {
      Note(
          "BEWARE: requests took {} in the busiest tenth of the time and {} in "
          "the quieter half: the log holds waiting as well as service.  Take "
          "the service times from a calm part (--from, --to, then --time here)",
          Milliseconds(busy), Milliseconds(quiet));
    }
  }
  if (options_.workers) {
    Note("capacity: {} workers, as you said", *options_.workers);
    return *options_.workers;
  }
  double concurrency = 0;
  if (options_.time && profile_.counts().timed == 0) {
    // Little's law with the rate of the busiest step.
    double most = 0;
    for (const RateStep& step : steps_) {
      most = std::max(
          most, static_cast<double>(step.count()) / ToSeconds(step.length));
    }
    concurrency = most * ToSeconds(*options_.time);
    Note(
        "ASSUMED capacity: {:.0f}/s in the busiest step times {} make {:.1f} "
        "requests in progress.  A log shows what was done, not what could "
        "have been: pass --workers if you know",
        most, FormatDuration(*options_.time), concurrency);
  } else if (busiest != windows.end()) {
    concurrency = busiest->concurrency;
    Note(
        "ASSUMED capacity: as many workers as requests were in progress in the "
        "busiest {:.3g} s ({:.1f}, at {}).  A log shows what was done, not "
        "what "
        "could have been: pass --workers if you know",
        ToSeconds(busiest->length), concurrency,
        FormatLogTime(busiest->at, profile_.zone()));
  }
  return static_cast<int>(std::clamp(std::ceil(concurrency - 1e-9), 1., 1e6));
}

std::string Writer::ServiceLines() {
  const int workers = Workers();
  std::string lines = fmt::format("[service]\nworkers = {}\n", workers);
  if (routes_.size() == 1) {
    const std::string keys = SpanKeys(routes_[0]);
    return lines + fmt::format("stages = [{{ name = \"work\", {} }}]\n", keys);
  }
  lines += "stages = [\n";
  for (const RouteShare& route : routes_) {
    lines += fmt::format("  {{ name = \"{0}\", route = \"{0}\", {1} }},\n",
                         route.name, SpanKeys(route));
  }
  return lines + "]\n";
}

std::string Writer::ClassLines() const {
  std::string lines = "classes = [\n";
  const auto all = static_cast<double>(profile_.counts().requests);
  for (size_t c = 0; c < profile_.classes().size(); ++c) {
    const uint64_t count = profile_.classes()[c];
    if (count == 0) continue;
    lines += fmt::format("  {{ name = \"{}\", share = {} }},\n",
                         Name(static_cast<Criticality>(c)),
                         FormatNumber(static_cast<double>(count) / all));
  }
  return lines + "]\n";
}

// One a line, named after when it began.
std::string Writer::PhaseLines(double capacity) {
  const bool one_day =
      FormatLogTime(steps_.front().from, profile_.zone()).substr(0, 10) ==
      FormatLogTime(steps_.back().from, profile_.zone()).substr(0, 10);
  std::string lines = "phases = [\n";
  for (const RateStep& step : steps_) {
    const std::string name =
        FormatLogTime(step.from, profile_.zone()).substr(one_day ? 11 : 0);
    std::string load;
    const double seconds = ToSeconds(step.length);
    if (!has_classes() || step.count() == 0) {
      load = fmt::format("rate = \"{}/s\"",
                         Digits(static_cast<double>(step.count()) / seconds));
    } else {
      for (size_t c = 0; c < step.counts.size(); ++c) {
        if (step.counts[c] == 0) continue;
        load += fmt::format(
            "{} = {}, ", Name(static_cast<Criticality>(c)),
            Digits(static_cast<double>(step.counts[c]) / seconds / capacity));
      }
      load.resize(load.size() - 2);
      load = "loads = { " + load + " }";
    }
    lines += fmt::format("  {{ name = \"{}\", duration = \"{}\", {} }},\n",
                         name, FormatDuration(step.length), load);
  }
  return lines + "]\n";
}

std::string Writer::ClientLines() {
  const ClientCounts& clients = profile_.clients();
  const uint64_t count = std::clamp<uint64_t>(clients.clients(), 1, 1'000'000);
  const double zipf = FitZipf(count, clients.Collision());
  Note(
      "clients: {}{}, zipf {:.2f}; the busiest sends {} of the requests here "
      "and {} in the log",
      count, clients.sampled() ? ", estimated" : "", zipf,
      Percent(TopShare(count, zipf)), Percent(clients.TopShare()));
  return fmt::format("[clients]\ncount = {}\nzipf = {:.3f}\n", count, zipf);
}

std::string Writer::Head() const {
  const double dispersion = profile_.timeline().Dispersion(steps_);
  // Chosen: halfway between equal distances (0) and Poisson (1).
  std::string head = fmt::format("name = \"{}\"\n", options_.name);
  head += fmt::format("arrivals = \"{}\"\n",
                      dispersion < .5 ? "constant" : "poisson");
  head += fmt::format(
      "deadline = \"{}\"\n",
      FormatDuration(options_.deadline.value_or(std::chrono::seconds(1))));
  return head;
}

Result<ReplayedScenario> Writer::Write() {
  if (auto error = Check()) return *std::move(error);
  NoteCounts();
  routes_ = ChooseRoutes();
  steps_ = profile_.timeline().Steps(std::max<size_t>(options_.most_steps, 1));
  Duration shortest = kLongestReplay;
  for (const RateStep& step : steps_)
    shortest = std::min(shortest, step.length);
  const double dispersion = profile_.timeline().Dispersion(steps_);
  Note(
      "arrivals: {} of constant rate, the shortest {}, from counts in "
      "{}; around them the variance is {:.2f} of a Poisson stream's{}",
      Count(steps_.size(), "step"), FormatDuration(shortest),
      FormatDuration(profile_.timeline().width()), dispersion,
      dispersion > 2 ? ": there were bursts that these steps do not keep; "
                       "allow more with --steps, or choose a part"
                     : "");
  if (options_.time) {
    Note("service time: {}, as you said", FormatDuration(*options_.time));
  } else if (!format_.has_upstream_time()) {
    Note(
        "service times are $request_time, which counts the time that slow "
        "callers take to send and receive; log $upstream_response_time");
  }
  const std::string service = ServiceLines();
  const std::string clients = ClientLines();
  if (!options_.deadline) {
    Note("ASSUMED deadline: 1 s; pass --deadline");
  }
  const std::string head = Head();
  const std::string lists =
      (has_classes() || profile_.classes()[Index(Criticality::kImportant)] == 0
           ? ClassLines()
           : "") +
      RouteLines();
  const auto text = [&](const std::string& phases) {
    return head + lists + phases + "\n" + clients + "\n" + service;
  };
  // Loads are multiples of a capacity that only the reader computes.
  const auto draft = scenario::ParseScenario(
      text("phases = [{ name = \"draft\", load = 1, duration = \"1s\" }]\n"),
      options_.name);
  if (!draft) return Error{draft.complaints().Print("nothing was written")};
  const double capacity = scenario::CapacityAt(*draft, {});
  double most = 0;
  for (const RateStep& step : steps_) {
    most = std::max(most,
                    static_cast<double>(step.count()) / ToSeconds(step.length));
  }
  Note(
      "capacity comes to {:.5g}/s; the busiest step offers {:.5g}/s, {:.3g} "
      "times that",
      capacity, most, most / capacity);
  ReplayedScenario replayed;
  std::string comments = "# Made by weir replay.\n#\n";
  for (const std::string& note : notes_) {
    comments += "# - " + note + "\n";
  }
  replayed.toml = comments + "\n" + text(PhaseLines(capacity));
  const auto read = scenario::ParseScenario(replayed.toml, options_.name);
  if (!read) return Error{read.complaints().Print("nothing was written")};
  replayed.notes = std::move(notes_);
  return replayed;
}

}  // namespace

Result<ReplayedScenario> MakeReplay(const LogProfile& profile,
                                    const LogFormat& format,
                                    const ReplayOptions& options) {
  return Writer(profile, format, options).Write();
}

}  // namespace weir::cli
