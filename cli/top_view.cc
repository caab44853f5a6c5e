#include "top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "switch_view.h"
#include "top_figures.h"

namespace weir::cli {
namespace {

constexpr int kLabelWidth = 20;
constexpr int kCellWidth = 12;

// Lines of a screen: cut to its width, counted to its height.  Escape
// sequences take no columns.
class Page {
 public:
  explicit Page(Size size) : size_(size) {}

  int left() const { return size_.rows - rows_; }

  // `paint` goes around the whole line and `reset` behind it.
  void Add(std::string_view text, std::string_view paint = "",
           std::string_view reset = "") {
    if (left() <= 0) return;
    if (rows_++ > 0) out_ += '\n';
    text = text.substr(0, static_cast<size_t>(std::max(size_.columns, 0)));
    text = text.substr(0, text.find_last_not_of(' ') + 1);
    out_.append(paint).append(text);
    if (!paint.empty()) out_ += reset;
  }

  // `left` and `right` at the two ends of a line.
  void AddEnds(const std::string& left, const std::string& right,
               std::string_view paint = "", std::string_view reset = "") {
    const int gap = size_.columns - static_cast<int>(left.size()) -
                    static_cast<int>(right.size());
    Add(gap > 0 ? left + std::string(static_cast<size_t>(gap), ' ') + right
                : left,
        paint, reset);
  }

  std::string Finish() {
    while (left() > 0) Add("");
    return std::move(out_);
  }

 private:
  Size size_;
  int rows_ = 0;
  std::string out_;
};

std::string OrDash(const std::optional<Duration>& duration) {
  return duration ? FormatDuration(*duration) : "-";
}

Duration Micros(double us) {
  // Above a year or not a number at all: not worth a figure.
  if (!(us >= 0 && us < 3e13)) return Duration::zero();
  return FromSeconds(us * 1e-6);
}

int64_t Waiting(const Snapshot& now) {
  int64_t sum = 0;
  for (const int64_t waiting : now.waiting) sum += waiting;
  return sum;
}

int Dead(const TopFrame& frame) {
  return static_cast<int>(
      std::count(frame.alive.begin(), frame.alive.end(), false));
}

std::string Workers(const TopFrame& frame) {
  const auto all = frame.now.workers.size();
  std::string text = fmt::format("{} worker{}", all, all == 1 ? "" : "s");
  if (const int dead = Dead(frame); dead > 0) {
    text += fmt::format(" ({} dead)", dead);
  }
  return text;
}

bool IsOverloaded(const TopFrame& frame) {
  return frame.now[Gauge::overloaded] != 0;
}

std::string Offered(const TopFrame& frame) {
  const auto rate =
      Rate(frame, static_cast<size_t>(ClassCounter::offered_total));
  return rate ? FormatNumber(Sum(*rate)) : "-";
}

// The line that says how things stand.
std::string Headline(const TopFrame& frame) {
  switch (frame.state) {
    case ServiceState::kRemoved:
      return "GONE       the segment was removed; waiting for its return";
    case ServiceState::kNoWorkers:
      return "STOPPED    no worker is alive; last figures below; waiting for "
             "its return";
    case ServiceState::kLive:
      break;
  }
  const double demand = frame.now[Gauge::demand_per_s];
  const double capacity = frame.now[Gauge::capacity_per_s];
  const double shed = Sum(ShedRate(frame));
  std::string text = IsOverloaded(frame) ? "OVERLOADED " : "ok         ";
  if (capacity > 0) {
    text += fmt::format("demand {}/s = {:.2f} x capacity {}/s",
                        FormatNumber(demand), demand / capacity,
                        FormatNumber(capacity));
  } else {
    text +=
        fmt::format("demand {}/s, capacity not known", FormatNumber(demand));
  }
  if (shed > 0) {
    text += fmt::format(", shed {}/s", FormatNumber(shed));
    if (const auto reason = MainReason(frame); !reason.empty()) {
      text += fmt::format(", most by {}", reason);
    }
  }
  return text;
}

std::string_view HeadlinePaint(const TopFrame& frame, const Style& style) {
  if (frame.state != ServiceState::kLive) return style.red;
  if (IsOverloaded(frame)) return style.yellow;
  return style.green;
}

std::string Bar(double value, double full, int width) {
  const double ratio = full > 0 ? std::clamp(value / full, 0.0, 1.0) : 0;
  const auto filled = static_cast<size_t>(std::lround(ratio * width));
  return '[' + std::string(filled, '|') +
         std::string(static_cast<size_t>(width) - filled, ' ') + ']';
}

// What the law holds to be true of the service.
std::string Learned(const TopFrame& frame) {
  const Snapshot& now = frame.now;
  const double base = now[Gauge::base_latency_us];
  std::string text = fmt::format("base {}  budget {}  queue target {}",
                                 base > 0 ? FormatDuration(Micros(base)) : "-",
                                 FormatDuration(Micros(now[Gauge::budget_us])),
                                 FormatNumber(now[Gauge::queue_target]));
  const auto cut = CutClass(now[Gauge::level]);
  if (cut && IsOverloaded(frame)) {
    text += fmt::format("  cut in {} ({:.0f})", Name(*cut), now[Gauge::level]);
  }
  return text;
}

// The drill that runs, if any.
std::string RunningDrill(const TopFrame& frame) {
  const Drill& drill = frame.now.drill;
  if (!drill.ActiveAt(frame.at) || drill.row >= frame.now.resources.size()) {
    return "";
  }
  return fmt::format("level {} of {}, share {:.4f}, {} left", drill.level,
                     frame.now.resources[drill.row].name,
                     static_cast<double>(drill.share) / Drill::kWhole,
                     FormatLeft(drill.until - frame.at));
}

void AddGauges(const TopFrame& frame, Size size, Page& page) {
  const Snapshot& now = frame.now;
  const std::string inflight =
      fmt::format("inflight   {:>5} of {:>5}  ", now.inflight,
                  FormatNumber(now[Gauge::limit]));
  const std::string mode =
      fmt::format("  law {}", ModeName(now[Gauge::law_mode]));
  const int bar = std::clamp(size.columns - static_cast<int>(inflight.size()) -
                                 static_cast<int>(mode.size()) - 2,
                             8, 60);
  page.Add(inflight +
           Bar(static_cast<double>(now.inflight), now[Gauge::limit], bar) +
           mode);

  std::string waiting = fmt::format("waiting    {:>5}", Waiting(now));
  for (size_t c = 0; c < kCriticalities; ++c) {
    waiting += fmt::format("  {} {}", Name(static_cast<Criticality>(c)),
                           now.waiting[c]);
  }
  page.Add(waiting);

  const auto latency = [&](double share) {
    return OrDash(Quantile(frame, &Snapshot::latency, share));
  };
  const auto queue = [&](double share) {
    return OrDash(Quantile(frame, &Snapshot::queue_delay, share));
  };
  page.Add(
      fmt::format("latency    p50 {}  p99 {}   of it queued p50 {}  p99 {}",
                  latency(.5), latency(.99), queue(.5), queue(.99)));
  page.Add("service    " + Learned(frame));
  if (const std::string drill = RunningDrill(frame); !drill.empty()) {
    page.Add("drill      " + drill);
  }
}

bool EverCounted(const Snapshot& now, size_t class_counter) {
  const auto& counts = now.by_class[class_counter];
  return std::any_of(counts.begin(), counts.end(),
                     [](uint64_t count) { return count > 0; });
}

// Offered, admitted and waited stand always; the rest once there is something.
bool IsShown(const Snapshot& now, size_t class_counter) {
  return class_counter <= static_cast<size_t>(ClassCounter::waited_total) ||
         EverCounted(now, class_counter);
}

void AddRates(const TopFrame& frame, const Style& style, Page& page) {
  std::string head = fmt::format("{:<{}}", "per second", kLabelWidth);
  for (size_t c = 0; c < kCriticalities; ++c) {
    head +=
        fmt::format("{:>{}}", Name(static_cast<Criticality>(c)), kCellWidth);
  }
  page.Add(head + fmt::format("{:>{}}", "all", kCellWidth), style.bold,
           style.reset);
  for (size_t i = 0; i < kClassCounters; ++i) {
    if (!IsShown(frame.now, i)) continue;
    const std::string_view name = kClassCounterInfo[i].name;
    std::string line = fmt::format("{:<{}}", Label(name), kLabelWidth);
    const auto rate = Rate(frame, i);
    for (size_t c = 0; c < kCriticalities; ++c) {
      const std::string cell = !rate             ? "-"
                               : (*rate)[c] == 0 ? "."
                                                 : FormatNumber((*rate)[c]);
      line += fmt::format("{:>{}}", cell, kCellWidth);
    }
    line += fmt::format("{:>{}}", rate ? FormatNumber(Sum(*rate)) : "-",
                        kCellWidth);
    const bool sheds = StartsWith(name, "shed_") && rate && Sum(*rate) > 0;
    page.Add(line, sheds ? style.yellow : "", style.reset);
  }
}

const Snapshot::Resource* Find(const Snapshot& snapshot,
                               const std::string& name) {
  for (const auto& resource : snapshot.resources) {
    if (resource.name == name) return &resource;
  }
  return nullptr;
}

// The busiest first, as many as fit above `reserved` lines.
void AddResources(const TopFrame& frame, const Style& style, int reserved,
                  Page& page) {
  struct Row {
    const Snapshot::Resource* resource;
    double offered;
    double shed;
  };
  std::vector<Row> rows;
  for (const auto& resource : frame.now.resources) {
    const Snapshot::Resource* before = Find(frame.before, resource.name);
    const auto rate = [&](uint64_t now, uint64_t then) {
      return frame.seconds > 0 && now > then
                 ? static_cast<double>(now - then) / frame.seconds
                 : 0.0;
    };
    rows.push_back({&resource,
                    rate(resource.offered, before ? before->offered : 0),
                    rate(resource.shed, before ? before->shed : 0)});
  }
  if (rows.empty() || page.left() < reserved + 2) return;
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.offered > b.offered;
  });
  page.Add(fmt::format("{:<44}{:>12}{:>12}{:>12}", "resource", "offered/s",
                       "shed/s", "shed ratio"),
           style.bold, style.reset);
  for (const Row& row : rows) {
    if (page.left() <= reserved) return;
    const std::string mark = SwitchMark(*row.resource, frame.at);
    const std::string name =
        mark.empty()
            ? row.resource->name
            : fmt::format("{} ({})",
                          row.resource->name.substr(0, 40 - mark.size()), mark);
    page.Add(fmt::format(
        "{:<44}{:>12}{:>12}{:>12}", name.substr(0, 43),
        FormatNumber(row.offered), FormatNumber(row.shed),
        row.offered > 0 ? fmt::format("{:.3f}", row.shed / row.offered) : "."));
  }
}

void AddWorkers(const TopFrame& frame, const Style& style, Size size,
                Page& page) {
  if (page.left() <= 0) return;
  std::string line = frame.now.workers.empty()
                         ? "no workers"
                         : "workers, pid: inflight+waiting ";
  for (size_t i = 0; i < frame.now.workers.size(); ++i) {
    const Snapshot::Worker& worker = frame.now.workers[i];
    const bool alive = i >= frame.alive.size() || frame.alive[i];
    const std::string cell =
        fmt::format(" {}{}: {}+{}", worker.owner.pid, alive ? "" : " DEAD",
                    worker.inflight, worker.waiting);
    if (line.size() + cell.size() > static_cast<size_t>(size.columns) - 3) {
      line += " ..";
      break;
    }
    line += cell;
  }
  page.Add(line, Dead(frame) > 0 ? style.red : style.dim, style.reset);
}

// One line each where there is room for the help, else two.
std::vector<std::string> CounterLines(const Snapshot& now, int columns) {
  constexpr int kOneLine = 125;
  std::vector<std::string> lines;
  const auto add = [&](const CounterInfo& info, const std::string& value) {
    std::string line =
        fmt::format("{:<25}{:>14} {:<11}", info.name, value, info.unit);
    if (columns >= kOneLine) {
      lines.push_back(line + fmt::format(" {}", info.help));
    } else {
      lines.push_back(line);
      lines.push_back(fmt::format("    {}", info.help));
    }
  };
  for (size_t i = 0; i < kGauges; ++i) {
    add(kGaugeInfo[i], FormatNumber(now.gauges[i]));
  }
  for (size_t i = 0; i < kClassCounters; ++i) {
    uint64_t sum = 0;
    for (const uint64_t count : now.by_class[i]) sum += count;
    add(kClassCounterInfo[i], fmt::format("{}", sum));
  }
  for (size_t i = 0; i < kCounters; ++i) {
    add(kCounterInfo[i], fmt::format("{}", now.counters[i]));
  }
  return lines;
}

}  // namespace

std::string FormatNumber(double number) {
  if (std::isnan(number)) return "-";
  if (number >= 1e12) return "-";  // "Without bound" is shown as such a number.
  if (number >= 1e6) return fmt::format("{:.1f}M", number / 1e6);
  if (number >= 1e5) return fmt::format("{:.0f}k", number / 1e3);
  if (number >= 9.95 || number == std::floor(number)) {
    return fmt::format("{:.0f}", number);
  }
  return fmt::format("{:.1f}", number);
}

std::string FormatDuration(Duration duration) {
  const double us = ToSeconds(duration) * 1e6;
  if (us < 999.5) return fmt::format("{:.0f} us", us);
  if (us < 99.95e3) return fmt::format("{:.1f} ms", us / 1e3);
  if (us < 999.5e3) return fmt::format("{:.0f} ms", us / 1e3);
  return fmt::format("{:.2f} s", us / 1e6);
}

std::string RenderScreen(const TopFrame& frame, Size size, const Style& style) {
  Page page(size);
  page.AddEnds(fmt::format("weir top   {}", frame.now.service),
               fmt::format("{}   policy {}   {}", Workers(frame),
                           frame.now.policy_version, frame.time),
               style.bold, style.reset);
  page.Add(Headline(frame), HeadlinePaint(frame, style), style.reset);
  page.Add("");
  AddGauges(frame, size, page);
  page.Add("");
  AddRates(frame, style, page);
  if (page.left() > 3) page.Add("");
  AddResources(frame, style, 1, page);
  while (page.left() > 1) page.Add("");
  AddWorkers(frame, style, size, page);
  return page.Finish();
}

std::string RenderCounters(const TopFrame& frame, Size size, const Style& style,
                           int& offset) {
  Page page(size);
  page.Add(
      fmt::format("{:<25}{:>14} {:<11}", "since the start", "value", "unit"),
      style.bold, style.reset);
  const auto lines = CounterLines(frame.now, size.columns);
  const int last = static_cast<int>(lines.size()) - (size.rows - 1);
  offset = std::clamp(offset, 0, std::max(last, 0));
  for (auto i = static_cast<size_t>(offset);
       i < lines.size() && page.left() > 0; ++i) {
    page.Add(lines[i]);
  }
  return page.Finish();
}

std::string RenderLine(const TopFrame& frame) {
  const Snapshot& now = frame.now;
  if (frame.state != ServiceState::kLive) {
    return fmt::format("{} {} {}", frame.time, now.service, Headline(frame));
  }
  const auto admitted =
      Rate(frame, static_cast<size_t>(ClassCounter::admitted_total));
  const std::string_view reason = MainReason(frame);
  return fmt::format(
      "{} {} {} offered {}/s admitted {}/s shed {}/s{} inflight {}/{} waiting "
      "{} p50 {} p99 {} capacity {}/s demand {}/s law {} {}",
      frame.time, now.service, IsOverloaded(frame) ? "OVERLOADED" : "ok",
      Offered(frame), admitted ? FormatNumber(Sum(*admitted)) : "-",
      frame.seconds > 0 ? FormatNumber(Sum(ShedRate(frame))) : "-",
      reason.empty() ? "" : fmt::format(" ({})", reason), now.inflight,
      FormatNumber(now[Gauge::limit]), Waiting(now),
      OrDash(Quantile(frame, &Snapshot::latency, .5)),
      OrDash(Quantile(frame, &Snapshot::latency, .99)),
      FormatNumber(now[Gauge::capacity_per_s]),
      FormatNumber(now[Gauge::demand_per_s]), ModeName(now[Gauge::law_mode]),
      Workers(frame));
}

}  // namespace weir::cli
