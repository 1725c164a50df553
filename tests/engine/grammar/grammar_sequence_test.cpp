#include "engine/grammar/grammar_sequence.h"

#include <gtest/gtest.h>

#include "engine/grammar/fake_mask.h"

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

class GrammarSequenceTest : public ::testing::Test {
 protected:
  void SetUp() override { make(-1); }
  void make(int fails_at) {
    auto mask = std::make_unique<FakeMask>(fails_at);
    mask_ = mask.get();
    sequence_ = std::make_unique<GrammarSequence>(std::move(mask), kPromptLen, 2, 4);
  }

  // The masks of a span whose output so far is `output`, as the only bit of each.
  Ids rows(const Ids& output, const Ids& drafts) {
    sequence_->begin(FakeMask::span(1, kPromptLen, output, drafts));
    while (!sequence_->is_done()) sequence_->advance();
    Ids bits;
    for (int i = 0; i < sequence_->answer().num_masks; ++i) {
      bits.push_back(FakeMask::bit_of(sequence_->row(i)));
    }
    return bits;
  }

  static constexpr int kPromptLen = 3;
  FakeMask* mask_ = nullptr;
  std::unique_ptr<GrammarSequence> sequence_;
};

TEST_F(GrammarSequenceTest, MasksFollowTheDrafts) {
  EXPECT_EQ(rows({}, {0, 1, 2}), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(sequence_->answer().num_decided, 4);
}

// The row at the forbidden draft decides; those behind it need no masks.
TEST_F(GrammarSequenceTest, RowsBehindAForbiddenDraftAreDecidedWithoutMasks) {
  EXPECT_EQ(rows({}, {0, 7, 2}), (Ids{0, 1}));
  EXPECT_EQ(sequence_->answer().num_decided, 4);
}

TEST_F(GrammarSequenceTest, WhatWasTriedAndCameTrueIsNotTriedAgain) {
  (void)rows({}, {0, 1, 2});
  const int before = mask_->num_consumed();
  EXPECT_EQ(rows({0, 1, 2, 3}, {4}), (Ids{4, 5}));
  EXPECT_EQ(mask_->num_consumed(), before + 2);
  EXPECT_EQ(mask_->num_taken_back(), 0);
  EXPECT_EQ(rows({0, 1, 2, 3, 4}, {9}), Ids{5});
  EXPECT_EQ(rows({0, 1, 2, 3, 4, 5}, {}), Ids{6});
}

TEST_F(GrammarSequenceTest, RejectedDraftsAreTakenBack) {
  (void)rows({}, {0, 1, 2});
  EXPECT_EQ(rows({0}, {1}), (Ids{1, 2}));
  EXPECT_EQ(mask_->num_taken_back(), 2);
}

TEST_F(GrammarSequenceTest, TheSameSpanKeepsItsMasks) {
  (void)rows({0}, {1, 2});
  const int fills = mask_->num_fills();
  EXPECT_EQ(rows({0}, {1, 2}), (Ids{1, 2, 3}));
  EXPECT_EQ(mask_->num_fills(), fills);
  EXPECT_EQ(rows({0}, {}), Ids{1});
  EXPECT_EQ(rows({0}, {8}), Ids{1});
  EXPECT_EQ(rows({0}, {1, 2, 3}), (Ids{1, 2, 3, 4}));
}

class RepairedDrafts : public GrammarSequenceTest {
 protected:
  Ids repaired(const Ids& output, const Ids& drafts, int most) {
    sequence_->begin(FakeMask::span(1, kPromptLen, output, drafts, most));
    while (!sequence_->is_done()) sequence_->advance();
    EXPECT_EQ(sequence_->answer().num_decided, std::ssize(sequence_->drafts()) + 1);
    return Ids(sequence_->drafts().begin(), sequence_->drafts().end());
  }
};

TEST_F(RepairedDrafts, ForcedIdsFollowTheMatch) {
  EXPECT_EQ(repaired({}, {0, 1}, 4), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(repaired({0}, {}, 3), (Ids{1, 2, 3}));
}

TEST_F(RepairedDrafts, AForcedIdTakesThePlaceOfWhatIsForbidden) {
  EXPECT_EQ(repaired({}, {0, 9, 2}, 3), (Ids{0, 1, 2}));
  EXPECT_EQ(repaired({0, 1}, {7}, 1), Ids{2});
}

TEST_F(RepairedDrafts, DraftsEndWhereNothingIsForced) {
  mask_->free_at = {2};
  EXPECT_EQ(repaired({}, {0, 1}, 4), (Ids{0, 1}));
  EXPECT_EQ(repaired({}, {0, 1, 61}, 3), (Ids{0, 1, 61}));
  EXPECT_EQ(repaired({}, {0, 1, 50, 3}, 4), (Ids{0, 1}));
  EXPECT_EQ(repaired({0, 1}, {8}, 4), Ids{});
}

TEST_F(RepairedDrafts, DraftsEndWithTheOutput) {
  mask_->end_id = 2;
  EXPECT_EQ(repaired({}, {0, 1, 2, 3}, 4), (Ids{0, 1, 2}));
  mask_->complete_at = 1;
  EXPECT_EQ(repaired({}, {0, 1, 2}, 4), Ids{0});
}

TEST_F(RepairedDrafts, TheNextStepFindsTheirMasks) {
  (void)repaired({}, {0, 9}, 3);
  const int fills = mask_->num_fills();
  EXPECT_EQ(rows({}, {0, 1, 2}), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(mask_->num_fills(), fills + 1);
  EXPECT_EQ(mask_->num_taken_back(), 0);
  EXPECT_EQ(repaired({0, 1, 2, 3}, {}, 2), (Ids{4, 5}));
  EXPECT_EQ(rows({0, 1, 2, 3}, {4, 8}), (Ids{4, 5}));
}

TEST_F(RepairedDrafts, TheSameOutputAgain) {
  EXPECT_EQ(repaired({}, {0}, 4), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(repaired({}, {5}, 2), (Ids{0, 1}));
  EXPECT_EQ(rows({}, {0, 1, 2}), (Ids{0, 1, 2, 3}));
}

TEST_F(RepairedDrafts, AFaultForcesNothing) {
  make(1);
  EXPECT_EQ(repaired({}, {}, 4), Ids{0});
}

// A long jump: a span was lost on the way.
TEST_F(GrammarSequenceTest, IdsThatWereNeverSeenAreAFault) {
  MaskSpan span = FakeMask::span(1, kPromptLen, {0, 1, 2, 3}, {});
  span.num_tail = 2;
  sequence_->begin(span);
  while (!sequence_->is_done()) sequence_->advance();
  EXPECT_EQ(FakeMask::bit_of(sequence_->row(0)), -1);
  EXPECT_NE(sequence_->why_nothing_fits().find("unseen"), std::string::npos);
}

TEST_F(GrammarSequenceTest, AFaultEmptiesAllMasksAndIsKept) {
  make(2);
  EXPECT_EQ(rows({}, {0, 1, 2}), (Ids{0, 1, -1}));
  EXPECT_NE(sequence_->why_nothing_fits().find("too complex"), std::string::npos);
  EXPECT_EQ(rows({0, 1}, {2}), Ids{-1});
  EXPECT_FALSE(sequence_->completed_after(2));
}

TEST_F(GrammarSequenceTest, KnowsWhereTheOutputWasComplete) {
  mask_->complete_at = 2;
  EXPECT_EQ(rows({}, {0, 1, 2}), (Ids{0, 1, -1}));
  EXPECT_TRUE(sequence_->completed_after(2));
  EXPECT_FALSE(sequence_->completed_after(1));
  EXPECT_NE(sequence_->why_nothing_fits().find("min_tokens"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
