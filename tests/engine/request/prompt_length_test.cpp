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

// A token a character, of two bytes each: what was read is noted.
class PromptEncoding : public testing::Test {
 protected:
  Status encode(size_t num_tokens, int max_model_len) {
    std::string text;
    for (size_t i = 0; i < num_tokens; ++i) text += "\u00e4";
    const auto by_characters = [&](const std::string& part, std::vector<int32_t>* ids) {
      read_.push_back(part.size());
      ids->assign(part.size() / bytes_per_token_, 7);
      return Status();
    };
    return encode_prompt(text, max_model_len, by_characters, &ids_);
  }

  size_t bytes_per_token_ = 2;
  std::vector<size_t> read_;
  std::vector<int32_t> ids_;
};

TEST_F(PromptEncoding, ReadsTextsThatMayFitAsAWhole) {
  EXPECT_TRUE(encode(80, 10).ok());
  EXPECT_EQ(read_, (std::vector<size_t>{160}));
  EXPECT_EQ(ids_.size(), 80u);
}

TEST_F(PromptEncoding, RefusesByABeginningWhatCannotFit) {
  const Status status = encode(10'000, 10);
  EXPECT_TRUE(is_prompt_too_long(status));
  EXPECT_NE(status.message().find("prompt is too long: 80 tokens > 10"), std::string::npos);
  EXPECT_NE(status.message().find("first 160 of its 20000 bytes"), std::string::npos);
  EXPECT_EQ(read_, (std::vector<size_t>{160}));
  EXPECT_TRUE(ids_.empty());
}

TEST_F(PromptEncoding, LongTokensAreCountedInTheWhole) {
  bytes_per_token_ = 20;
  EXPECT_TRUE(encode(100, 10).ok());
  EXPECT_EQ(read_, (std::vector<size_t>{160, 200}));
  EXPECT_EQ(ids_.size(), 10u);
}

}  // namespace
}  // namespace foretoken
