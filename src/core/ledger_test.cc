#include "weir/ledger.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

namespace weir {
namespace {

TEST(LedgerTest, IsTheSumOfItsAccounts) {
  const auto ledger = std::make_unique<Ledger>();
  EXPECT_EQ(ledger->Add(3, 5), 0);
  EXPECT_EQ(ledger->Add(511, 7), 5);
  EXPECT_EQ(ledger->Add(3, -2), 12);
  EXPECT_EQ(ledger->sum(), 10);
  EXPECT_EQ(ledger->Of(3), 3);
  EXPECT_EQ(ledger->Of(511), 7);
}

TEST(LedgerTest, RefusesExactlyWhatWouldPassTheBound) {
  const auto ledger = std::make_unique<Ledger>();
  EXPECT_EQ(ledger->Add(0, 3, 4), 0);
  EXPECT_EQ(ledger->Add(1, 2, 4), std::nullopt);
  EXPECT_EQ(ledger->Of(1), 0);
  EXPECT_EQ(ledger->Add(1, 1, 4), 3);
  EXPECT_EQ(ledger->Add(1, 1, 4), std::nullopt);
  // What is given back is never refused, also when the bound has fallen.
  EXPECT_EQ(ledger->Add(0, -3, 0), 4);
  EXPECT_EQ(ledger->Add(0, Ledger::kMost), std::nullopt);
  EXPECT_EQ(ledger->sum(), 1);
}

TEST(LedgerTest, ClosingTakesOutWhatOneHadAndTwiceIsNoMore) {
  const auto ledger = std::make_unique<Ledger>();
  ledger->Add(0, 3);
  ledger->Add(1, 4);
  EXPECT_EQ(ledger->Close(0), 3);
  EXPECT_EQ(ledger->Close(0), 0);
  EXPECT_EQ(ledger->sum(), 4);
  // Who has the account next begins with nothing.
  EXPECT_EQ(ledger->Add(0, 1), 4);
  EXPECT_EQ(ledger->Of(0), 1);
}

// Their numbers have 28 bits.
TEST(LedgerTest, GoesOnWhenTheNumbersOfChangesBeginAnew) {
  const auto ledger = std::make_unique<Ledger>();
  const uint64_t nearly = (uint64_t{1} << 28) - 3;
  std::memcpy(reinterpret_cast<char*>(ledger.get()) + 64, &nearly, 8);
  ledger->Add(1, 1);
  for (int i = 0; i < 4; ++i) {
    ledger->Add(0, 1);
    ledger->Add(1, 1);
  }
  EXPECT_EQ(ledger->sum(), 9);
  EXPECT_EQ(ledger->Close(0), 4);
  EXPECT_EQ(ledger->Close(1), 5);
  EXPECT_EQ(ledger->sum(), 0);
}

}  // namespace
}  // namespace weir
