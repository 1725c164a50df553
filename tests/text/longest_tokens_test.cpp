#include "text/longest_tokens.h"

#include <gtest/gtest.h>

#include "base/files/text_file.h"
#include "support/scratch_folder.h"
#include "text/tokenizer.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

LongestTokens some_tokens() {
  LongestTokens tokens;
  int32_t id = 0;
  for (const char* bytes : {"b", "abc", "a", "ab", "c", "bcd", "\xff"}) tokens.add(bytes, id++);
  tokens.sort();
  return tokens;
}

TEST(LongestTokens, TakesTheLongestEachTime) {
  const LongestTokens tokens = some_tokens();
  Ids ids;
  tokens.append("abcdaab\xff", &ids);  // d is no token
  EXPECT_EQ(ids, (Ids{1, 2, 3, 6}));
  EXPECT_FALSE(tokens.has_all_bytes());
}

TEST(LongestTokens, FindsTheFirstThatStandsInAText) {
  const LongestTokens tokens = some_tokens();
  size_t size = 0;
  int32_t id = 0;
  EXPECT_EQ(tokens.find("xxbcdab", &size, &id), 2u);
  EXPECT_EQ(size, 3u);
  EXPECT_EQ(id, 5);
  EXPECT_EQ(tokens.find("xyz", &size, &id), std::string_view::npos);
}

// A folder with RWKV's World vocabulary: the bytes, and three words.
TEST(LongestTokens, EncodesForAFolderOfRwkv) {
  const test::ScratchFolder folder;
  std::string lines;
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof(text), "\\x%02x", byte);
    lines += std::to_string(byte + 1) + " b'" + text + "' 1\n";
  }
  lines += "257 ' th' 3\n258 ' the' 4\n259 'e end' 5\n";
  folder.write("rwkv_vocab_v20230424.txt", lines);
  const auto tokenizer = load_hf_tokenizer(folder.path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const std::string text = " the end\xc3\xa9";
  const Ids ids = tokenizer.value()->encode(text, true).value();
  EXPECT_EQ(ids, (Ids{258, 33, 102, 111, 101, 0xc3 + 1, 0xa9 + 1}));
  EXPECT_EQ(tokenizer.value()->decode(ids, true).value(), text);
  const Ids marked = tokenizer.value()->encode("a<|rwkv_tokenizer_end_of_text|>b", false).value();
  EXPECT_EQ(marked, (Ids{98, 0, 99}));
  EXPECT_EQ(tokenizer.value()->decode(marked, true).value(), "ab");
}

}  // namespace
}  // namespace foretoken
