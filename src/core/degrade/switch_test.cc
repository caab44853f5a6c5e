#include "weir/degrade/switch.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

using Action = Switch::Action;

TEST(SwitchTest, AWordHoldsItWhole) {
  for (const Instant until : {kNever, Instant{}, Instant(seconds(1)),
                              Instant(std::chrono::hours(24 * 365 * 200))}) {
    for (const Action action : {Action::kPause, Action::kDegrade}) {
      for (uint8_t level = 0; level <= Switch::kMaxLevel; ++level) {
        const Switch set{.action = action, .level = level, .until = until};
        EXPECT_EQ(Switch::Unpack(set.Pack()), set);
      }
    }
  }
  EXPECT_EQ(Switch{}.Pack(), 0u);
  EXPECT_EQ(Switch::Unpack(0).action, Action::kNone);
}

TEST(SwitchTest, NeverEndsBeforeItsTime) {
  const Instant end = Instant(milliseconds(5)) + Duration(1);
  const Switch set =
      Switch::Unpack(Switch{.action = Action::kPause, .until = end}.Pack());
  EXPECT_EQ(set.until, Instant(milliseconds(6)));
  EXPECT_TRUE(set.ActiveAt(end - Duration(1)));
  EXPECT_FALSE(set.ActiveAt(Instant(milliseconds(6))));
}

}  // namespace
}  // namespace weir
