#include "weir/hunt/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "weir/hunt/change.h"
#include "weir/hunt/table.h"
#include "weir/scenario/random.h"

namespace weir::hunt {
namespace {

// Chosen: where nobody does more, a loss says nothing about a law.
constexpr double kLeastBest = .1;

class Searcher {
 public:
  explicit Searcher(const SearchOptions& options)
      : options_(options), random_(options.first_seed, 1) {}

  void Run() {
    for (;;) {
      World world;
      {
        const std::lock_guard lock(mutex_);
        const double progress = options_.progress();
        if (progress >= 1 || failed_) return;
        world = progress < .5 || worst_.empty()
                    ? DrawWorld(options_.first_seed + drawn_++)
                    : Changed();
      }
      auto figures = Play(world, options_.algorithms, options_.policy);
      const std::lock_guard lock(mutex_);
      if (!figures) {
        failed_ = figures.error();
        return;
      }
      Keep({std::move(world), *std::move(figures)});
    }
  }

  Result<std::vector<Played>> Take() {
    if (failed_) return *failed_;
    return std::move(worst_);
  }

 private:
  double LossOf(const Played& played) const {
    return Loss(played, options_.baseline);
  }

  // One of the worst, the worse the likelier, with something else.
  World Changed() {
    const size_t i =
        std::min(random_.Below(worst_.size()), random_.Below(worst_.size()));
    World world = Mutate(worst_[i].world, random_);
    world.scenario.name = fmt::format("world-{}-{}", world.seed, ++changed_);
    Finish(world);
    return world;
  }

  void Keep(Played played) {
    double best = 0;
    for (const Figures& figures : played.figures) {
      best = std::max(best, figures.score());
    }
    if (best < kLeastBest) return;
    const double loss = LossOf(played);
    const auto place =
        std::find_if(worst_.begin(), worst_.end(),
                     [&](const Played& other) { return LossOf(other) < loss; });
    worst_.insert(place, std::move(played));
    if (worst_.size() > options_.kept) worst_.pop_back();
  }

  const SearchOptions& options_;
  std::mutex mutex_;
  scenario::Random random_;
  uint64_t drawn_ = 0;
  uint64_t changed_ = 0;
  std::vector<Played> worst_;
  std::optional<Error> failed_;
};

}  // namespace

Result<std::vector<Played>> Search(const SearchOptions& options) {
  Searcher searcher(options);
  std::vector<std::thread> others;
  for (int i = 1; i < options.threads; ++i) {
    others.emplace_back([&searcher] { searcher.Run(); });
  }
  searcher.Run();
  for (std::thread& other : others) other.join();
  return searcher.Take();
}

}  // namespace weir::hunt
