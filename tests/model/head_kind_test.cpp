#include "model/head_kind.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace foretoken {
namespace {

TEST(HeadKind, EachKindFindsItsRow) {
  std::set<std::string> methods, speculators;
  for (const HeadTraits& row : kHeadKinds) {
    EXPECT_EQ(&head_traits(row.kind), &row)
        << row.method << " does not stand in the order of HeadKind";
    EXPECT_TRUE(methods.insert(row.method).second) << row.method;
    EXPECT_TRUE(speculators.insert(row.speculator).second) << row.speculator;
  }
}

TEST(HeadKind, TraitsFitTogether) {
  for (const HeadTraits& row : kHeadKinds) {
    EXPECT_EQ(row.reads_taps(), row.drafts_blocks() || row.pairs_taps()) << row.method;
    // Masks stand for states of taps; the rest is about blocks alone.
    EXPECT_TRUE(row.pairs_taps() || !row.learns_masks) << row.method;
    EXPECT_TRUE(row.drafts_blocks() || !row.anchor_drafts) << row.method;
    EXPECT_TRUE(row.drafts_blocks() || !row.reads_draft_before) << row.method;
    EXPECT_TRUE(row.drafts_blocks() || !row.carries_drafts) << row.method;
    EXPECT_FALSE(row.reads_draft_before && row.carries_drafts) << row.method;
    EXPECT_TRUE(row.first_layer == nullptr || !row.of_target) << row.method;
  }
}

TEST(HeadKind, WhatIsAskedOfTheKindsThatExist) {
  const auto& eagle = head_traits(HeadKind::kEagle);
  EXPECT_FALSE(eagle.reads_taps() || eagle.of_target || eagle.learns_masks);
  EXPECT_TRUE(head_traits(HeadKind::kEagle3).pairs_taps());
  EXPECT_TRUE(head_traits(HeadKind::kMtp).of_target);
  EXPECT_TRUE(head_traits(HeadKind::kPeagle).learns_masks);
  EXPECT_FALSE(head_traits(HeadKind::kDflash).anchor_drafts);
  EXPECT_TRUE(head_traits(HeadKind::kDspark).anchor_drafts);
}

}  // namespace
}  // namespace foretoken
