#include "real.h"

#include <fmt/core.h>

#include <string>
#include <thread>
#include <vector>

#include "game.h"
#include "weir/host/clock.h"

namespace weir::game {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kLinks = 4;

struct Point {
  bool protect = true;
  double load = 2;
  Duration hello = seconds(1);
  Duration cost = milliseconds(2);
  // Of all buffers of a link, the kernel's and ours; 0: as they are.
  int buffers = 0;
  bool ahead = true;  // Reads ahead; else counts what the kernel has.
  std::string row{};
  std::string places{};  // Where it waits.
};

// Five seconds of calm, twenty of overload, of which the second half counts.
// Messages wait and do not compute, so points can run side by side.
void RunPoint(Point& point) {
  GameServer::Config config;
  config.wait = point.cost;
  config.server.protect = point.protect;
  config.server.socket_bytes = point.buffers;
  config.server.max_frame_bytes = 1024;
  if (point.buffers > 0) {
    config.server.buffer_bytes = static_cast<size_t>(point.buffers);
  }
  if (!point.ahead) {
    config.server.buffer_bytes = 2048;
    config.server.count_kernel = true;
  }
  config.server.capacity = {.unit = seconds(1), .window = seconds(6)};
  auto game = GameServer::Make(config);
  if (!game) {
    point.row = game.error().message;
    return;
  }
  std::vector<std::unique_ptr<AccessServer>> accesses;
  const double capacity = .9 / ToSeconds(point.cost);  // About.
  for (int i = 0; i < kLinks; ++i) {
    // Clocks that are 9 s apart.
    const Duration clock = i % 2 == 0 ? seconds(9) : seconds(-9);
    stream::ClientConfig client{
        .port = (*game)->port(),
        .hello_interval = point.hello,
        .socket_bytes = point.buffers,
        .clock = [clock] { return host::MonotonicClock::Now() + clock; }};
    if (point.buffers > 0) {
      client.queue_bytes = static_cast<size_t>(point.buffers);
    }
    auto access = AccessServer::Make(client, .5 * capacity / kLinks);
    if (!access) {
      point.row = access.error().message;
      return;
    }
    accesses.push_back(std::move(*access));
  }
  (*game)->Run(seconds(5));
  for (auto& access : accesses) access->SetRate(point.load * capacity / kLinks);
  (*game)->Run(seconds(10));
  const GameServer::Score before = (*game)->score();
  const uint64_t dropped = (*game)->statistics().dropped;
  uint64_t sent = 0;
  for (const auto& access : accesses) sent += access->sent();
  (*game)->Run(seconds(10));
  const GameServer::Score after = (*game)->score();
  for (const auto& access : accesses) sent -= access->sent();
  const stream::ServerStatistics statistics = (*game)->statistics();
  size_t unsent = 0;
  for (const auto& access : accesses) unsent += access->unsent_bytes();
  point.places = fmt::format(
      "{} | {} | {:.0f} | {}", unsent / 1024, statistics.kernel_bytes / 1024,
      static_cast<double>(statistics.reading.waiting) / 1024,
      statistics.overloaded ? "yes" : "no");
  const auto in_time = static_cast<double>(after.in_time - before.in_time) / 10;
  const auto late = static_cast<double>(after.late - before.late) / 10;
  // What one busy second achieved in these ten, less the tick; a machine that
  // stood still meanwhile has done less than that.
  const double capacity_then =
      .98 * (in_time + late) * 10 / ToSeconds(after.busy - before.busy);
  point.row = fmt::format(
      "| {} | {} | {:.2f} | {:.0f} | {:.3f} | {:.3f} | {:.0f} | {} |",
      point.protect ? "slice + dynamic" : "none", ToSeconds(point.hello),
      static_cast<double>(-static_cast<int64_t>(sent)) / 10 / capacity_then,
      capacity_then, in_time / capacity_then,
      in_time + late > 0 ? late / (in_time + late) : 0,
      static_cast<double>(statistics.dropped - dropped) / 10,
      statistics.new_rulers);
}

void RunAll(std::vector<Point>& points) {
  std::vector<std::thread> threads;
  for (Point& point : points) {
    threads.emplace_back([&point] { RunPoint(point); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int RunReal() {
  std::vector<Point> points = {{.protect = false},
                               {},
                               {.load = 5},
                               {.load = 5, .hello = milliseconds(100)}};
  RunAll(points);
  fmt::print(
      "threshold 1 s, lifetime 2 s, 4 links with clocks +-9 s\n\n"
      "| protection | Hello, s | load | capacity, 1/s | settled | late | "
      "dropped, 1/s | new rulers |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  for (const Point& point : points) fmt::print("{}\n", point.row);
  return 0;
}

// A message is cheap enough for buffers to fill within the run.
int RunBuffers() {
  std::vector<Point> points;
  for (const int buffers : {0, 1 << 16}) {
    points.push_back({.protect = false, .buffers = buffers});
    points.push_back({.buffers = buffers, .ahead = false});
    points.push_back({.buffers = buffers});
  }
  for (Point& point : points) {
    point.load = 5;
    point.hello = milliseconds(100);
    point.cost = std::chrono::microseconds(300);
  }
  RunAll(points);
  fmt::print(
      "threshold 1 s, lifetime 2 s, 4 links; at the end, KB of all links "
      "that wait unsent, in the kernel's receive buffers, and as counted\n\n"
      "| buffers | demand from | protection | Hello, s | load | capacity, 1/s "
      "| settled | late | dropped, 1/s | new rulers | unsent | SIOCINQ | "
      "counted | overloaded |\n"
      "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | "
      "---: | ---: | ---: | --- |\n");
  for (const Point& point : points) {
    fmt::print(
        "| {} | {} {} {} |\n", point.buffers > 0 ? "64 KB" : "as they are",
        point.ahead ? "reading ahead" : "SIOCINQ", point.row, point.places);
  }
  return 0;
}

}  // namespace weir::game
