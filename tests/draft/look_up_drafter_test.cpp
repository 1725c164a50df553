#include "draft/look_up_drafter.h"

#include <gtest/gtest.h>

#include "draft/draft_context.h"

namespace foretoken::test {
namespace {

SpeculativeConfig seven_with(const std::string& method) {
  SpeculativeConfig config;
  config.method = method;
  config.num_speculative_tokens = 7;
  return config;
}

// By its row.
std::unique_ptr<Drafter> made() {
  static const DraftContext context;
  auto drafter = context.make(seven_with("ngram"));
  EXPECT_TRUE(drafter.ok()) << drafter.status().message();
  return drafter.ok() ? std::move(drafter).value() : nullptr;
}

TEST(LookUpDrafter, NeedsNoMemoryOfItsOwn) {
  const auto drafter = made();
  ASSERT_NE(drafter, nullptr);
  EXPECT_STREQ(drafter->name(), "ngram");
  EXPECT_EQ(drafter->memory_bytes(), 0);
  EXPECT_EQ(drafter->bytes_per_block(16), 0);
  EXPECT_TRUE(drafter->take_memory(100, 16).ok());
  EXPECT_EQ(drafter->kv_cache(), nullptr);
}

TEST(LookUpDrafter, OnePassWithoutEntries) {
  const auto drafter = made();
  ASSERT_NE(drafter, nullptr);
  const DrafterTraits& traits = drafter->traits();
  EXPECT_TRUE(traits.one_pass && traits.looks_up);
  EXPECT_FALSE(traits.has_kv);
  EXPECT_EQ(traits.max_draft_tokens, 7);
  EXPECT_EQ(traits.max_len, 256);
}

TEST(LookUpDrafter, AtRestItEnqueuesNothing) {
  static const DraftContext context;
  const SpeculativeConfig config = seven_with("ngram");
  int num_calls = 0;
  const auto drafter = make_look_up_drafter(context.context(config), "ngram",
                                            [&](Queue&, const DraftStep&, const DraftShape& shape) {
                                              num_calls += shape.num_draft_tokens;
                                            });
  ASSERT_TRUE(drafter.ok()) << drafter.status().message();
  const auto queue = test_device()->make_queue();
  drafter.value()->propose(*queue.value(), {}, {});
  EXPECT_EQ(num_calls, 0);
  drafter.value()->propose(*queue.value(), {}, {.num_draft_tokens = 3});
  EXPECT_EQ(num_calls, 3);
}

}  // namespace
}  // namespace foretoken::test
