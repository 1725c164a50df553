#include "gguf/vocabulary/end_tokens.h"

#include <gtest/gtest.h>

#include <string>

namespace foretoken {
namespace {

std::vector<int64_t> ends_of(const std::vector<std::string>& tokens) {
  return gguf_end_tokens({tokens, std::vector<int64_t>(tokens.size(), 3)});
}

using Ids = std::vector<int64_t>;

TEST(EndTokens, OfFamiliesWhoseFilesNameAnother) {
  EXPECT_EQ(ends_of({"a", "<|endoftext|>", "<|end|>", "<|user|>"}), (Ids{1, 2}));  // Phi
  EXPECT_EQ(ends_of({"<|end|>", "<|endoftext|>"}), (Ids{0, 1}));
  EXPECT_EQ(ends_of({"<|endoftext|>", "<|im_start|>", "<|im_end|>"}), (Ids{0, 2}));
  EXPECT_EQ(ends_of({"<eos>", "<start_of_turn>", "<end_of_turn>"}), (Ids{2}));
  EXPECT_EQ(ends_of({"<|eot_id|>", "<|eom_id|>", "<|begin_of_text|>"}), (Ids{0, 1}));
}

// Messages of gpt-oss and of Solar end within a turn.
TEST(EndTokens, EndsOfMessagesAreNone) {
  EXPECT_EQ(ends_of({"<|end|>", "<|return|>", "<|call|>", "<|message|>"}), (Ids{1, 2}));
  EXPECT_EQ(ends_of({"<|calls|>", "<|end|>", "<|flush|>"}), (Ids{0, 2}));
}

TEST(EndTokens, OtherTokensAreNone) {
  EXPECT_EQ(ends_of({"</s>", "<s>", "end", "<|im_start|>", "", "<|END|>"}), Ids{});
}

}  // namespace
}  // namespace foretoken
