#include "kv/host_blocks.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

// Three images of blocks of two tokens.
class HostBlocksTest : public ::testing::Test {
 protected:
  BlockId take(PrefixLink parent, const Ids& ids, uint64_t name, uint8_t exact = 0) {
    const BlockId image = host_.take({parent, name, ids}, exact);
    host_.end_plan();
    return image;
  }

  HostBlocks host_{3, 2, 8};
};

TEST_F(HostBlocksTest, FindsAChainByWhatItHolds) {
  const BlockId a = take({}, {1, 2}, 10);
  const BlockId b = take({5, 3, 10}, {3, 4}, 11);
  EXPECT_EQ(host_.find({}, Ids{1, 2}), a);
  // The parent's block may be another one by now.
  EXPECT_EQ(host_.find({7, 1, 10}, Ids{3, 4}), b);
  EXPECT_EQ(host_.find(host_.link_behind(a), Ids{3, 4}), b);
  EXPECT_EQ(host_.find({}, Ids{3, 4}), kNullBlock);
  EXPECT_EQ(host_.find({7, 1, 12}, Ids{3, 4}), kNullBlock);
}

TEST_F(HostBlocksTest, SaltsAndAdaptersHaveRootsOfTheirOwn) {
  const BlockId a = take(PrefixLink::root(0, 7), {1, 2}, 10);
  const BlockId b = take(PrefixLink::root(3, 0), {1, 2}, 11);
  EXPECT_EQ(host_.find(PrefixLink::root(0, 7), Ids{1, 2}), a);
  EXPECT_EQ(host_.find(PrefixLink::root(3, 0), Ids{1, 2}), b);
  EXPECT_EQ(host_.find({}, Ids{1, 2}), kNullBlock);
  EXPECT_EQ(host_.find(PrefixLink::root(3, 7), Ids{1, 2}), kNullBlock);
}

TEST_F(HostBlocksTest, GivesUpTheLeastRecentlyUsed) {
  const BlockId a = take({}, {1, 1}, 1);
  take({}, {2, 2}, 2);
  take({}, {3, 3}, 3);
  host_.lock(a);
  host_.end_plan();
  take({}, {4, 4}, 4);
  EXPECT_EQ(host_.find({}, Ids{1, 1}), a);
  EXPECT_EQ(host_.find({}, Ids{2, 2}), kNullBlock);
}

TEST_F(HostBlocksTest, ForgetsAll) {
  take({}, {1, 1}, 1);
  take({}, {2, 2}, 2);
  host_.forget_all();
  EXPECT_EQ(host_.find({}, Ids{1, 1}), kNullBlock);
  const BlockId a = take({}, {1, 1}, 1);
  EXPECT_EQ(host_.find({}, Ids{1, 1}), a);
}

TEST_F(HostBlocksTest, WhatThePlanUsesStays) {
  const BlockId a = take({}, {1, 1}, 1);
  host_.lock(a);
  EXPECT_NE(host_.take({{}, 2, Ids{2, 2}}, 0), kNullBlock);
  EXPECT_NE(host_.take({{}, 3, Ids{3, 3}}, 0), kNullBlock);
  EXPECT_EQ(host_.take({{}, 4, Ids{4, 4}}, 0), kNullBlock);
  host_.end_plan();
  EXPECT_EQ(host_.find({}, Ids{1, 1}), a);
  EXPECT_NE(host_.take({{}, 4, Ids{4, 4}}, 0), kNullBlock);
}

// Copied again only where drafters have more entries than the image.
TEST_F(HostBlocksTest, AKnownBlockKeepsItsImage) {
  const BlockId a = take({}, {1, 1}, 1, 0b01);
  EXPECT_EQ(take({}, {1, 1}, 1, 0b01), kNullBlock);
  EXPECT_EQ(take({}, {1, 1}, 1, 0b00), kNullBlock);
  EXPECT_EQ(host_.exact(a), 0b01);
  EXPECT_EQ(take({}, {1, 1}, 1, 0b11), a);
  EXPECT_EQ(host_.exact(a), 0b11);
}

// Of what has no ids of its own, as a snapshot behind a prefix.
TEST_F(HostBlocksTest, LinksAloneAreKeysWithoutIds) {
  HostBlocks named(2, 0, 8);
  const PrefixLink behind = {7, 3, 12};
  const BlockId image = named.take({behind.content(), behind.name, {}}, 0b10);
  named.end_plan();
  EXPECT_NE(image, kNullBlock);
  EXPECT_EQ(named.find(behind), image);
  EXPECT_EQ(named.find({9, 1, 12}), image);
  EXPECT_EQ(named.find({7, 3, 13}), kNullBlock);
  EXPECT_EQ(named.exact(image), 0b10);
  named.forget(image);
  EXPECT_EQ(named.find(behind), kNullBlock);
}

}  // namespace
}  // namespace foretoken
