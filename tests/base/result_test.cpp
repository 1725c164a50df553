#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace foretoken {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return invalid_argument(std::to_string(value) + " is odd; give an even one");
  return value / 2;
}

Result<int> quarter(int value) {
  FT_ASSIGN_OR_RETURN(const int once, half(value));
  FT_ASSIGN_OR_RETURN(const int twice, half(once));
  return twice;
}

Status check_even(int value) {
  FT_RETURN_IF_ERROR(half(value).status());
  return {};
}

TEST(Result, HoldsAValue) {
  const Result<int> result = half(8);
  EXPECT_TRUE(result.ok());
  EXPECT_TRUE(result.status().ok());
  EXPECT_EQ(result.value(), 4);
}

TEST(Result, HoldsAnError) {
  const Result<int> result = half(7);
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(result.status().message(), "7 is odd; give an even one");
}

TEST(Result, MacrosPassErrorsOn) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(6).status().message(), "3 is odd; give an even one");
  EXPECT_TRUE(check_even(2).ok());
  EXPECT_EQ(check_even(3).code(), StatusCode::kInvalidArgument);
}

TEST(Result, MovesOutWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  const std::unique_ptr<int> value = std::move(result).value();
  EXPECT_EQ(*value, 5);
}

TEST(Result, ErrorNamesHaveTheirCodes) {
  EXPECT_EQ(not_found("x").code(), StatusCode::kNotFound);
  EXPECT_EQ(unsupported("x").code(), StatusCode::kUnsupported);
  EXPECT_EQ(resource_exhausted("x").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(aborted("x").code(), StatusCode::kAborted);
  EXPECT_EQ(internal_error("x").code(), StatusCode::kInternal);
}

TEST(ResultDeathTest, ValueOfAnErrorAndOkAsError) {
  EXPECT_DEATH((void)half(7).value(), "7 is odd");
  EXPECT_DEATH((void)Result<int>(Status()), "check failed");
}

}  // namespace
}  // namespace foretoken
