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

constexpr Duration kCost = milliseconds(2);
constexpr int kLinks = 4;

struct Point {
  bool protect;
  double load;
  Duration hello;
  std::string row;
};

// Five seconds of calm, twenty of overload, of which the second half counts.
// Messages wait and do not compute, so points can run side by side.
void RunPoint(Point& point) {
  GameServer::Config config;
  config.wait = kCost;
  config.server.protect = point.protect;
  config.server.capacity = {.unit = seconds(1), .window = seconds(6)};
  auto game = GameServer::Make(config);
  if (!game) {
    point.row = game.error().message;
    return;
  }
  std::vector<std::unique_ptr<AccessServer>> accesses;
  const double capacity = .9 / ToSeconds(kCost);  // About.
  for (int i = 0; i < kLinks; ++i) {
    // Clocks that are 9 s apart.
    const Duration clock = i % 2 == 0 ? seconds(9) : seconds(-9);
    auto access = AccessServer::Make(
        {.port = (*game)->port(),
         .hello_interval = point.hello,
         .clock = [clock] { return host::MonotonicClock::Now() + clock; }},
        .5 * capacity / kLinks);
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

}  // namespace

int RunReal() {
  std::vector<Point> points = {{false, 2, seconds(1), {}},
                               {true, 2, seconds(1), {}},
                               {true, 5, seconds(1), {}},
                               {true, 5, milliseconds(100), {}}};
  std::vector<std::thread> threads;
  for (Point& point : points) {
    threads.emplace_back([&point] { RunPoint(point); });
  }
  for (std::thread& thread : threads) thread.join();
  fmt::print(
      "threshold 1 s, lifetime 2 s, 4 links with clocks +-9 s\n\n"
      "| protection | Hello, s | load | capacity, 1/s | settled | late | "
      "dropped, 1/s | new rulers |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  for (const Point& point : points) fmt::print("{}\n", point.row);
  return 0;
}

}  // namespace weir::game
