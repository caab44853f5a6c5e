// Draws worlds: a service, what happens to it, and who asks it for what.
//
// A world follows from its seed alone.  It is written as the text of a scenario
// file, and what is played is what that text reads back to; so whoever saves
// the text plays the same world, to the bit.

#ifndef WEIR_HUNT_DRAW_H_
#define WEIR_HUNT_DRAW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "weir/scenario/scenario.h"

namespace weir::hunt {

// Of the way worlds are drawn: another one makes other worlds of all seeds.
inline constexpr int kGenerator = 2;

struct World {
  uint64_t seed = 0;
  std::string text;             // A scenario file.
  scenario::Scenario scenario;  // What it reads as.
  int guard_workers = 1;        // [1, 64].
  bool told_workers = false;    // The policy has `limit.workers`.
  // What it is like, as "workers 21-300", "bimodal", "square": each is a row
  // of the breakdown.
  std::vector<std::string> traits;
};

// The phase that begins when whatever disturbed the service is over and it has
// had kSettle to come back; worlds without a disturbance have none.
inline constexpr std::string_view kAfter = "after";
// The last one, a deadline long: nobody asks any more, and what was asked for
// last is answered.
inline constexpr std::string_view kEnd = "end";

// Most attempts that a world is expected to make, by which its length is cut.
// Chosen: some tenth of a second for a run.
inline constexpr double kMostAttempts = 150'000;

inline constexpr double kLeastAttempts = 300;

World DrawWorld(uint64_t seed);

// Makes the text of the scenario, and the scenario what that reads as.  False,
// and the world is of no use, when no file may say it.
bool Finish(World& world);

// Whether it is neither too big nor too small.
bool Playable(const scenario::Scenario& scenario);

// One line that says what the world is.
std::string Describe(const World& world);

}  // namespace weir::hunt

#endif  // WEIR_HUNT_DRAW_H_
