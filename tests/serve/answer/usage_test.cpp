#include "serve/answer/usage.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

RequestStats stats(int64_t prompt, int64_t output, int64_t drafted, int64_t accepted) {
  RequestStats made;
  made.num_prompt_tokens = prompt;
  made.num_output_tokens = output;
  made.num_draft_tokens = drafted;
  made.num_accepted_tokens = accepted;
  made.num_cached_tokens = prompt / 2;
  return made;
}

Request request_of(int n, const std::string& prediction = "") {
  Request request;
  request.sampling.n = n;
  request.prediction = prediction;
  return request;
}

TEST(Usage, PromptsCountOnceAndTheLastStatsOfAChoiceHold) {
  UsageSum sum({request_of(2), request_of(1)});
  sum.note(0, 0, stats(10, 1, 0, 0));
  sum.note(0, 0, stats(10, 5, 8, 3));
  sum.note(0, 1, stats(10, 7, 0, 0));
  sum.note(1, 0, stats(4, 2, 1, 1));
  const UsageCounts counts = sum.counts();
  EXPECT_EQ(counts.prompt, 14);
  EXPECT_EQ(counts.output, 14);
  EXPECT_EQ(counts.cached, 7);
  EXPECT_EQ(counts.accepted, 4);
  EXPECT_EQ(counts.rejected, 5);
}

TEST(Usage, DraftedTokensAreToldWhereThereAreAny) {
  const auto plain = openai_usage(usage_counts({stats(3, 2, 0, 0)}, false));
  EXPECT_EQ(plain["total_tokens"], 5);
  EXPECT_FALSE(plain.contains("completion_tokens_details"));
  const auto drafted = openai_usage(usage_counts({stats(3, 2, 4, 1)}, false));
  EXPECT_EQ(drafted["completion_tokens_details"]["accepted_prediction_tokens"], 1);
  EXPECT_EQ(drafted["completion_tokens_details"]["rejected_prediction_tokens"], 3);
}

TEST(Usage, ReasoningIsToldWhereItIsSplit) {
  UsageCounts counts = usage_counts({stats(3, 5, 0, 0)}, false);
  counts.reasoning = 0;
  EXPECT_EQ(openai_usage(counts)["completion_tokens_details"],
            (nlohmann::ordered_json{{"reasoning_tokens", 0}}));
  UsageCounts other = usage_counts({stats(3, 5, 4, 1)}, false);
  other.reasoning = 2;
  counts += other;
  EXPECT_EQ(openai_usage(counts)["completion_tokens_details"]["reasoning_tokens"], 2);
  EXPECT_EQ(openai_usage(counts)["completion_tokens_details"]["accepted_prediction_tokens"], 1);
}

TEST(Usage, APredictionThatWasDraftedIsCountedByItself) {
  RequestStats predicted = stats(3, 9, 12, 7);
  predicted.num_prediction_draft_tokens = 8;
  predicted.num_accepted_prediction_tokens = 6;
  const UsageCounts counts = usage_counts({predicted, stats(3, 2, 5, 5)}, true);
  EXPECT_EQ(counts.accepted, 6);
  EXPECT_EQ(counts.rejected, 2);
}

TEST(Usage, DraftsOfOthersAreNotThePredictions) {
  UsageSum sum({request_of(1, "never drafted from")});
  sum.note(0, 0, stats(3, 9, 12, 7));
  const auto details = openai_usage(sum.counts())["completion_tokens_details"];
  EXPECT_EQ(details["accepted_prediction_tokens"], 0);
  EXPECT_EQ(details["rejected_prediction_tokens"], 0);
}

}  // namespace
}  // namespace foretoken
