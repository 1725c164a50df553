#include "kv/prefix_cache.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken {
namespace {

using Ids = std::vector<int32_t>;

class PrefixCacheTest : public ::testing::Test {
 protected:
  BlockPool pool_{8};
  PrefixCache cache_{pool_, nullptr, 2};
};

TEST_F(PrefixCacheTest, FindsAChainBlockByBlock) {
  const BlockId a = pool_.allocate();
  const BlockId b = pool_.allocate();
  const PrefixLink after_a = cache_.insert({}, Ids{1, 2}, a);
  cache_.insert(after_a, Ids{3, 4}, b);
  EXPECT_EQ(cache_.find({}, Ids{1, 2}), a);
  EXPECT_EQ(cache_.find(cache_.link_to(a), Ids{3, 4}), b);
  EXPECT_EQ(cache_.find({}, Ids{3, 4}), kNullBlock);
  EXPECT_EQ(cache_.find(cache_.link_to(a), Ids{3, 5}), kNullBlock);
}

TEST_F(PrefixCacheTest, SaltSeparatesRoots) {
  const BlockId a = pool_.allocate();
  cache_.insert({kNullBlock, 7}, Ids{1, 2}, a);
  EXPECT_EQ(cache_.find({}, Ids{1, 2}), kNullBlock);
  EXPECT_EQ(cache_.find({kNullBlock, 7}, Ids{1, 2}), a);
}

TEST_F(PrefixCacheTest, WhatAnAdapterBeginsInIsNotWhatIsThereWithoutIt) {
  const BlockId a = pool_.allocate();
  const BlockId b = pool_.allocate();
  const BlockId c = pool_.allocate();
  const PrefixLink plain = cache_.insert({}, Ids{1, 2}, a);
  cache_.insert(plain, Ids{3, 4}, b);
  cache_.insert(plain.adapted(1, 3), Ids{3, 4}, c);
  EXPECT_EQ(cache_.find(plain, Ids{3, 4}), b);
  EXPECT_EQ(cache_.find(plain.adapted(1, 3), Ids{3, 4}), c);
  EXPECT_EQ(cache_.find(plain.adapted(1, 2), Ids{3, 4}), kNullBlock);
  EXPECT_EQ(cache_.find(plain.adapted(2, 3), Ids{3, 4}), kNullBlock);
  EXPECT_NE(plain.adapted(1, 3).content(), plain.content());
  EXPECT_NE(PrefixLink::root(1, 5).adapted(1, 3).content(),
            PrefixLink::root(1, 6).adapted(1, 3).content());
}

TEST_F(PrefixCacheTest, TheFirstOfEqualBlocksStays) {
  const BlockId a = pool_.allocate();
  const BlockId b = pool_.allocate();
  const BlockId c = pool_.allocate();
  cache_.insert({}, Ids{1, 2}, a);
  const PrefixLink link = cache_.insert({}, Ids{1, 2}, b);
  EXPECT_EQ(link, cache_.link_to(a));
  cache_.insert(link, Ids{3, 4}, c);
  EXPECT_EQ(cache_.find(cache_.link_to(a), Ids{3, 4}), c);
  EXPECT_EQ(cache_.num_entries(), 2);
}

TEST_F(PrefixCacheTest, AForgottenParentHidesItsChildren) {
  const BlockId a = pool_.allocate();
  const BlockId b = pool_.allocate();
  cache_.insert(cache_.insert({}, Ids{1, 2}, a), Ids{3, 4}, b);
  pool_.release(a);
  BlockId again = kNullBlock;
  while (again != a) {
    again = pool_.allocate();
    cache_.forget(again);
  }
  EXPECT_EQ(cache_.find({}, Ids{1, 2}), kNullBlock);
  cache_.insert({}, Ids{9, 9}, a);
  EXPECT_EQ(cache_.find(cache_.link_to(a), Ids{3, 4}), kNullBlock);
  cache_.forget(b);
  EXPECT_EQ(cache_.num_entries(), 1);
}

class CompanionTest : public ::testing::Test {
 protected:
  BlockPool pool_{8};
  BlockPool windowed_{4};
  PrefixCache cache_{pool_, &windowed_, 2};
};

TEST_F(CompanionTest, LivesUntilItIsHandedOutAgain) {
  const BlockId a = pool_.allocate();
  const BlockId w = windowed_.allocate();
  cache_.insert({}, Ids{1, 2}, a);
  EXPECT_EQ(cache_.companion(a), kNullBlock);
  cache_.set_companion(a, w);
  EXPECT_EQ(cache_.companion(a), w);
  windowed_.release(w);
  EXPECT_EQ(cache_.companion(a), w);
  windowed_.retain(w);
  EXPECT_EQ(cache_.companion(a), w);
  windowed_.release(w);
  while (windowed_.allocate() != w) continue;
  EXPECT_EQ(cache_.companion(a), kNullBlock);
}

TEST_F(CompanionTest, OneThatIsHeldStaysAndAFreeOneGivesWay) {
  const BlockId a = pool_.allocate();
  const BlockId first = windowed_.allocate();
  const BlockId second = windowed_.allocate();
  cache_.insert({}, Ids{1, 2}, a);
  cache_.set_companion(a, first);
  cache_.set_companion(a, second);
  EXPECT_EQ(cache_.companion(a), first);
  windowed_.release(first);
  cache_.set_companion(a, second);
  EXPECT_EQ(cache_.companion(a), second);
}

TEST_F(CompanionTest, ANewEpochOfTheBlockHasNone) {
  const BlockId a = pool_.allocate();
  cache_.insert({}, Ids{1, 2}, a);
  cache_.set_companion(a, windowed_.allocate());
  pool_.release(a);
  while (pool_.num_refs(a) == 0) cache_.forget(pool_.allocate());
  EXPECT_EQ(cache_.companion(a), kNullBlock);
  cache_.insert({}, Ids{3, 4}, a);
  EXPECT_EQ(cache_.companion(a), kNullBlock);
}

}  // namespace
}  // namespace foretoken
