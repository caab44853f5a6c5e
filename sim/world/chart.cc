#include "chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace weir::sim {

namespace {

constexpr double kWidth = 720;
constexpr double kHeight = 200;
constexpr double kLeft = 52;
constexpr double kRight = 8;
constexpr double kTop = 14;
constexpr double kBottom = 24;

// 1, 2 or 5 times a power of ten, so that about `count` of them make `range`.
double NiceStep(double range, int count) {
  const double rough = range / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double step : {1., 2., 5., 10.}) {
    if (step * power >= rough) return step * power;
  }
  return 10 * power;
}

std::string Number(double value) {
  if (value >= 10'000) return fmt::format("{:g}k", value / 1000);
  return fmt::format("{:g}", value);
}

class Axes {
 public:
  explicit Axes(const Chart& chart) : chart_(chart) {
    double most = 0;
    double least = std::numeric_limits<double>::infinity();
    for (const ChartLine& line : chart.lines) {
      for (const double value : line.values) {
        if (!std::isfinite(value)) continue;
        most = std::max(most, value);
        if (value > 0) least = std::min(least, value);
      }
    }
    if (chart.ceiling > 0) most = std::min(most, chart.ceiling);
    if (most <= 0) most = 1;
    if (chart.logarithmic) {
      low_ = std::floor(std::log10(std::min(least, most)));
      high_ = std::max(std::ceil(std::log10(most)), low_ + 1);
    } else {
      step_ = NiceStep(most, 4);
      high_ = step_ * std::ceil(most / step_);
    }
    begin_ = chart.seconds.front();
    end_ = chart.seconds.back();
    if (end_ <= begin_) end_ = begin_ + 1;
  }

  double X(double seconds) const {
    return kLeft +
           (seconds - begin_) / (end_ - begin_) * (kWidth - kLeft - kRight);
  }
  double Y(double value) const {
    if (chart_.logarithmic) {
      value = std::log10(std::max(value, 1e-9));
    }
    const double share = std::clamp((value - low_) / (high_ - low_), 0., 1.);
    return kHeight - kBottom - share * (kHeight - kTop - kBottom);
  }

  std::string Grid() const {
    std::string svg;
    const auto tick = [&](double value) {
      svg += fmt::format(
          "<path class=grid d=\"M{:.0f} {:.1f}H{:.0f}\"/>"
          "<text x={:.0f} y={:.1f} class=y>{}</text>",
          kLeft, Y(value), kWidth - kRight, kLeft - 5, Y(value) + 4,
          Number(value));
    };
    if (chart_.logarithmic) {
      for (double p = low_; p <= high_; p += 1) tick(std::pow(10, p));
    } else {
      for (double v = 0; v <= high_ + step_ / 2; v += step_) tick(v);
    }
    const double step = NiceStep(end_ - begin_, 8);
    for (double s = step * std::ceil(begin_ / step); s <= end_; s += step) {
      svg += fmt::format("<text x={:.1f} y={:.0f} class=x>{:g} s</text>", X(s),
                         kHeight - 7, s);
    }
    return svg;
  }

 private:
  const Chart& chart_;
  double low_ = 0;
  double high_ = 1;
  double step_ = 1;
  double begin_ = 0;
  double end_ = 1;
};

std::string Path(const Chart& chart, const ChartLine& line, const Axes& axes) {
  std::string path;
  bool drawing = false;
  for (size_t i = 0; i < line.values.size(); ++i) {
    if (!std::isfinite(line.values[i])) {
      drawing = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", drawing ? 'L' : 'M',
                        axes.X(chart.seconds[i]), axes.Y(line.values[i]));
    drawing = true;
  }
  return path;
}

}  // namespace

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string ToSvg(const Chart& chart) {
  if (chart.seconds.empty()) return {};
  const Axes axes(chart);
  std::string svg = fmt::format(
      "<figure><figcaption>{}<span>{}</span></figcaption>"
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=img aria-label=\"{}\">",
      Escaped(chart.title), Escaped(chart.unit), kWidth, kHeight,
      Escaped(chart.title));
  svg += axes.Grid();
  for (const auto& [at, name] : chart.marks) {
    svg += fmt::format(
        "<path class=mark d=\"M{0:.1f} {1:.0f}V{2:.0f}\"/>"
        "<text x={3:.1f} y={4:.0f} class=phase>{5}</text>",
        axes.X(at), kTop, kHeight - kBottom, axes.X(at) + 3, kTop - 3,
        Escaped(name));
  }
  // The first line is drawn last, on top.
  for (size_t i = chart.lines.size(); i-- > 0;) {
    const ChartLine& line = chart.lines[i];
    svg += fmt::format(
        "<path class=\"line l{}\" d=\"{}\"><title>{}</title>"
        "</path>",
        line.style, Path(chart, line, axes), Escaped(line.name));
  }
  svg += "</svg><p class=legend>";
  for (const ChartLine& line : chart.lines) {
    svg += fmt::format(
        "<span><svg viewBox=\"0 0 28 8\"><path class=\"line l{}\" "
        "d=\"M0 4H28\"/></svg>{}</span>",
        line.style, Escaped(line.name));
  }
  return svg + "</p></figure>\n";
}

}  // namespace weir::sim
