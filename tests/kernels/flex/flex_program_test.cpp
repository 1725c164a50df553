#include "kernels/flex/flex_program.h"

#include <gtest/gtest.h>

#include <random>

#include "kernels/flex/flex_parser.h"
#include "kernels/flex/flex_source.h"
#include "kernels/flex/flex_value.h"

namespace foretoken {
namespace {

// The value of a score for one place.
float score_of(const std::string& text, int q, int kv, int h, float score) {
  const auto program = parse_flex("", text);
  EXPECT_TRUE(program.ok()) << text << ": " << program.status().message();
  if (!program.ok()) return 0;
  FlexRoom room;
  const float scores[kFlexLanes] = {score};
  return evaluate(program.value().score, {q, kv, h}, scores, room).numbers[0];
}

TEST(FlexProgram, ComputesAsPythonDoes) {
  EXPECT_EQ(score_of("score", 5, 3, 0, 1.5f), 1.5f);
  EXPECT_EQ(score_of("1 + 2 * 3 - 4 / 8", 0, 0, 0, 0), 6.5f);
  EXPECT_EQ(score_of("-7 // 2", 0, 0, 0, 0), -4);
  EXPECT_EQ(score_of("-7 % 3", 0, 0, 0, 0), 2);
  EXPECT_EQ(score_of("7 % -3", 0, 0, 0, 0), -2);
  EXPECT_EQ(score_of("-7.5 // 2", 0, 0, 0, 0), -4);
  EXPECT_EQ(score_of("-7.5 % 2", 0, 0, 0, 0), 0.5f);
  EXPECT_EQ(score_of("q // 0 + kv % 0", 9, 9, 0, 0), 0);
  EXPECT_EQ(score_of("2147483647 + 1", 0, 0, 0, 0), -2147483648.0f);
  EXPECT_EQ(score_of("1 if q > kv else 2 if q == kv else 3", 1, 1, 0, 0), 2);
  EXPECT_EQ(score_of("where(h == 2 and not q < kv, q, kv)", 8, 5, 2, 0), 8);
  EXPECT_EQ(score_of("abs(-q) + min(q, kv) + max(q, kv)", 8, 5, 2, 0), 21);
  EXPECT_EQ(score_of("1e-2 + .5", 0, 0, 0, 0), 0.51f);
}

TEST(FlexProgram, EachFaultIsOneSentence) {
  std::string negated(150, '-');
  negated += 'q';
  const std::string deep(200, '('),
      chain = "kv <= q" + std::string(900, ' ') + std::string(200, 'x');
  std::string many = "kv <= q";
  for (int i = 0; i < 40; ++i) many += " and q < 1";
  const struct {
    std::string mask;
    const char* said;
  } cases[] = {{"q", "a mask is true or false"},
               {"kv <= q and", "ends where a value should stand"},
               {"kv < 32 or kv <= q", "would see position"},
               {"q - kv < 128", "begin with 'kv <= q and'"},
               {"b == 0", "'b' is unknown; use q, kv, h, prompt"},
               {"kv < 32 or prompt", "or with '(kv <= q or prompt) and'"},
               {"not prompt", "would see position"},
               {"kv <= q and doc(q) == 1", "'doc' is no function here"},
               {"score > 0", "'score' is unknown"},
               {deep, "nested too deeply"},
               {negated, "nested too deeply"},
               {many, "more than 64 steps"},
               {chain, "at most 1000"},
               {"kv <= 1e999", "not a number of 32 bits"},
               {"kv <= 99999999999", "not a number of 32 bits"},
               {"kv <= q; system(1)", "should end here"},
               {"\"; }", "cannot stand here"},
               {"min(q) < 1", "takes 2 values"},
               {"(kv <= q) + 1 < 2", "numbers are wanted"},
               {"kv <= q and 5", "take comparisons"},
               {"1 if q else 2", "a condition is true or false"},
               {std::string("kv\0<= q", 7), "should end here"},
               {"kv <= q \xff", "should end here"}};
  for (const auto& c : cases) {
    const auto program = parse_flex(c.mask, "");
    ASSERT_FALSE(program.ok()) << c.mask;
    EXPECT_EQ(program.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(program.status().message().find(c.said), std::string::npos)
        << program.status().message();
    EXPECT_EQ(program.status().message().find("--flex-mask: "), 0u);
  }
  EXPECT_EQ(parse_flex("", "kv < q").status().message().find("--flex-score: "), 0u);
}

TEST(FlexProgram, MasksKnowPrompts) {
  const auto program = parse_flex("(kv <= q or prompt) and abs(q - kv) < 9", "");
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_TRUE(program.value().sees_prompts);
  EXPECT_NE(program.value().sources[0].find("SEES_PROMPTS 1"), std::string::npos);
  FlexRoom room;
  const FlexValues& seen = evaluate(program.value().mask, {3, 0, 0, 6}, nullptr, room);
  for (int kv = 0; kv < 8; ++kv) EXPECT_EQ(seen.integers[kv], kv < 6 ? 1 : 0) << kv;
  EXPECT_FALSE(parse_flex("kv <= q", "").value().sees_prompts);
  EXPECT_FALSE(parse_flex("", "score if prompt else 0").ok());
}

TEST(FlexProgram, AsksRequestsWhatTheySee) {
  const auto program = parse_flex("kv <= q and (request or kv < 4)", "request + 1");
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_TRUE(program.value().asks_masks);
  EXPECT_TRUE(program.value().asks_scores);
  const std::vector<uint32_t> words = pack_flex("q - kv < 3", "score * 2").value();
  const FlexOfRequest own = flex_of_words(words.data());
  FlexRoom room;
  FlexPlace place{10, 0, 0, 0, 1, own};
  const float scores[kFlexLanes] = {3};
  const FlexValues& seen = evaluate(program.value().mask, place, scores, room);
  for (int kv = 0; kv < 16; ++kv) {
    EXPECT_EQ(seen.integers[kv], kv <= 10 && (kv < 4 || kv > 7) ? 1 : 0) << kv;
  }
  EXPECT_EQ(evaluate(program.value().score, place, scores, room).numbers[0], 7);
  place.of_request = {};
  EXPECT_EQ(evaluate(program.value().mask, place, scores, room).integers[6], 1)
      << "it says nothing";
  EXPECT_EQ(evaluate(program.value().score, place, scores, room).numbers[0], 4);
  EXPECT_FALSE(parse_flex("kv <= q", "score").value().asks_masks);
}

TEST(FlexProgram, WhatRequestsSayIsBounded) {
  EXPECT_TRUE(pack_flex("", " ").value().empty());
  const struct {
    const char* mask;
    const char* score;
    const char* said;
  } cases[] = {
      {"request", "", "flex_mask: character 1: 'request' is unknown; use q, kv, h and"},
      {"prompt", "", "flex_mask: character 1: 'prompt' is unknown"},
      {"", "request", "flex_score: character 1: 'request' is unknown; use q, kv, h, score"},
      {"q", "", "a mask is true or false"},
      {"", "score +", "ends where a value should stand"}};
  for (const auto& c : cases) {
    const auto packed = pack_flex(c.mask, c.score);
    ASSERT_FALSE(packed.ok()) << c.mask << c.score;
    EXPECT_NE(packed.status().message().find(c.said), std::string::npos)
        << packed.status().message();
  }
  EXPECT_FALSE(pack_flex(std::string(200, '('), "").ok());
  // Later positions are not computed, whatever requests say of them.
  for (const char* mask : {"request", "request or kv <= q", "not request"}) {
    EXPECT_NE(parse_flex(mask, "").status().message().find("would see position"), std::string::npos)
        << mask;
  }
}

// Whatever the bytes are, there is a program or a sentence.
TEST(FlexProgram, RandomTextsDoNoHarm) {
  const char* words[] = {"q",   "kv", "h",     "(",    ")",    "<=", "and",  "or",
                         "not", "1",  "2.5",   "if",   "else", "-",  "//",   "%",
                         "min", ",",  "where", "tanh", "&",    "|",  "\x80", ""};
  std::mt19937 random(7);
  int parsed = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string text = i % 2 == 0 ? "kv <= q and " : "";
    for (unsigned n = random() % 12; n > 0; --n) {
      text += words[random() % std::size(words)] + std::string(" ");
    }
    parsed += parse_flex(text, text).ok() || parse_flex("", text).ok() ? 1 : 0;
  }
  EXPECT_GT(parsed, 100);
}

TEST(FlexProgram, SourcesHoldTheExpressions) {
  const auto program = parse_flex("kv <= q and q - kv < 77", "score * 0.5 + h").value();
  ASSERT_EQ(program.sources.size(), 6u);
  for (const std::string& source : program.sources) {
    EXPECT_NE(source.find("77"), std::string::npos);
    EXPECT_NE(source.find("0x1p-1f"), std::string::npos);
    EXPECT_NE(source.find(kFlexKernel), std::string::npos);
  }
  EXPECT_NE(program.sources[0], program.sources[1]);
  EXPECT_EQ(flex_source(program, FlexElements::kBF16), program.sources[1]);
  EXPECT_EQ(flex_source(program, FlexElements::kBF16Integers), program.sources[5]);
  const auto among = parse_flex("kv <= q and q - kv < 77", "score * 0.5 + h", true).value();
  EXPECT_NE(among.sources[1], program.sources[1]) << "it knows the positions of pages";
}

}  // namespace
}  // namespace foretoken
