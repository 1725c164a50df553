#include "bench/samples/token_coder.h"

#include <gtest/gtest.h>

#include "bench/bundled_coder.h"

namespace foretoken::bench {
namespace {

TEST(TokenCoder, GoesThereAndBack) {
  const BundledCoder bundled;
  const std::vector<int32_t> ids = bundled.coder.encode("Once upon a time", false).value();
  EXPECT_EQ(bundled.coder.decode(ids).value(), "Once upon a time");
  EXPECT_GE(bundled.coder.count("Once upon a time").value(), static_cast<int>(ids.size()));
}

TEST(TokenCoder, PlainIdsAreNoSpecialTokens) {
  const BundledCoder bundled;
  const std::vector<int32_t>& ids = bundled.coder.plain_ids;
  EXPECT_GT(ids.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
  for (const int32_t id : ids) EXPECT_FALSE(bundled.tokenizer->is_special(id));
  EXPECT_LT(ids.size(), static_cast<size_t>(bundled.tokenizer->vocab_size()));
}

TEST(TokenCoder, RendersChatsWhereThereIsATemplate) {
  const BundledCoder bundled;
  const char* messages = R"([{"role": "user", "content": "Hi"}])";
  EXPECT_EQ(bundled.coder.render_chat(messages, "").value(), "<user>Hi");
  EXPECT_FALSE(make_token_coder(*bundled.tokenizer, nullptr).render_chat);
}

}  // namespace
}  // namespace foretoken::bench
