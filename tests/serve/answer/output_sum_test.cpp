#include "serve/answer/output_sum.h"

#include <gtest/gtest.h>

#include "base/result.h"

namespace foretoken {
namespace {

RequestOutput output_piece(int index, const std::string& text, bool finished) {
  RequestOutput output;
  output.index = index;
  output.text = text;
  output.token_ids = {index, index};
  output.finished = finished;
  output.stats.num_prompt_tokens = 5;
  output.stats.num_output_tokens = 2;
  if (finished) output.finish_reason = FinishReason::kStop;
  return output;
}

TEST(OutputSum, ChoicesAreSummedApart) {
  OutputSum sum(2);
  sum.add(output_piece(0, "a", false));
  sum.add(output_piece(1, "x", true));
  EXPECT_FALSE(sum.finished());
  sum.add(output_piece(0, "b", true));
  EXPECT_TRUE(sum.finished());
  EXPECT_EQ(sum.choices()[0].text, "ab");
  EXPECT_EQ(sum.choices()[0].token_ids.size(), 4u);
  EXPECT_EQ(sum.choices()[1].text, "x");
  EXPECT_EQ(sum.stats().num_prompt_tokens, 5);
  EXPECT_EQ(sum.stats().num_output_tokens, 4);
  EXPECT_TRUE(sum.status().ok());
}

TEST(OutputSum, AnErrorEndsEveryOpenChoice) {
  OutputSum sum(3);
  sum.add(output_piece(2, "done", true));
  RequestOutput broken = output_piece(0, "", true);
  broken.status = invalid_argument("no");
  broken.request_finished = true;
  sum.add(broken);
  EXPECT_TRUE(sum.finished());
  EXPECT_EQ(sum.choices()[0].finish_reason, FinishReason::kError);
  EXPECT_EQ(sum.choices()[1].finish_reason, FinishReason::kError);
  EXPECT_EQ(sum.choices()[2].finish_reason, FinishReason::kStop);
  EXPECT_EQ(sum.status().message(), "no");
}

// Drafts may have been accepted in the step that fails, and they are those that came without
// drafts.
TEST(OutputSum, WhatCameWithAnErrorIsKept) {
  OutputSum sum;
  sum.add(output_piece(0, "a", false));
  RequestOutput broken = output_piece(0, "b", true);
  broken.finish_reason = FinishReason::kError;
  broken.status = internal_error("no");
  broken.request_finished = true;
  sum.add(broken);
  EXPECT_TRUE(sum.finished());
  EXPECT_EQ(sum.choices()[0].text, "ab");
  EXPECT_EQ(sum.choices()[0].token_ids.size(), 4u);
  EXPECT_EQ(sum.choices()[0].finish_reason, FinishReason::kError);
  EXPECT_EQ(sum.status().message(), "no");
}

TEST(OutputSum, OriginsFollowTheTokens) {
  RequestOutput output;
  output.token_ids = {1, 2, 3};
  output.text = "abcd";
  output.num_accepted_tokens = 2;
  output.accepted_text_bytes = 3;
  ChoiceOutput choice;
  choice.add(output);
  output.num_accepted_tokens = 0;
  output.accepted_text_bytes = 0;
  choice.add(output);
  ASSERT_EQ(choice.origins.size(), 2u);
  EXPECT_TRUE(choice.origins[0].drafted);
  EXPECT_EQ(choice.origins[0].num_tokens, 2);
  EXPECT_EQ(choice.origins[0].num_bytes, 3u);
  EXPECT_EQ(choice.origins[1].num_tokens, 4);
  EXPECT_EQ(choice.origins[1].num_bytes, 5u);
  EXPECT_EQ(choice.output.text, "abcdabcd");
  OutputSum sum;
  sum.add(output);
  EXPECT_EQ(sum.origins(0).size(), 1u);
}

}  // namespace
}  // namespace foretoken
