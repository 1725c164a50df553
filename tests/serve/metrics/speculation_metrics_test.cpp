#include "serve/metrics/speculation_metrics.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(SpeculationMetrics, TheHistogramFollowsFromTheCountsByPosition) {
  // Steps with 3, 3, 1 and 0 accepted of 3 drafts, and one with 2 of 2.
  RequestStats stats;
  stats.num_drafts = 5;
  stats.num_draft_tokens = 14;
  stats.num_accepted_tokens = 9;
  stats.num_draft_tokens_per_pos = {5, 5, 4};
  stats.num_accepted_tokens_per_pos = {4, 3, 2};
  const nlohmann::ordered_json metrics = speculation_metrics(stats, 3);
  EXPECT_EQ(metrics["acceptance_histogram"].dump(), "[1,1,1,2]");
  EXPECT_EQ(metrics["mean_acceptance_length"], 1 + 9.0 / 5);
  EXPECT_EQ(metrics["draft_acceptance_rate"], 9.0 / 14);
  EXPECT_EQ(metrics["num_spec_steps"], 5);
  EXPECT_EQ(metrics["num_draft_tokens"], 14);
  EXPECT_EQ(metrics["num_accepted_draft_tokens"], 9);
  EXPECT_EQ(metrics["num_spec_tokens"], 3);
}

TEST(SpeculationMetrics, NothingDrafted) {
  const nlohmann::ordered_json metrics = speculation_metrics(RequestStats(), 2);
  EXPECT_EQ(metrics["mean_acceptance_length"], 1.0);
  EXPECT_EQ(metrics["draft_acceptance_rate"], 0.0);
  EXPECT_EQ(metrics["acceptance_histogram"].dump(), "[0,0,0]");
}

TEST(SpeculationMetrics, AllPositionsUsed) {
  RequestStats stats;
  stats.num_drafts = 1;
  stats.num_accepted_tokens_per_pos.fill(1);
  const auto histogram = speculation_metrics(stats, kMaxSpeculativeTokens)["acceptance_histogram"];
  ASSERT_EQ(histogram.size(), static_cast<size_t>(kMaxSpeculativeTokens) + 1);
  EXPECT_EQ(histogram.back(), 1);
  EXPECT_EQ(histogram.front(), 0);
}

}  // namespace
}  // namespace foretoken
