#include "weir/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace weir {
namespace {

using Pointer = Result<std::shared_ptr<int>>;

TEST(ResultDeathTest, WhoTakesTheValueOfAnErrorEndsWithItsMessage) {
  const Pointer failed = Error{"shop.toml: cannot be read"};
  EXPECT_DEATH(static_cast<void>(*failed), "weir: shop.toml: cannot be read");
  EXPECT_DEATH(static_cast<void>(failed->get()), "cannot be read");
  EXPECT_DEATH(static_cast<void>(Pointer(Error{"no file"}).value()),
               "weir: no file");
}

TEST(ResultTest, AValueComesOutAsItWentIn) {
  Result<std::string> result = std::string("text");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*result, "text");
  result->push_back('s');
  EXPECT_EQ(*std::move(result), "texts");
}

}  // namespace
}  // namespace weir
