// Ledger: a sum over accounts, one for each worker, that is one word to read
// and that survives the death of any worker between any two instructions.
//
//   word       {sum, who changed it last, number of that change}
//   account    settled  {amount, number of the last change that is finished}
//              open     {amount after the change that is under way, its number}
//              seen     the last change of this worker that another one saw
//              done
//
// To change its amount a worker writes down what it is about to do (`open`),
// exchanges the word, and settles.  Who exchanges the word notes first, in the
// account of the one who changed it last, that his change was done.  So if a
// worker dies it can be told whether its open change came to be: it is the one
// in the word, or it was seen; else it did not.  Close() does that, and takes
// the amount out as a change of the dead worker's, so whoever dies in there
// leaves the same task to the next.
//
// The sum is exact at any time, and a change that must not pass a bound is
// refused exactly when it would: of two that race for the last one gets it.
//
// Source: the technique is detectable compare-and-swap, [ATTIYA2018].
//
// Threads and processes: any; an account belongs to one thread at a time.
// Lock-free, valid when zeroed.  Reading is one load; a change is two
// exchanges at worst, whatever the number of accounts.

#ifndef WEIR_LEDGER_H_
#define WEIR_LEDGER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "weir/shared.h"

namespace weir {

class Ledger {
 public:
  static constexpr size_t kAccounts = 512;
  // Of one account and of the sum.
  static constexpr int64_t kMost = (int64_t{1} << 26) - 1;

  int64_t sum() const { return SumOf(word_.load(std::memory_order_acquire)); }
  // Of one account, without a change that is under way.
  int64_t Of(size_t account) const {
    return AmountOf(accounts_[account].settled.load(std::memory_order_acquire));
  }

  // Changes the account by `delta`, unless `delta` is above zero and the sum
  // would pass `most`.  The sum before it, or nothing when it was refused.
  std::optional<int64_t> Add(size_t account, int64_t delta,
                             int64_t most = kMost);

  // Sets an account to nothing whose worker is gone, perhaps in the middle of
  // a change.  For whoever holds the account now.  Returns what it had.
  int64_t Close(size_t account);

 private:
  // word: 26 bits of sum, 10 of account, 28 of number.
  // settled, open: 36 bits of amount, 28 of number.
  static constexpr int kNumberBits = 28;
  static constexpr int kAccountBits = 10;
  static constexpr uint64_t kNumbers = (uint64_t{1} << kNumberBits) - 1;
  static_assert(kAccounts <= size_t{1} << kAccountBits);

  static constexpr uint64_t NumberOf(uint64_t word) { return word & kNumbers; }
  static constexpr int64_t AmountOf(uint64_t state) {
    return static_cast<int64_t>(state >> kNumberBits);
  }
  static constexpr int64_t SumOf(uint64_t word) {
    return static_cast<int64_t>(word >> (kNumberBits + kAccountBits));
  }
  static constexpr size_t AccountOf(uint64_t word) {
    return word >> kNumberBits & ((1U << kAccountBits) - 1);
  }
  static constexpr uint64_t State(int64_t amount, uint64_t number) {
    return static_cast<uint64_t>(amount) << kNumberBits | (number & kNumbers);
  }
  static constexpr uint64_t Word(int64_t sum, size_t account, uint64_t number) {
    return (static_cast<uint64_t>(sum) << kAccountBits | account)
               << kNumberBits |
           (number & kNumbers);
  }
  // Notes that the change in `word` was done.  False: it is not there any more.
  bool Witness(uint64_t word);

  // Written by its worker; `seen` by all.
  struct alignas(64) Account {
    Shared<uint64_t> settled;
    Shared<uint64_t> open;
    Shared<uint64_t> seen;
  };

  alignas(64) Shared<uint64_t> word_;
  std::array<Account, kAccounts> accounts_;
};

}  // namespace weir

#endif  // WEIR_LEDGER_H_
