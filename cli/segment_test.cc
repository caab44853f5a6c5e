#include "segment.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::cli {
namespace {

// A state is longer than what a string keeps inside itself, or shorter; both
// must outlive the line.
TEST(SegmentTest, EachRowTellsItsStateWhole) {
  EXPECT_EQ(
      SegmentTable({{.service = "shop",
                     .owner = 33,
                     .size = 4096,
                     .workers = 2,
                     .problem = ""},
                    {.service = "left-behind",
                     .owner = 0,
                     .size = 1 << 20,
                     .workers = 0,
                     .problem = ""},
                    {.service = "planted",
                     .owner = 65534,
                     .size = 1,
                     .workers = 0,
                     .problem = "torn: pages of the region are missing"}}),
      "service                           workers      uid     bytes  state\n"
      "shop                                    2       33      4096  used\n"
      "left-behind                             0        0   1048576  no "
      "workers\n"
      "planted                                 0    65534         1  torn: "
      "pages of the region are missing\n");
}

}  // namespace
}  // namespace weir::cli
