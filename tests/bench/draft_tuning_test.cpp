#include "bench/draft_tuning.h"

#include <gtest/gtest.h>

#include "bench/xml_check.h"

namespace foretoken::bench {
namespace {

TunedLength length(const char* drafter, int num_draft_tokens, int batch_size, double ratio) {
  TunedLength made;
  made.drafter = drafter;
  made.num_draft_tokens = num_draft_tokens;
  made.batch_size = batch_size;
  made.ratio = ratio;
  made.low = ratio - 0.02;
  made.high = ratio + 0.02;
  made.acceptance_by_position = {0.75, 0.5};
  return made;
}

TEST(DraftTuning, TheFasterHalfAndThoseCloseToItGoOn) {
  EXPECT_EQ(faster_half({1.0, 2.0, 1.5, 0.5}, 1), (std::vector<size_t>{1, 2}));
  EXPECT_EQ(faster_half({1.49, 2.0, 1.5, 0.5}, 1), (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(faster_half({1.0, 2.0, 1.5, 0.5}, 3), (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(faster_half({1.0}, 3), std::vector<size_t>{0});
  EXPECT_TRUE(faster_half({}, 3).empty());
}

TEST(DraftTuning, OutputsAreAsLongAsTheTimeAllows) {
  EXPECT_EQ(output_len_that_fits(3, 0.01, 500), 300);
  EXPECT_EQ(output_len_that_fits(9, 0.01, 500), 500);
  EXPECT_EQ(output_len_that_fits(0.1, 0.01, 500), 16);
  EXPECT_EQ(output_len_that_fits(-1, 0.01, 500), 16);
  EXPECT_EQ(output_len_that_fits(-1, 0.01, 8), 8);
}

TEST(DraftTuning, TheBestMeanOverBatchSizesIsChosenWithItsLongestLength) {
  const std::optional<TunedChoice> chosen =
      choose_drafts({length("a", 3, 1, 1.8), length("a", 5, 1, 1.9), length("a", 1, 16, 1.1),
                     length("a", 5, 16, 0.9), length("b", 2, 1, 2.0), length("b", 2, 16, 0.7)});
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->drafter, "a");
  EXPECT_EQ(chosen->num_draft_tokens, 5);
  EXPECT_NEAR(chosen->speed_up, 1.4457, 1e-4);
}

TEST(DraftTuning, NothingIsChosenThatIsNotShownToBeFaster) {
  EXPECT_FALSE(choose_drafts({length("a", 3, 1, 1.01), length("b", 3, 1, 0.9)}));
  EXPECT_FALSE(choose_drafts({}));
}

TEST(DraftTuning, EachBatchSizeHasItsBestLength) {
  const std::vector<TunedLength> lengths = {length("a", 3, 1, 1.8),  length("a", 5, 1, 1.9),
                                            length("a", 3, 4, 1.4),  length("a", 5, 4, 1.2),
                                            length("a", 3, 64, 0.9), length("a", 5, 64, 0.7),
                                            length("b", 2, 1, 1.5),  length("b", 2, 4, 1.5)};
  const std::vector<TunedRange> ranges = {{1, 2, 5}, {3, 16, 3}, {17, 64, 0}};
  EXPECT_EQ(lengths_by_batch(lengths, "a"), ranges);
  const std::vector<TunedRange> one = {{1, 4, 2}};
  EXPECT_EQ(lengths_by_batch(lengths, "b"), one);
  EXPECT_TRUE(lengths_by_batch(lengths, "c").empty());
  EXPECT_NEAR(mean_speed_up({length("a", 3, 1, 1.6), length("a", 3, 4, 0.9)}), 1.2, 1e-9);
  EXPECT_EQ(mean_speed_up({}), 1);
}

TEST(DraftTuning, TheTableAndThePictureHaveEveryLength) {
  const std::vector<TunedLength> lengths = {length("ngram", 3, 1, 1.8), length("a&b", 5, 4, 0.9)};
  const std::string table = tuning_table(lengths);
  EXPECT_NE(table.find("ngram            3      1"), std::string::npos) << table;
  EXPECT_NE(table.find("0.75 0.50"), std::string::npos);
  const std::string svg = tuning_svg(lengths, "m & n");
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_NE(svg.find("4 at once"), std::string::npos);
  EXPECT_NE(svg.find("ngram, K = 3"), std::string::npos);
}

}  // namespace
}  // namespace foretoken::bench
