#include "bench/draft_counters.h"

#include <gtest/gtest.h>

#include <string>

namespace foretoken::bench {
namespace {

std::string metrics(int drafts, int drafted, int accepted, int first, int second) {
  const auto line = [](const std::string& name, const std::string& labels, int value) {
    return "vllm:spec_decode_num_" + name + "{model_name=\"a } b\",engine=\"0\"" + labels + "} " +
           std::to_string(value) + ".0\n";
  };
  return "# HELP vllm:spec_decode_num_drafts_total Drafts.\n"
         "# TYPE vllm:spec_decode_num_drafts_total counter\n" +
         line("drafts_total", "", drafts) + line("drafts_created", "", 1'700'000'000) +
         line("draft_tokens_total", "", drafted) + line("accepted_tokens_total", "", accepted) +
         line("accepted_tokens_per_pos_total", ",position=\"0\"", first) +
         line("accepted_tokens_per_pos_total", ",position=\"1\"", second) +
         "vllm:generation_tokens_total{} 55\n";
}

TEST(DraftCounters, ReadFromTheText) {
  const auto counters = read_draft_counters(metrics(10, 20, 12, 8, 4));
  ASSERT_TRUE(counters.has_value());
  EXPECT_EQ(counters->num_drafts, 10);
  EXPECT_EQ(counters->num_draft_tokens, 20);
  EXPECT_EQ(counters->num_accepted_tokens, 12);
  EXPECT_EQ(counters->accepted_per_pos, (std::map<int, int64_t>{{0, 8}, {1, 4}}));
}

TEST(DraftCounters, EnginesAreAdded) {
  const auto counters = read_draft_counters(metrics(10, 20, 12, 8, 4) + metrics(1, 2, 1, 1, 0));
  EXPECT_EQ(counters->num_drafts, 11);
  EXPECT_EQ(counters->accepted_per_pos.at(0), 9);
}

TEST(DraftCounters, LargeAndBareNumbers) {
  const auto counters = read_draft_counters("vllm:spec_decode_num_drafts_total 1.5e+07");
  EXPECT_EQ(counters->num_drafts, 15'000'000);
}

TEST(DraftCounters, OtherTextHasNone) {
  for (const char* text : {"", "\n\n", "vllm:prompt_tokens_total 5\n", "not metrics at all",
                           "vllm:spec_decode_num_drafts_created 5", "vllm:spec_decode_num_",
                           "vllm:spec_decode_num_drafts_total{unclosed 5"}) {
    EXPECT_FALSE(read_draft_counters(text).has_value()) << text;
  }
}

TEST(DraftCounters, SummaryOfTheDifference) {
  const auto before = read_draft_counters(metrics(10, 20, 12, 8, 4));
  const auto after = read_draft_counters(metrics(30, 60, 37, 25, 12));
  const auto summary = summarise_drafts(before, after);
  ASSERT_TRUE(summary.has_value());
  EXPECT_EQ(summary->num_drafts, 20);
  EXPECT_EQ(summary->draft_tokens, 40);
  EXPECT_EQ(summary->accepted_tokens, 25);
  EXPECT_DOUBLE_EQ(summary->acceptance_rate, 62.5);
  EXPECT_DOUBLE_EQ(summary->acceptance_length, 2.25);
  EXPECT_EQ(summary->acceptance_by_pos, (std::vector<double>{0.85, 0.4}));
}

TEST(DraftCounters, NoSummaryWithoutDrafts) {
  const auto counters = read_draft_counters(metrics(10, 20, 12, 8, 4));
  EXPECT_FALSE(summarise_drafts(counters, counters).has_value());
  EXPECT_FALSE(summarise_drafts({}, counters).has_value());
  EXPECT_FALSE(summarise_drafts(counters, {}).has_value());
}

}  // namespace
}  // namespace foretoken::bench
