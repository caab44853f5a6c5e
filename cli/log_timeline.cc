#include "log_timeline.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <utility>

namespace weir::cli {
namespace {

// -2 log of how likely counts are when they have one rate instead of two: what
// is lost when two steps become one.
double Loss(const RateStep& a, const RateStep& b) {
  const double la = ToSeconds(a.length);
  const double lb = ToSeconds(b.length);
  double loss = 0;
  for (size_t c = 0; c < a.counts.size(); ++c) {
    const auto na = static_cast<double>(a.counts[c]);
    const auto nb = static_cast<double>(b.counts[c]);
    const double rate = (na + nb) / (la + lb);
    if (na > 0) loss += 2 * na * std::log(na / la / rate);
    if (nb > 0) loss += 2 * nb * std::log(nb / lb / rate);
  }
  return loss;
}

void Merge(RateStep& into, const RateStep& from) {
  into.length += from.length;
  for (size_t c = 0; c < into.counts.size(); ++c) {
    into.counts[c] += from.counts[c];
  }
}

Duration FloorTo(Duration at, Duration unit) {
  Duration rest = at % unit;
  if (rest < Duration{}) rest += unit;
  return at - rest;
}

}  // namespace

uint64_t RateStep::count() const {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

LogTimeline::Bin& LogTimeline::At(Duration at) {
  for (;;) {
    const int64_t index = FloorTo(at, width_) / width_;
    if (bins_.empty()) base_ = index;
    const int64_t low = std::min(base_, index);
    const int64_t high =
        std::max(base_ + static_cast<int64_t>(bins_.size()) - 1, index);
    if (high - low >= kMostBins) {
      Coarsen();
      continue;
    }
    for (; base_ > low; --base_) bins_.emplace_front();
    while (base_ + static_cast<int64_t>(bins_.size()) <= high) {
      bins_.emplace_back();
    }
    return bins_[static_cast<size_t>(index - base_)];
  }
}

void LogTimeline::Coarsen() {
  std::deque<Bin> coarse;
  // Right shift rounds down, also below zero.
  const int64_t base = base_ >> 1;
  for (size_t i = 0; i < bins_.size(); ++i) {
    const int64_t index = base_ + static_cast<int64_t>(i);
    const auto to = static_cast<size_t>((index >> 1) - base);
    if (to >= coarse.size()) coarse.emplace_back();
    Bin& sum = coarse[to];
    const Bin& bin = bins_[i];
    const int64_t shift = (index & 1) * width_.count();
    for (size_t c = 0; c < sum.arrivals.size(); ++c) {
      sum.arrivals[c] += bin.arrivals[c];
    }
    sum.starts += bin.starts;
    sum.ends += bin.ends;
    sum.starts_after_ns += bin.starts_after_ns + shift * bin.starts;
    sum.ends_after_ns += bin.ends_after_ns + shift * bin.ends;
    sum.seconds += bin.seconds;
  }
  bins_ = std::move(coarse);
  base_ = base;
  width_ *= 2;
}

void LogTimeline::AddArrival(Duration at, Criticality criticality) {
  ++At(at).arrivals[Index(criticality)];
  first_ = std::min(first_, at);
  last_ = std::max(last_, at);
}

void LogTimeline::AddWork(Duration from, Duration to) {
  // Both bins first: the second one may coarsen all.
  At(from);
  Bin& end = At(to);
  ++end.ends;
  end.ends_after_ns += (to - FloorTo(to, width_)).count();
  Bin& start = At(from);
  ++start.starts;
  start.starts_after_ns += (from - FloorTo(from, width_)).count();
  start.seconds += ToSeconds(to - from);
}

Duration LogTimeline::begin() const { return FloorTo(first_, finest_); }
Duration LogTimeline::end() const { return FloorTo(last_, finest_) + finest_; }

RateStep LogTimeline::Clip(size_t bin) const {
  const Duration from = (base_ + static_cast<int64_t>(bin)) * width_;
  RateStep step;
  step.from = std::max(from, begin());
  step.length = std::min(from + width_, end()) - step.from;
  for (size_t c = 0; c < step.counts.size(); ++c) {
    step.counts[c] = bins_[bin].arrivals[c];
  }
  return step;
}

std::vector<RateStep> LogTimeline::Steps(size_t most) const {
  std::vector<RateStep> steps;
  for (size_t i = 0; i < bins_.size(); ++i) {
    const RateStep step = Clip(i);
    if (step.length > Duration{}) steps.push_back(step);
  }
  // A step more is a rate more of each class, and where it begins.  Schwarz's
  // criterion [SCHWARZ1978] prices each at ln n; twice that for the last, which
  // is chosen from all places.
  const size_t bins = steps.size();
  ClassCounts all{};
  for (const RateStep& step : steps) {
    for (size_t c = 0; c < all.size(); ++c) all[c] += step.counts[c];
  }
  const auto classes =
      std::count_if(all.begin(), all.end(), [](uint64_t n) { return n > 0; });
  const double price = static_cast<double>(classes + 2) *
                       std::log(static_cast<double>(std::max<size_t>(bins, 2)));

  // Neighbours that differ least are merged first.  Steps form a list; an
  // entry of the queue is out of date when either of its two has changed.
  struct Pair {
    double loss;
    size_t left;
    size_t right;
    uint32_t left_version;
    uint32_t right_version;
    bool operator<(const Pair& other) const {
      return loss != other.loss ? loss > other.loss : left > other.left;
    }
  };
  std::vector<size_t> next(bins);
  std::vector<size_t> previous(bins);
  std::vector<uint32_t> version(bins, 0);
  std::vector<bool> gone(bins, false);
  std::priority_queue<Pair> pairs;
  const auto push = [&](size_t left) {
    const size_t right = next[left];
    if (right < bins) {
      pairs.push({Loss(steps[left], steps[right]), left, right, version[left],
                  version[right]});
    }
  };
  for (size_t i = 0; i < bins; ++i) {
    next[i] = i + 1;
    previous[i] = i == 0 ? bins : i - 1;
  }
  for (size_t i = 0; i < bins; ++i) push(i);
  size_t count = bins;
  while (!pairs.empty()) {
    const Pair pair = pairs.top();
    pairs.pop();
    if (gone[pair.left] || gone[pair.right] ||
        version[pair.left] != pair.left_version ||
        version[pair.right] != pair.right_version) {
      continue;
    }
    if (pair.loss > price && count <= most) break;
    Merge(steps[pair.left], steps[pair.right]);
    gone[pair.right] = true;
    ++version[pair.left];
    next[pair.left] = next[pair.right];
    if (next[pair.left] < bins) previous[next[pair.left]] = pair.left;
    --count;
    push(pair.left);
    if (previous[pair.left] < bins) push(previous[pair.left]);
  }
  std::vector<RateStep> kept;
  for (size_t i = 0; i < bins; ++i) {
    if (!gone[i]) kept.push_back(steps[i]);
  }
  return kept;
}

double LogTimeline::Dispersion(const std::vector<RateStep>& steps) const {
  double sum = 0;
  double free = 0;
  size_t s = 0;
  for (size_t i = 0; i < bins_.size(); ++i) {
    const RateStep bin = Clip(i);
    // Clipped bins at both ends say little.
    if (bin.length < width_) continue;
    while (s + 1 < steps.size() && steps[s + 1].from <= bin.from) ++s;
    const double mean = static_cast<double>(steps[s].count()) *
                        ToSeconds(bin.length) / ToSeconds(steps[s].length);
    if (mean <= 0) continue;
    const double off = static_cast<double>(bin.count()) - mean;
    sum += off * off / mean;
    free += 1 - ToSeconds(bin.length) / ToSeconds(steps[s].length);
  }
  return free < 1 ? 1 : sum / free;
}

std::vector<LogTimeline::Window> LogTimeline::Windows() const {
  const auto per_window = static_cast<size_t>(
      std::max<int64_t>(1, std::chrono::seconds(1) / width_));
  std::vector<Window> windows;
  int64_t active = 0;  // At the start of the bin.
  for (size_t i = 0; i < bins_.size(); ++i) {
    const Bin& bin = bins_[i];
    if (i % per_window == 0) {
      windows.push_back({.at = (base_ + static_cast<int64_t>(i)) * width_,
                         .length = width_ * static_cast<int64_t>(per_window)});
    }
    Window& window = windows.back();
    // Each start adds what is left of the bin, each end takes it off.
    const auto width = static_cast<double>(width_.count());
    const double busy =
        width * static_cast<double>(active) +
        (width * bin.starts - static_cast<double>(bin.starts_after_ns)) -
        (width * bin.ends - static_cast<double>(bin.ends_after_ns));
    window.concurrency += busy / static_cast<double>(window.length.count());
    window.finished += bin.starts;
    window.mean_seconds += bin.seconds;
    active += int64_t{bin.starts} - bin.ends;
  }
  for (Window& window : windows) {
    if (window.finished > 0) {
      window.mean_seconds /= static_cast<double>(window.finished);
    }
  }
  return windows;
}

}  // namespace weir::cli
