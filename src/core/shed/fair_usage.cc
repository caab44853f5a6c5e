#include "weir/shed/fair_usage.h"

#include <algorithm>
#include <bit>

#include "../relaxed.h"
#include "weir/splitmix64.h"

namespace weir {
namespace {

constexpr uint64_t kTimeMask = (uint64_t{1} << 24) - 1;
constexpr int kUnitBits = 30;  // Of time, ns: 1.07 s.
constexpr auto kKnownUnits =
    static_cast<uint64_t>(FairUsage::kKnownFor.count() >> kUnitBits);

// Of requests by those who are known, one in so many is looked at, so that not
// each writes a line that all workers share.
constexpr uint64_t kSample = 8;
// Memory of the mean, in samples.  Chosen: more than clients have at a time who
// are unlike each other, few enough to follow within seconds.
constexpr float kMeanMemory = 64;

uint64_t UnitsAt(Instant now) {
  return static_cast<uint64_t>(now.time_since_epoch().count()) >> kUnitBits &
         kTimeMask;
}

// A fingerprint, where to look, and whether to sample, of bits of their own.
struct HashedName {
  explicit HashedName(uint64_t client)
      : hash(Mix64(client + FairUsage::kRows)) {}
  uint64_t fingerprint() const { return hash >> 32; }
  size_t set(size_t sets) const { return hash % sets; }
  uint64_t hash;
};

uint64_t WordOf(const HashedName& name, uint64_t units, uint8_t times) {
  return name.fingerprint() << 32 | units << 8 | times;
}

uint8_t TimesOf(uint64_t word) { return static_cast<uint8_t>(word); }

uint64_t AgeOf(uint64_t word, uint64_t units) {
  const uint64_t age = (units - (word >> 8)) & kTimeMask;
  // Another worker's clock reading may be a little ahead of ours.
  return age > kTimeMask / 2 ? 0 : age;
}

bool IsFresh(uint64_t word, uint64_t units) {
  return word != 0 && AgeOf(word, units) <= kKnownUnits;
}

}  // namespace

uint8_t FairUsage::Recall(uint64_t client, Instant now) const {
  const HashedName name(client);
  const uint64_t units = UnitsAt(now);
  for (const auto& slot : sets_[name.set(kSets)].words) {
    const uint64_t word = slot.load(kRelaxed);
    if (word >> 32 == name.fingerprint() && IsFresh(word, units)) {
      return TimesOf(word);
    }
  }
  return 0;
}

uint8_t FairUsage::Remember(uint64_t client, Instant now) {
  const HashedName name(client);
  const uint64_t units = UnitsAt(now);
  std::atomic<uint64_t>* oldest = nullptr;
  uint64_t oldest_age = 0;
  for (auto& slot : sets_[name.set(kSets)].words) {
    const uint64_t word = slot.load(kRelaxed);
    if (word >> 32 == name.fingerprint() && IsFresh(word, units)) {
      const uint8_t times = TimesOf(word);
      const uint64_t next =
          WordOf(name, units,
                 static_cast<uint8_t>(times < kFamiliar ? times + 1 : times));
      // Nothing is written for most of those who are known.
      if (next != word) slot.store(next, kRelaxed);
      return times;
    }
    // Strangers go before those who are known, whoever came last.
    const uint64_t age = !IsFresh(word, units) ? kTimeMask
                         : TimesOf(word) < kFamiliar
                             ? kKnownUnits + 1 + AgeOf(word, units)
                             : AgeOf(word, units);
    if (oldest == nullptr || age > oldest_age) {
      oldest = &slot;
      oldest_age = age;
    }
  }
  oldest->store(WordOf(name, units, 1), kRelaxed);
  return 0;
}

void FairUsage::Add(uint64_t client, Instant now) {
  const uint8_t before = client == 0 ? 0 : Remember(client, now);
  if (client == 0 || before + 1 < kFamiliar) {
    strangers_.Add(1, now);
    return;
  }
  const double amount =
      before < kFamiliar ? std::max<double>(kFamiliar, TypicalUsage(now)) : 1;
  for (size_t row = 0; row < kRows; ++row) {
    cells_[row][Mix64(client + row) % kCells].Add(amount, now);
  }
  NoteKnown(client, now);
}

void FairUsage::NoteKnown(uint64_t client, Instant now) {
  const auto at = static_cast<uint64_t>(now.time_since_epoch().count());
  if (Mix64(client ^ at) % kSample != 0) return;
  known_.Add(kSample, now);
  const auto inverse =
      static_cast<float>(1 / std::max(1., Sketched(client, now)));
  const auto move = [](std::atomic<float>& mean, float to) {
    const float from = mean.load(kRelaxed);
    mean.store(from + (to - from) / kMeanMemory, kRelaxed);
  };
  move(inverse_usage_, inverse);
  move(inverse_square_, inverse * inverse);
}

bool FairUsage::IsKnown(uint64_t client, Instant now) const {
  return client != 0 && Recall(client, now) >= kFamiliar;
}

double FairUsage::TypicalUsage(Instant now) const {
  if (known_.Get(now) < 1) return 0;
  return inverse_usage_.load(kRelaxed) / inverse_square_.load(kRelaxed);
}

double FairUsage::StrangersUsage(Instant now) const {
  const double typical = TypicalUsage(now);
  if (typical == 0) return 0;
  const double clients = known_.Get(now) * inverse_usage_.load(kRelaxed);
  return std::max(
      typical, strangers_.Get(now) / std::max(1., clients / kKnownPerStranger));
}

double FairUsage::Sketched(uint64_t client, Instant now) const {
  double least = cells_[0][Mix64(client) % kCells].Get(now);
  for (size_t row = 1; row < kRows; ++row) {
    least = std::min(least, cells_[row][Mix64(client + row) % kCells].Get(now));
  }
  return least;
}

double FairUsage::Usage(uint64_t client, Instant now) const {
  return IsKnown(client, now) ? Sketched(client, now) : StrangersUsage(now);
}

uint8_t FairUsage::Level(uint64_t client, Instant now) const {
  const auto usage = static_cast<uint64_t>(1 + Usage(client, now));
  return static_cast<uint8_t>(
      std::min<int>(std::bit_width(usage) - 1, kMaxLevel));
}

}  // namespace weir
