#include "serve/openai/openai_logprobs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

const std::vector<TokenLogprobs> kTwo = {
    {{7, -0.5f, 1, "h\xC3\xA9"}, {{7, -0.5f, 1, "h\xC3\xA9"}, {8, -1.5f, 2, "x"}}},
    {{9, -INFINITY, 30, "b"}, {{8, -0.25f, 1, "x"}}}};

TEST(OpenAiLogprobs, OfChats) {
  const json all = chat_logprobs(kTwo);
  ASSERT_EQ(all["content"].size(), 2u);
  EXPECT_EQ(all["content"][0]["token"], "h\xC3\xA9");
  EXPECT_EQ(all["content"][0]["bytes"], (json{104, 195, 169}));
  EXPECT_EQ(all["content"][0]["logprob"], -0.5);
  EXPECT_EQ(all["content"][0]["top_logprobs"].size(), 2u);
  EXPECT_EQ(all["content"][1]["logprob"], -9999.0);
}

TEST(OpenAiLogprobs, OfCompletionsWithOffsetsInCharacters) {
  const std::string echoed = "start";
  int64_t offset = 0;
  const json all = completion_logprobs(kTwo, &echoed, offset);
  EXPECT_EQ(all["text_offset"], (json{0, 5, 7}));
  EXPECT_EQ(all["tokens"], (json{"start", "h\xC3\xA9", "b"}));
  EXPECT_TRUE(all["token_logprobs"][0].is_null());
  EXPECT_EQ(all["top_logprobs"][1].size(), 2u);
  EXPECT_EQ(all["top_logprobs"][2], (json{{"x", -0.25}, {"b", -9999.0}}));
  EXPECT_EQ(offset, 8);
  EXPECT_EQ(json(completion_logprobs(kTwo, nullptr, offset))["text_offset"], (json{8, 10}));
}

TEST(OpenAiLogprobs, PartsOfACharacterKeepTheirBytes) {
  const char* kUnknown = "\xEF\xBF\xBD";
  const std::vector<TokenLogprobs> parts = {
      {{1, -0.5f, 1, kUnknown, " \xF0\x9F"}, {{2, -1.5f, 2, kUnknown, "\xF0\x9F"}}},
      {{3, -0.5f, 1, kUnknown, "\x98\x80"}, {}},
      {{4, -0.5f, 1, "x"}, {}}};
  const json chat = chat_logprobs(parts)["content"];
  EXPECT_EQ(chat[0]["token"], kUnknown);
  EXPECT_EQ(chat[0]["bytes"], (json{32, 240, 159}));
  EXPECT_EQ(chat[0]["top_logprobs"][0]["bytes"], (json{240, 159}));
  EXPECT_EQ(chat[1]["bytes"], (json{152, 128}));
  int64_t offset = 0;
  const json all = completion_logprobs(parts, nullptr, offset);
  EXPECT_EQ(all["tokens"], (json{"bytes: \\xf0\\x9f", "bytes:\\x98\\x80", "x"}));
  EXPECT_EQ(all["text_offset"], (json{0, 2, 2}));  // a blank and one character
  EXPECT_EQ(all["top_logprobs"][0].size(), 2u);
}

TEST(OpenAiLogprobs, OfPrompts) {
  const json all = prompt_logprobs(kTwo);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(all[0].is_null());
  EXPECT_EQ(all[1]["7"]["rank"], 1);
  EXPECT_EQ(all[1]["8"]["decoded_token"], "x");
}

}  // namespace
}  // namespace foretoken
