#include "draft/parts/absent_drafter.h"

#include <gtest/gtest.h>

#include "draft/draft_context.h"

namespace foretoken::test {
namespace {

// A rank that never drafts plans with what a rank that does says.
TEST(AbsentDrafter, HasTheTraitsAndNothingElse) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  for (const DrafterCase& drafter : drafter_cases()) {
    const DraftContext target(dialled_target(drafter.dtype, drafter.architecture));
    const SpeculativeConfig config = drafter.config(6);
    DrafterContext context = target.context(config);
    const auto present = make_drafter(context);
    context.is_absent = true;
    const auto absent = make_drafter(context);
    ASSERT_TRUE(present.ok() && absent.ok()) << drafter.name;
    EXPECT_STREQ(absent.value()->name(), present.value()->name());
    const DrafterTraits& a = absent.value()->traits();
    const DrafterTraits& b = present.value()->traits();
    EXPECT_EQ(a.has_kv, b.has_kv);
    EXPECT_EQ(a.keeps_written, b.keeps_written);
    EXPECT_EQ(a.one_pass, b.one_pass);
    EXPECT_EQ(a.max_draft_tokens, b.max_draft_tokens);
    EXPECT_EQ(a.max_len, b.max_len);
    EXPECT_GT(present.value()->memory_bytes(), 0);
    EXPECT_EQ(absent.value()->memory_bytes(), 0);
    EXPECT_EQ(absent.value()->bytes_per_block(16), 0);
    EXPECT_TRUE(absent.value()->take_memory(8, 16).ok());
    EXPECT_EQ(absent.value()->kv_cache(), nullptr);
  }
}

}  // namespace
}  // namespace foretoken::test
