#include "attention/flex_choice.h"

#include <gtest/gtest.h>

#include "attention/families.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

TEST(AttentionChoice, NamesStayAndExpressionsAreSplit) {
  for (const char* text : {"portable", "auto", ""}) {
    EXPECT_EQ(read_attention_choice(text).text(), text);
    EXPECT_FALSE(read_attention_choice(text).has_expressions());
  }
  const AttentionChoice both = read_attention_choice("flex( kv <= q and (q < 9) ; score - q )");
  EXPECT_EQ(both.backend, "flex");
  EXPECT_EQ(both.mask, "kv <= q and (q < 9)");
  EXPECT_EQ(both.score, "score - q");
  EXPECT_EQ(read_attention_choice(both.text()).text(), both.text());
  EXPECT_EQ(read_attention_choice("(; score)").score, "score");
  EXPECT_EQ(read_attention_choice("FLEX_ATTENTION(kv <= q)").mask, "kv <= q");
}

TEST(FlexAttention, IsABackendWithAProgram) {
  const auto made = FlexAttention::create({"flex", "kv <= q", ""}, *test_device(), DType::kF32,
                                          KvFormat::kPlain, {.sizes = {64}});
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_STREQ(made.value()->backend().traits().name, "flex");
  const auto wrong =
      FlexAttention::create({"flex", "kv", ""}, *test_device(), DType::kF32, KvFormat::kPlain, {});
  EXPECT_EQ(wrong.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace foretoken
