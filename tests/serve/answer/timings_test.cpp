#include "serve/answer/timings.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using std::chrono::milliseconds;

TEST(Timings, CountTheQueueOutAndWhatIsCachedApart) {
  RequestStats stats;
  stats.num_prompt_tokens = 12;
  stats.num_cached_tokens = 4;
  stats.num_output_tokens = 5;
  stats.queue_ns = 10'000'000;
  const OutputTimes::Time start{};
  const OutputTimes times{start + milliseconds(30), start + milliseconds(70)};
  const nlohmann::ordered_json timed = timings_json(stats, times, start);
  EXPECT_EQ(timed["cache_n"], 4);
  EXPECT_EQ(timed["prompt_n"], 8);
  EXPECT_DOUBLE_EQ(timed["prompt_ms"], 20);
  EXPECT_DOUBLE_EQ(timed["prompt_per_token_ms"], 2.5);
  EXPECT_DOUBLE_EQ(timed["prompt_per_second"], 400);
  EXPECT_EQ(timed["predicted_n"], 5);
  EXPECT_DOUBLE_EQ(timed["predicted_ms"], 40);
  EXPECT_DOUBLE_EQ(timed["predicted_per_token_ms"], 8);
  EXPECT_DOUBLE_EQ(timed["predicted_per_second"], 125);
  EXPECT_FALSE(timed.contains("draft_n"));
}

TEST(Timings, TellOfDrafts) {
  RequestStats stats;
  stats.num_draft_tokens = 6;
  stats.num_accepted_tokens = 2;
  const nlohmann::ordered_json timed = timings_json(stats, {}, {});
  EXPECT_EQ(timed["draft_n"], 6);
  EXPECT_EQ(timed["draft_n_accepted"], 2);
  EXPECT_EQ(timed["predicted_per_second"], 0.0);
}

}  // namespace
}  // namespace foretoken
