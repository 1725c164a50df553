#include "engine/request/output_collector.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(OutputCollector, SumsUpEachChoice) {
  Request request;
  request.sampling.n = 2;
  OutputCollector collector(request);
  RequestOutput piece;
  piece.request_id = "r";
  piece.index = 1;
  piece.text = "a";
  piece.token_ids = {1, 2};
  piece.logprobs.resize(2);
  piece.num_accepted_tokens = 1;
  collector.add(piece);
  piece.finished = true;
  piece.finish_reason = FinishReason::kLength;
  piece.stats.num_output_tokens = 4;
  collector.add(piece);
  piece.index = 0;
  piece.embedding = {1.0f};
  collector.add(piece);
  const auto sums = collector.take();
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[1].text, "aa");
  EXPECT_EQ(sums[1].token_ids, (std::vector<int32_t>{1, 2, 1, 2}));
  EXPECT_EQ(sums[1].logprobs.size(), 4u);
  EXPECT_EQ(sums[1].finish_reason, FinishReason::kLength);
  EXPECT_EQ(sums[1].stats.num_output_tokens, 4);
  EXPECT_EQ(sums[1].num_accepted_tokens, 0);
  EXPECT_EQ(sums[0].index, 0);
  EXPECT_EQ(sums[0].embedding.size(), 1u);
}

TEST(OutputCollector, GivesEveryChoiceTheError) {
  Request request;
  request.request_id = "r";
  request.sampling.n = 3;
  OutputCollector collector(request);
  collector.fail(invalid_argument("no"));
  const auto sums = collector.take();
  ASSERT_EQ(sums.size(), 3u);
  for (const RequestOutput& sum : sums) {
    EXPECT_EQ(sum.request_id, "r");
    EXPECT_TRUE(sum.finished);
    EXPECT_EQ(sum.status.message(), "no");
    EXPECT_EQ(sum.request_finished, sum.index == 2);
  }
  request.sampling.n = -5;
  EXPECT_EQ(OutputCollector(request).take().size(), 1u);
}

}  // namespace
}  // namespace foretoken
