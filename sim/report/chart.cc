#include "chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "path.h"
#include "text.h"

namespace weir::sim_report {
namespace {

// All sizes are in pixels of a chart that is shown at its own size.  Curves
// are drawn on a grid four times as fine, in whole numbers.
constexpr int kFine = 4;
constexpr int kLineHeight = 13;
constexpr size_t kLabelCharacters = 12;

struct Frame {
  int width;
  int height;
  int left;
  int right;
  int top;
  int bottom;

  int plot_width() const { return width - left - right; }
  int plot_height() const { return height - top - bottom; }
  int X(double place) const {
    return left + static_cast<int>(std::lround(place * plot_width()));
  }
  int Y(double place) const {
    return top + static_cast<int>(std::lround((1 - place) * plot_height()));
  }
  int FineX(double place) const {
    return static_cast<int>(std::lround(place * plot_width() * kFine));
  }
  int FineY(double place) const {
    return static_cast<int>(std::lround((1 - place) * plot_height() * kFine));
  }
};
// To the right there is room for a label of the broadest of the fonts.
constexpr Frame kFrame = {400, 226, 52, 100, 16, 24};

std::string Curve(const Frame& frame, const Axis& axis, const Points& points) {
  const std::vector<double>& values = points.values;
  Path path;
  bool drawing = false;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      drawing = false;
      continue;
    }
    const int x = frame.FineX(points.Place(i));
    const int y = frame.FineY(axis.Place(values[i]));
    // A point alone is a short dash.
    if (!drawing) path.Move(std::max(0, x - 1), y);
    path.Line(x, y);
    drawing = true;
  }
  return path.Take();
}

// The area below; where there is no value it lies on the ground.
std::string Area(const Frame& frame, const Axis& axis, const Points& points) {
  const std::vector<double>& values = points.values;
  Path path;
  const int ground = frame.FineY(0);
  path.Move(0, ground);
  for (size_t i = 0; i < values.size(); ++i) {
    const int y = std::isfinite(values[i])
                      ? std::min(ground, frame.FineY(axis.Place(values[i])))
                      : ground;
    if (i == 0) path.Line(0, y);
    path.Line(frame.FineX(points.Place(i)), y);
    if (i + 1 == values.size()) path.Line(frame.FineX(1), y);
  }
  path.Line(frame.FineX(1), ground);
  path.Close();
  return path.Take();
}

std::string Open(const Frame& frame, const std::string& title,
                 const std::string& description) {
  return fmt::format(
      "<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\">"
      "<title>{}</title><desc>{}</desc>\n",
      frame.width, frame.height, Escaped(title), Escaped(description));
}

// A drawing on the fine grid that cuts off what lies outside, but not half of
// a line that runs along the edge.
std::string OpenPlot(const Frame& frame) {
  constexpr int kEdge = 2;
  return fmt::format(
      "<svg x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" viewBox=\"{} {} {} "
      "{}\">",
      frame.left - kEdge, frame.top - kEdge, frame.plot_width() + 2 * kEdge,
      frame.plot_height() + 2 * kEdge, -kEdge * kFine, -kEdge * kFine,
      (frame.plot_width() + 2 * kEdge) * kFine,
      (frame.plot_height() + 2 * kEdge) * kFine);
}

std::string Grid(const Frame& frame, const Axis& axis, double seconds,
                 const std::vector<Mark>& phases) {
  std::string svg;
  Path lines;
  for (const Tick& tick : axis.ticks) {
    const int y = frame.Y(axis.Place(tick.value));
    lines.Move(frame.left, y);
    lines.Line(frame.left + frame.plot_width(), y);
    svg += fmt::format("<text class=\"y\" x=\"{}\" y=\"{}\">{}</text>",
                       frame.left - 6, y + 4, Escaped(tick.label));
  }
  svg += fmt::format("<path class=\"grid\" d=\"{}\"/>", lines.Take());
  const Axis time = LinearAxis(seconds, Unit::kSeconds, 5);
  for (const Tick& tick : time.ticks) {
    svg += fmt::format("<text class=\"x\" x=\"{}\" y=\"{}\">{}</text>",
                       frame.X(time.Place(tick.value)), frame.height - 7,
                       Escaped(tick.label));
  }
  Path starts;
  for (const Mark& phase : phases) {
    if (phase.place <= 0) continue;
    starts.Move(frame.X(phase.place), frame.top);
    starts.Line(frame.X(phase.place), frame.top + frame.plot_height());
  }
  const std::string marks = starts.Take();
  if (!marks.empty()) {
    svg += fmt::format("<path class=\"phase\" d=\"{}\"/>", marks);
  }
  return svg + "\n";
}

// Names of the phases above the plot, those that have room.
std::string PhaseNames(const Frame& frame, const std::vector<Mark>& phases) {
  std::string svg;
  for (size_t i = 0; i < phases.size(); ++i) {
    const int begin = frame.X(phases[i].place);
    const int end =
        i + 1 < phases.size() ? frame.X(phases[i + 1].place) : frame.width;
    const int characters = (end - begin - 4) / 6;
    if (characters < 3) continue;
    svg += fmt::format(
        "<text x=\"{}\" y=\"{}\">{}</text>", begin + 2, frame.top - 5,
        Escaped(Shortened(phases[i].name, static_cast<size_t>(characters))));
  }
  return svg;
}

// A name at the end of a line.
struct Label {
  std::string name;
  std::string group;  // Opening tag of the group it belongs to.
  int wanted = 0;     // Where the line ends.
  int y = 0;
};

// Moves labels apart, as little as it takes, within the plot.
void Spread(std::vector<Label>& labels, int top, int bottom) {
  std::stable_sort(
      labels.begin(), labels.end(),
      [](const Label& a, const Label& b) { return a.wanted < b.wanted; });
  int free = top;
  for (Label& label : labels) {
    label.y = std::max(free, label.wanted);
    free = label.y + kLineHeight;
  }
  int limit = bottom;
  for (size_t i = labels.size(); i-- > 0;) {
    labels[i].y = std::min(labels[i].y, limit);
    limit = labels[i].y - kLineHeight;
  }
}

std::string ToSvg(const Frame& frame, const Label& label) {
  const int edge = frame.left + frame.plot_width();
  std::string svg = label.group;
  if (std::abs(label.y - label.wanted) > 2) {
    svg += fmt::format("<path class=\"lead1\" d=\"M{} {}L{} {}\"/>", edge + 2,
                       label.wanted, edge + 8, label.y);
  }
  return svg + fmt::format("<text x=\"{}\" y=\"{}\">{}</text></g>", edge + 10,
                           label.y + 4,
                           Escaped(Shortened(label.name, kLabelCharacters)));
}

std::string OpenGroup(const Look& look) {
  if (look.index == Look::kAlways) {
    return fmt::format("<g class=\"s{}\">", look.style);
  }
  return fmt::format("<g class=\"a{} s{}{}\">", look.index, look.style,
                     look.drawn ? "" : " extra");
}

// The last value there is; the index of its point.
size_t LastPoint(const std::vector<double>& values) {
  for (size_t i = values.size(); i-- > 0;) {
    if (std::isfinite(values[i])) return i;
  }
  return values.size();
}

int EndOf(const Frame& frame, const Axis& axis, double value) {
  return std::clamp(frame.Y(axis.Place(value)), frame.top,
                    frame.top + frame.plot_height());
}

// Lines that are not drawn at first have their names within the plot, each at
// another place, so that they are told apart however many are chosen.
std::string InnerLabel(const Frame& frame, const Axis& axis, const Line& line,
                       size_t number) {
  const std::vector<double>& values = line.points.values;
  const size_t points = values.size();
  const size_t wanted = points * (3 + number * 5 % 12) / 16;
  size_t at = wanted;
  while (at < points && !std::isfinite(values[at])) ++at;
  if (at == points) at = LastPoint(line.points.values);
  return OpenGroup(line.look) +
         fmt::format("<text class=\"in x\" x=\"{}\" y=\"{}\">{}</text></g>",
                     frame.X(line.points.Place(at)),
                     EndOf(frame, axis, values[at]) + 4, Escaped(line.name));
}

std::string Caption(const std::string& title, const std::string& unit) {
  return fmt::format("<figcaption>{} <span>{}</span></figcaption>",
                     Escaped(title), Escaped(unit));
}

}  // namespace

std::string ToSvg(const Chart& chart) {
  const Frame& frame = kFrame;
  std::string svg = "<figure>" + Caption(chart.title, chart.unit) +
                    Open(frame, chart.title, chart.description) +
                    Grid(frame, chart.axis, chart.seconds, chart.phases);
  if (chart.name_phases) svg += PhaseNames(frame, chart.phases);

  std::vector<Label> labels;
  std::string inner_labels;
  std::string without;
  svg += OpenPlot(frame);
  if (LastPoint(chart.area.values) < chart.area.values.size()) {
    svg += fmt::format(
        "<path class=\"ref\" d=\"{}\"/><path class=\"refline\" d=\"{}\"/>\n",
        Area(frame, chart.axis, chart.area),
        Curve(frame, chart.axis, chart.area));
    labels.push_back({chart.area_name, "<g>",
                      EndOf(frame, chart.axis,
                            chart.area.values[LastPoint(chart.area.values)])});
  }
  size_t number = 0;
  // Backwards: the first lies on top.
  for (size_t i = chart.lines.size(); i-- > 0;) {
    const Line& line = chart.lines[i];
    const size_t last = LastPoint(line.points.values);
    if (last == line.points.values.size()) {
      if (!line.look.drawn) continue;
      without = line.name + (without.empty() ? "" : ", ") + without;
      continue;
    }
    svg +=
        OpenGroup(line.look) +
        fmt::format("<title>{}</title><path class=\"l\" d=\"{}\"/></g>\n",
                    Escaped(line.name), Curve(frame, chart.axis, line.points));
    if (line.look.drawn) {
      const bool beyond = chart.axis.Place(line.points.values[last]) > 1;
      labels.push_back({line.name + (beyond ? " ↑" : ""), OpenGroup(line.look),
                        EndOf(frame, chart.axis, line.points.values[last])});
    } else {
      inner_labels += InnerLabel(frame, chart.axis, line, number++);
    }
  }
  svg += "</svg>\n";
  if (chart.due > 0) {
    const double place = chart.axis.Place(chart.due);
    if (place >= 0 && place <= 1) {
      svg += fmt::format("<path class=\"due\" d=\"M{} {}h{}\"/>", frame.left,
                         frame.Y(place), frame.plot_width());
      labels.push_back({chart.due_name, "<g>", frame.Y(place)});
    }
  }
  Spread(labels, frame.top, frame.top + frame.plot_height());
  for (const Label& label : labels) svg += ToSvg(frame, label);
  svg += inner_labels + "</svg>";
  if (!without.empty()) {
    svg += fmt::format("<p>Nothing to draw for {}.</p>", Escaped(without));
  }
  return svg + "</figure>\n";
}

std::string ToSvg(const StackedChart& chart) {
  const Frame& frame = kFrame;
  std::string svg = fmt::format("<figure class=\"a{}{}\">", chart.look.index,
                                chart.look.drawn ? "" : " extra") +
                    Caption(chart.title, chart.unit) +
                    Open(frame, chart.title, chart.description) +
                    Grid(frame, chart.axis, chart.seconds, chart.phases) +
                    OpenPlot(frame);
  std::vector<Points> sums;  // Of each layer and those below it.
  for (const Layer& layer : chart.layers) {
    const std::vector<double>& values = layer.points.values;
    sums.push_back(sums.empty() ? Points{{}, layer.points.step} : sums.back());
    std::vector<double>& sum = sums.back().values;
    sum.resize(std::max(sum.size(), values.size()));
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i])) sum[i] += values[i];
    }
  }
  if (sums.empty() || sums.back().values.empty()) return {};
  const std::vector<double>& all = sums.back().values;
  const auto peak = static_cast<size_t>(
      std::max_element(all.begin(), all.end()) - all.begin());
  std::vector<Label> labels;
  double ground = 0;
  std::string areas;
  for (size_t i = 0; i < sums.size(); ++i) {
    const Layer& layer = chart.layers[i];
    if (Most(layer.points.values) <= 0) continue;
    // The sum of fewer layers lies on top of that of more.
    areas.insert(0, fmt::format("<path class=\"area k{}\" d=\"{}\"/>\n",
                                layer.ink, Area(frame, chart.axis, sums[i])));
    labels.push_back(
        {layer.name,
         fmt::format("<g><rect class=\"k{}\" width=\"9\" height=\"9\" ",
                     layer.ink),
         EndOf(frame, chart.axis, (ground + sums[i].values[peak]) / 2)});
    ground = sums[i].values[peak];
  }
  svg += areas + "</svg>";
  Spread(labels, frame.top + 6, frame.top + frame.plot_height() - 4);
  const int edge = frame.left + frame.plot_width() + 8;
  for (const Label& label : labels) {
    svg += fmt::format(
        "{}x=\"{}\" y=\"{}\"/><text x=\"{}\" y=\"{}\">{}"
        "</text></g>",
        label.group, edge, label.y - 5, edge + 13, label.y + 4,
        Escaped(Shortened(label.name, kLabelCharacters - 1)));
  }
  return svg + "</svg></figure>\n";
}

std::string Swatch(size_t style) {
  return fmt::format(
      "<svg class=\"swatch s{}\" viewBox=\"0 0 136 40\" aria-hidden=\"true\">"
      "<path class=\"l\" d=\"M0 20h136\"/></svg>",
      style);
}

std::string DotStrips(const std::string& title, const std::string& description,
                      const std::vector<DotRow>& rows) {
  constexpr int kRow = 18;
  const Frame frame = {
      400, static_cast<int>(rows.size()) * kRow + 34, 152, 24, 6, 24};
  std::string svg = fmt::format(
      "<svg class=\"plot dots\" viewBox=\"0 0 {} {}\" role=\"img\">"
      "<title>{}</title><desc>{}</desc>\n",
      frame.width, frame.height, Escaped(title), Escaped(description));
  Path lines;
  for (int quarter = 0; quarter <= 4; ++quarter) {
    const int x = frame.X(quarter / 4.);
    lines.Move(x, frame.top);
    lines.Line(x, frame.top + frame.plot_height());
    svg += fmt::format("<text class=\"x\" x=\"{}\" y=\"{}\">{}{}</text>", x,
                       frame.height - 7, quarter * 25, "\u2009%");
  }
  svg += fmt::format("<path class=\"grid\" d=\"{}\"/>\n", lines.Take());
  for (size_t i = 0; i < rows.size(); ++i) {
    const int y = frame.top + static_cast<int>(i) * kRow + kRow / 2;
    svg += fmt::format(
        "<g class=\"s{}\"><text class=\"y\" x=\"{}\" y=\"{}\"{}>"
        "{}</text>",
        rows[i].style, frame.left - 8, y + 4,
        rows[i].strong ? " font-weight=\"650\"" : "",
        Escaped(Shortened(rows[i].name, 21)));
    for (const double value : rows[i].values) {
      svg += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"4\"/>",
                         frame.X(std::clamp(value, 0., 1.)), y);
    }
    svg += "</g>\n";
  }
  return svg + "</svg>\n";
}

}  // namespace weir::sim_report
