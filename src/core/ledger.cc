#include "weir/ledger.h"

#include <algorithm>
#include <cassert>

#include "relaxed.h"

namespace weir {

bool Ledger::Witness(uint64_t word) {
  Shared<uint64_t>& seen =
      accounts_[std::min(AccountOf(word), kAccounts - 1)].seen;
  uint64_t before = seen.load(std::memory_order_acquire);
  while (before != NumberOf(word)) {
    // While the word is the same, what was read of `seen` is no later than it.
    if (word_.load(std::memory_order_acquire) != word) return false;
    if (seen.compare_exchange_strong(before, NumberOf(word))) break;
  }
  return true;
}

std::optional<int64_t> Ledger::Add(size_t account, int64_t delta,
                                   int64_t most) {
  Account& own = accounts_[account];
  const uint64_t settled = own.settled.load(kRelaxed);
  const uint64_t number = NumberOf(settled) + 1;
  const int64_t amount = AmountOf(settled) + delta;
  assert(amount >= 0);
  uint64_t word = word_.load(std::memory_order_acquire);
  bool open = false;
  while (true) {
    const int64_t sum = SumOf(word);
    if (delta > 0 && sum + delta > std::min(most, kMost)) return std::nullopt;
    if (!open) {
      own.open.store(State(amount, number), std::memory_order_release);
      open = true;
    }
    // Its own last change is settled, so nobody need know of it.
    if (AccountOf(word) != account && !Witness(word)) {
      word = word_.load(std::memory_order_acquire);
      continue;
    }
    if (word_.compare_exchange_weak(word, Word(sum + delta, account, number))) {
      own.settled.store(State(amount, number), std::memory_order_release);
      return sum;
    }
  }
}

int64_t Ledger::Close(size_t account) {
  Account& own = accounts_[account];
  const uint64_t settled = own.settled.load(std::memory_order_acquire);
  const uint64_t open = own.open.load(std::memory_order_acquire);
  if (NumberOf(open) == ((NumberOf(settled) + 1) & kNumbers)) {
    // First the word: a change that left it before was seen by then.
    const uint64_t word = word_.load(std::memory_order_acquire);
    const bool done =
        (AccountOf(word) == account && NumberOf(word) == NumberOf(open)) ||
        own.seen.load(std::memory_order_acquire) == NumberOf(open);
    if (done) own.settled.store(open, std::memory_order_release);
  }
  const int64_t amount = Of(account);
  if (amount != 0) Add(account, -amount);
  return amount;
}

}  // namespace weir
