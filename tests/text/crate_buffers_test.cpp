#include "text/crate_buffers.h"

#include <gtest/gtest.h>

#include <string>

namespace foretoken {
namespace {

TEST(CrateBuffers, EmptyBuffersReadAsEmpty) {
  CrateText text;
  CrateIds ids;
  EXPECT_EQ(text.view(), "");
  EXPECT_TRUE(ids.vector().empty());
}

TEST(CrateBuffers, TakesTheErrorTextOfACall) {
  FtTokenizer* tokenizer = nullptr;
  CrateText error;
  const std::string file_text = "{";
  EXPECT_EQ(ft_tokenizer_new(file_text.data(), file_text.size(), &tokenizer, error.out()),
            FT_TEXT_FAILED);
  EXPECT_EQ(tokenizer, nullptr);
  EXPECT_FALSE(error.str().empty());
}

TEST(CrateBuffers, ErrorTextIsOptional) {
  FtTokenizer* tokenizer = nullptr;
  EXPECT_EQ(ft_tokenizer_new(nullptr, 0, &tokenizer, nullptr), FT_TEXT_FAILED);
}

}  // namespace
}  // namespace foretoken
