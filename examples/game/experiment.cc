// What becomes of a game server's work when more is offered than it can do,
// with and without protection.
//
//   game_experiment              in virtual time: seconds, always the same
//   game_experiment --real       some points over sockets, half a minute
//   game_experiment --buffers    small buffers, over sockets, half a minute

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "real.h"
#include "world.h"

namespace weir::game {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

const char* Name(Arm arm) {
  switch (arm) {
    case Arm::kNone:
      return "none";
    case Arm::kLoopTime:
      return "slice + loop time";
    case Arm::kDynamic:
      return "slice + dynamic";
    case Arm::kDisconnect:
      return "disconnect";
  }
  return "";
}

const char* Name(Clocks clocks) {
  switch (clocks) {
    case Clocks::kAgree:
      return "agree";
    case Clocks::kOffset:
      return "+-9 s apart";
    case Clocks::kStep:
      return "set by +-1 h";
    case Clocks::kDrift:
      return "drift +-100 ppm, 2 h";
    case Clocks::kRestart:
      return "a peer restarts";
  }
  return "";
}

std::string Seconds(double value) {
  return value < 0 ? "-" : fmt::format("{:.1f}", value);
}

void PrintRow(std::string_view first, double load, const Outcome& outcome) {
  fmt::print(
      "| {:<18} | {:>4} | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {} | "
      "{} |\n",
      first, load, outcome.settled_ratio, outcome.worst_link_ratio,
      outcome.valid_ratio, outcome.late_ratio, outcome.dropped_ratio,
      Seconds(outcome.detect_s), Seconds(outcome.recover_s));
}

constexpr std::string_view kColumns =
    " | load | settled | worst link | valid | late | dropped | detect, s | "
    "recover, s |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";

void PrintArms() {
  fmt::print("\nHello 1 s, threshold 1 s, lifetime 2 s, discard 1 us\n\n");
  fmt::print("| protection{}", kColumns);
  for (const Arm arm :
       {Arm::kNone, Arm::kLoopTime, Arm::kDynamic, Arm::kDisconnect}) {
    for (const double load : {.5, .9, 1.2, 2., 5., 10.}) {
      PrintRow(Name(arm), load, Simulate({.arm = arm, .load = load}));
    }
  }
}

void PrintClocks() {
  fmt::print("\nThe same at load 2, with clocks that do not agree\n\n");
  fmt::print("| protection, clocks{}", kColumns);
  for (const Clocks clocks : {Clocks::kAgree, Clocks::kOffset, Clocks::kStep,
                              Clocks::kDrift, Clocks::kRestart}) {
    for (const Arm arm : {Arm::kLoopTime, Arm::kDynamic}) {
      Case setup{.arm = arm, .clocks = clocks, .load = 2};
      if (clocks == Clocks::kDrift) setup.before = std::chrono::hours(2);
      PrintRow(fmt::format("{}, {}", Name(arm), Name(clocks)), 2,
               Simulate(setup));
    }
  }
}

// How fine the slices must be.
void PrintGrain() {
  const std::vector<std::pair<const char*, Case>> columns = {
      {"h=1", {}},
      {"h=1, one link", {.links = 1}},
      {"h=1, rest of slice", {.rest_of_slice = true}},
      {"h=.1", {.hello = milliseconds(100)}},
      {"h=.02", {.hello = milliseconds(20), .tick = milliseconds(1)}},
      {"stamps", {.tick = milliseconds(1), .stamped = true}},
      {"h=1, T=5", {.lifetime = seconds(5)}},
      {"h=5", {.hello = seconds(5)}},
      {"h=5, one link", {.links = 1, .hello = seconds(5)}},
      {"h=1, 50 us", {.discard = microseconds(50)}},
      {"stamps, 50 us",
       {.discard = microseconds(50), .tick = milliseconds(1), .stamped = true}},
  };
  fmt::print(
      "\nSettled ratio of slice + dynamic by Hello interval h; threshold 1 s, "
      "lifetime T 2 s, discard 1 us unless said\n\n| load |");
  for (const auto& column : columns) fmt::print(" {} |", column.first);
  fmt::print("\n| ---: |");
  for (size_t i = 0; i < columns.size(); ++i) fmt::print(" ---: |");
  fmt::print("\n");
  for (const double load : {1.2, 2., 3., 5., 10.}) {
    fmt::print("| {} |", load);
    for (const auto& column : columns) {
      Case setup = column.second;
      setup.load = load;
      fmt::print(" {:.3f} |", Simulate(setup).settled_ratio);
    }
    fmt::print("\n");
  }
}

// One link with even arrivals, slice + dynamic: what is judged is always at
// the same phase of the Hellos, so the result depends on it.
void PrintPhases() {
  fmt::print(
      "\nThe same of one link with even arrivals, over ten phases of the "
      "Hellos\n\n| load | smallest | mean | largest |\n"
      "| ---: | ---: | ---: | ---: |\n");
  for (const double load : {1.2, 2., 3., 5., 10.}) {
    double least = 2, sum = 0, most = 0;
    for (int i = 0; i < 10; ++i) {
      const double ratio = Simulate({.load = load,
                                     .links = 1,
                                     .even = true,
                                     .phase = i / 10.,
                                     .tick = milliseconds(1)})
                               .settled_ratio;
      least = std::min(least, ratio);
      most = std::max(most, ratio);
      sum += ratio;
    }
    fmt::print("| {} | {:.3f} | {:.3f} | {:.3f} |\n", load, least, sum / 10,
               most);
  }
}

// A link that holds 2 x 64 KB of 105 bytes each, half of it the kernel's
// receive buffer; and what the server sees of it.
void PrintBuffers() {
  constexpr size_t kHalf = 65536 / 105;
  struct Sight {
    const char* name;
    Arm arm;
    size_t visible;
  };
  fmt::print(
      "\nLinks that hold 2 x 64 KB, messages of 105 bytes; Hello .1 s, else as "
      "above\n\n| cost, us | protection{}",
      kColumns);
  for (const int cost : {1000, 36}) {
    for (const Sight& sight :
         {Sight{"none", Arm::kNone, 2 * kHalf},
          Sight{"SIOCINQ", Arm::kDynamic, kHalf},
          Sight{"reads ahead", Arm::kDynamic, 2 * kHalf}}) {
      for (const double load : {2., 10.}) {
        const Case setup{.arm = sight.arm,
                         .load = load,
                         .cost = microseconds(cost),
                         .hello = milliseconds(100),
                         .buffer = 2 * kHalf,
                         .visible = sight.visible,
                         .overload = seconds(60),
                         .after = seconds(60)};
        PrintRow(fmt::format("{} | {}", cost, sight.name), load,
                 Simulate(setup));
      }
    }
  }
}

int Main(int argc, char** argv) {
  const std::string_view option = argc > 1 ? argv[1] : "";
  if (option == "--real" && argc == 2) return RunReal();
  if (option == "--buffers" && argc == 2) return RunBuffers();
  if (argc > 1) {
    fmt::print(stderr, "usage: game_experiment [--real | --buffers]\n");
    return 2;
  }
  PrintArms();
  PrintClocks();
  PrintGrain();
  PrintPhases();
  PrintBuffers();
  return 0;
}

}  // namespace
}  // namespace weir::game

int main(int argc, char** argv) { return weir::game::Main(argc, argv); }
