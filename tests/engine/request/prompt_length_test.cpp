#include <foretoken/prompt_length.h>

#include <gtest/gtest.h>

#include "base/result.h"

namespace foretoken {
namespace {

TEST(PromptLength, TheErrorHasTheWordsThatClientsLookFor) {
  const Status status = prompt_too_long(3004, 2048);
  const std::string& text = status.message();
  EXPECT_EQ(text.find("prompt is too long: 3004 tokens > 2048 maximum"), 0u) << text;
  EXPECT_NE(text.find("This model's maximum context length is 2048 tokens"), std::string::npos);
  EXPECT_TRUE(is_prompt_too_long(status));
  EXPECT_FALSE(is_prompt_too_long(invalid_argument("the prompt is empty")));
  EXPECT_FALSE(is_prompt_too_long({}));
}

}  // namespace
}  // namespace foretoken
