// The constants of the law.  Source: docs/algorithms/law.md, "Constants", which
// tells why each has its value.

#ifndef WEIR_CORE_LIMIT_LAW_CONSTANTS_H_
#define WEIR_CORE_LIMIT_LAW_CONSTANTS_H_

#include <algorithm>
#include <cmath>

#include "weir/time.h"

namespace weir::law {

// Answers for one estimate; its relative error is sqrt(variation / 64).
inline constexpr double kSamples = 64;
// While searching, an estimate need not be that good.
inline constexpr double kStartSamples = 32;
// A slow service is judged by as few, once the round has lasted kLongRound
// budgets.
inline constexpr double kFewSamples = 8;
inline constexpr double kLongRound = 2;
// Bounds the time that one estimate takes with heavy tails.
inline constexpr double kMaxSampleFactor = 8;

// Share of the time that places were held which the latencies of a round's
// answers must account for, before more inflight is said to bring nothing; and
// the time in budgets, or long stays, after which it is said all the same.
inline constexpr double kBalance = .3;
inline constexpr double kLongImbalance = 8;

// The limit at the start, and the least to search from.
inline constexpr double kInitialLimit = 8;
// Headroom over capacity * base_latency, 3 to 4 standard errors of it.
inline constexpr double kHeadroom = 1.5;
// Gain while throughput follows the limit.
inline constexpr double kGrowthGain = 2;
// Throughput that counts as growth: 2 standard errors.
inline constexpr double kGrowth = 1.25;
// The up-probe, over the cruising limit.
inline constexpr double kUpGain = 1.5;
// The least raise that tells whether throughput follows.
inline constexpr double kLeastRaise = 1.5;
// Slots are the limit rounded down, but for an error of computing.
inline constexpr double kRounding = 1e-6;

// The limit while draining, relative to capacity * base_latency: far enough
// from 1 to tell a queue (latency ratio .5) from a base latency (ratio 1).
inline constexpr double kDrainDepth = .5;
// Latency ratios that confirm the base latency; else it is distrusted.
inline constexpr double kConfirmLow = .6;
inline constexpr double kConfirmHigh = 1 / .6;
// Work between drains, in units of what one costs: .4 % of the time.
inline constexpr double kDrainInterval = 256;
inline constexpr double kFirstDrain = 4;
// Units between up-probes: at first, doubling to at most.
inline constexpr double kFirstUp = 16;
inline constexpr double kMostUp = 256;

// Smoothing of throughput over rounds.
inline constexpr double kSmoothing = .25;
// Fall of smoothed throughput since the last check that calls for an
// explanation: 5 to 7 standard errors.
inline constexpr double kFall = .65;
// A round below this share of capacity needs one.  One is a pause; a second in
// a row, being 4 standard errors off itself, is a fall.
inline constexpr double kCollapse = .5;

// Of the budget less what a request takes anyway, the share that queueing in
// the service may take at most, by Little's law.
inline constexpr double kServiceShare = 1. / 3;
// The share from which on a round's answers are late.
inline constexpr double kLateShare = 1. / 2;
// The share that waiting may take while an overload stands.
inline constexpr double kQueueShare = 1. / 5;
// Share of the places that are taken, on average over a round, from which on
// the limit held the service back, whatever the queue says.
inline constexpr double kTaken = .8;
// Queue target in standard deviations of the number in service.
inline constexpr double kQueueDeviations = 6;
inline constexpr double kMinQueueTarget = 4;
// Most that wait while nothing is known of capacity.
inline constexpr double kSearchRoom = 8192;

// Of the answers in a round, the share that was refused for want of a place
// besides, from which on the limit held throughput back.
inline constexpr double kWanting = .05;
// Without an answer for so long while requests wait, a search raises the limit
// by the clock, if nothing was ever answered: a share of the budget, but enough
// for an answer to come.  Up to kBlindLimit.
inline double LeastSilence(double budget) { return std::max(budget / 32, .01); }
inline constexpr double kBlindLimit = 1024;
// A drain is given up when nothing was answered for so many times what all that
// was at work would have taken.
inline constexpr double kMissing = 4;
// While cruising, more is known: so many budgets without an answer are needed
// for a new search.
inline constexpr double kLongSilence = 1;
// A raise that leaves latency below kLateShare, were the service saturated,
// needs no verdict after this share of a budget.
inline constexpr double kSafeRound = 1. / 8;

// Answers in vain (late, or lost) over those in time from which on the limit
// retreats; how much more must be in time then, or else the share of throughput
// that must remain.
inline constexpr double kMostInVain = 3;
inline constexpr double kBetter = 1.25;
inline constexpr double kKept = .75;
// A retreat in vain is not tried again for so many budgets at most.
inline constexpr double kMostRetreatWait = 64;
// Throughput at a lowered limit, over that before, below which it was the limit
// that held it back.
inline constexpr double kLess = .8;
// Answers over lost ones below which throughput is a poor witness.
inline constexpr double kManyLost = 4;

// What was proved is asked again after this time.
inline constexpr Duration kAge = std::chrono::seconds(10);
// An unused limit shrinks to this multiple of what was used.
inline constexpr double kUnused = 2;

// Weights of base_latency and variation in calm times.
inline constexpr double kMinCalmWeight = 16;
inline constexpr double kMaxCalmWeight = 512;
inline constexpr double kVariationWeight = 256;
inline constexpr double kDrainVariationGain = .3;
// Smoothing of the mean budget, in arrivals.
inline constexpr double kBudgetWeight = 256;

// Known workers: covers the time between an answer and the next request, where
// there are enough of them that one more does not double what each takes.
inline double KnownLimit(double workers) { return std::floor(1.1 * workers); }

}  // namespace weir::law

#endif  // WEIR_CORE_LIMIT_LAW_CONSTANTS_H_
