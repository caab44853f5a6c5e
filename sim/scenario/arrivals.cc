#include "weir/scenario/arrivals.h"

#include <algorithm>

#include "weir/scenario/capacity.h"

namespace weir::scenario {
namespace {

// Length of a step in which a changing rate is taken as constant.
// Chosen: 1/100 of the shortest ramp that the scenarios have (1 s).
constexpr Duration kStep = std::chrono::milliseconds(10);

}  // namespace

Picker::Picker(std::vector<double> weights) : cumulative_(std::move(weights)) {
  double sum = 0;
  for (double& weight : cumulative_) weight = sum += weight;
  for (double& weight : cumulative_) weight /= sum;
  const size_t cells = cumulative_.size();
  uint32_t index = 0;
  for (size_t cell = 0; cell < cells; ++cell) {
    const double from = static_cast<double>(cell) / static_cast<double>(cells);
    while (index + 1 < cells && cumulative_[index] <= from) ++index;
    guide_.push_back(index);
  }
}

size_t Picker::Pick(double uniform) const {
  const size_t cells = guide_.size();
  const auto cell = static_cast<size_t>(uniform * static_cast<double>(cells));
  size_t index = guide_[std::min(cell, cells - 1)];
  // A cell's edge may be rounded past the number that is looked for.
  while (index > 0 && cumulative_[index - 1] > uniform) --index;
  while (index + 1 < cells && cumulative_[index] <= uniform) ++index;
  return index;
}

Instants::Instants(const Scenario& scenario, uint64_t seed, const Hog* hog,
                   uint64_t stream)
    : scenario_(scenario),
      hog_(hog),
      random_(seed, stream),
      bursts_(seed, kBursts),
      nominal_(CapacityAt(scenario, {})) {
  if (hog_ != nullptr) {
    const Duration end = hog_->until.value_or(scenario.length());
    piece_ = {std::min(end, scenario.length()), nominal_ * hog_->load};
    now_ = std::min(hog_->from, piece_.end);
  }
  need_ = Gap();
}

double Instants::Gap() {
  return scenario_.arrivals == Spacing::kPoisson ? random_.Exponential() : 1;
}

std::optional<Duration> Instants::Next() {
  for (;;) {
    const double room = ToSeconds(piece_.end - now_) * piece_.per_second;
    if (need_ < room) {
      now_ += FromSeconds(need_ / piece_.per_second);
      need_ = Gap();
      return std::min(now_, piece_.end - Duration(1));
    }
    need_ -= room;
    now_ = piece_.end;
    if (!NextPiece()) return std::nullopt;
  }
}

bool Instants::NextPiece() {
  if (hog_ != nullptr) return false;
  while (phase_ < scenario_.phases.size() &&
         now_ >= phase_start_ + scenario_.phases[phase_].duration) {
    phase_start_ += scenario_.phases[phase_].duration;
    flip_ = phase_start_;
    high_ = true;
    ++phase_;
  }
  if (phase_ == scenario_.phases.size()) return false;

  const Phase& phase = scenario_.phases[phase_];
  const Duration end = phase_start_ + phase.duration;
  double load = phase.load;
  piece_.end = end;
  if (phase.shape == Phase::Shape::kRamp || phase.of_current) {
    piece_.end = std::min(end, now_ + kStep);
  }
  if (phase.shape == Phase::Shape::kRamp) {
    load = LoadAt(phase, now_ + (piece_.end - now_) / 2 - phase_start_);
  } else if (phase.shape != Phase::Shape::kConstant) {
    if (now_ >= flip_) {
      high_ = !high_ && phase.peak_for > Duration{};
      const double mean =
          ToSeconds(high_ ? phase.peak_for : phase.every - phase.peak_for);
      const bool random = phase.shape == Phase::Shape::kBursts;
      flip_ = now_ + FromSeconds(mean * (random ? bursts_.Exponential() : 1));
    }
    load = high_ ? phase.to : phase.load;
    piece_.end = std::min(piece_.end, std::max(flip_, now_ + Duration(1)));
  }
  const double unit = phase.of_current ? CapacityAt(scenario_, now_) : nominal_;
  piece_.per_second = load * unit;
  return true;
}

Arrivals::Arrivals(const Scenario& scenario, uint64_t seed)
    : scenario_(scenario), attributes_(seed, kAttributes) {
  sources_.push_back({Instants(scenario, seed, nullptr, scenario::kArrivals),
                      nullptr, 0, std::nullopt});
  auto client = static_cast<uint32_t>(scenario.clients.count);
  uint64_t stream = kHogs;
  for (const Hog& hog : scenario.clients.hogs) {
    sources_.push_back(
        {Instants(scenario, seed, &hog, stream++), &hog, client, std::nullopt});
    client += static_cast<uint32_t>(hog.count);
  }
  for (Source& source : sources_) source.next = source.instants.Next();

  if (scenario.clients.zipf > 0) {
    std::vector<double> weights;
    for (int32_t k = 1; k <= scenario.clients.count; ++k) {
      weights.push_back(Exp(-scenario.clients.zipf * Log(k)));
    }
    clients_.emplace(std::move(weights));
  }
  std::vector<double> routes;
  for (const Route& route : scenario.routes) routes.push_back(route.share);
  std::vector<double> shares;
  for (const Class& cls : scenario.classes) shares.push_back(cls.share);
  for (const Phase& phase : scenario.phases) {
    classes_.emplace_back(phase.shares.empty() ? shares : phase.shares);
    routes_.emplace_back(phase.mix.empty() ? routes : phase.mix);
  }
}

uint32_t Arrivals::DrawClient() {
  const double uniform = attributes_.Uniform();
  if (clients_) return static_cast<uint32_t>(clients_->Pick(uniform));
  return static_cast<uint32_t>(uniform * scenario_.clients.count);
}

std::optional<Arrival> Arrivals::Next() {
  Source* first = nullptr;
  for (Source& source : sources_) {
    if (source.next && (first == nullptr || *source.next < *first->next)) {
      first = &source;
    }
  }
  if (first == nullptr) return std::nullopt;

  Arrival arrival{.at = *first->next, .number = number_++};
  if (first->hog == nullptr) {
    arrival.phase = static_cast<uint16_t>(first->instants.phase());
  } else {
    // Phases are few, and hogs rare.
    while (scenario_.PhaseStart(arrival.phase + size_t{1}) <= arrival.at) {
      ++arrival.phase;
    }
  }
  // Every request draws the same three numbers, used or not.
  const double cls = attributes_.Uniform();
  const uint32_t client = DrawClient();
  const double route = attributes_.Uniform();
  arrival.route = static_cast<uint16_t>(routes_[arrival.phase].Pick(route));
  if (first->hog == nullptr) {
    arrival.cls = static_cast<uint16_t>(classes_[arrival.phase].Pick(cls));
    arrival.client = client;
  } else {
    arrival.cls = static_cast<uint16_t>(first->hog->cls);
    arrival.client =
        first->first_client + static_cast<uint32_t>(cls * first->hog->count);
  }
  first->next = first->instants.Next();
  return arrival;
}

}  // namespace weir::scenario
