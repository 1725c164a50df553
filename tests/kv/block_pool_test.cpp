#include "kv/block_pool.h"

#include <gtest/gtest.h>

#include <set>

namespace foretoken {
namespace {

TEST(BlockPool, HandsOutEveryBlockButTheNullBlock) {
  BlockPool pool(5);
  EXPECT_EQ(pool.num_usable(), 4);
  std::set<BlockId> seen;
  while (pool.num_free() > 0) seen.insert(pool.allocate());
  EXPECT_EQ(seen, (std::set<BlockId>{1, 2, 3, 4}));
}

TEST(BlockPool, LeastRecentlyReleasedComesFirst) {
  BlockPool pool(4);
  const BlockId a = pool.allocate();
  const BlockId b = pool.allocate();
  const BlockId c = pool.allocate();
  pool.release(b);
  pool.release(a);
  pool.release(c);
  EXPECT_EQ(pool.oldest_free(), b);
  EXPECT_EQ(pool.allocate(), b);
  EXPECT_EQ(pool.allocate(), a);
  EXPECT_EQ(pool.allocate(), c);
}

TEST(BlockPool, RetainKeepsAFreeBlockAndItsEpoch) {
  BlockPool pool(3);
  const BlockId a = pool.allocate();
  const uint32_t epoch = pool.epoch(a);
  pool.release(a);
  EXPECT_EQ(pool.num_free(), 2);
  pool.retain(a);
  EXPECT_EQ(pool.num_free(), 1);
  EXPECT_EQ(pool.epoch(a), epoch);
  EXPECT_NE(pool.allocate(), a);
  pool.release(a);
  EXPECT_EQ(pool.allocate(), a);
  EXPECT_EQ(pool.epoch(a), epoch + 1);
}

TEST(BlockPool, SharedBlockReturnsWithItsLastHolder) {
  BlockPool pool(2);
  const BlockId a = pool.allocate();
  pool.retain(a);
  pool.release(a);
  EXPECT_EQ(pool.num_free(), 0);
  pool.release(a);
  EXPECT_EQ(pool.num_free(), 1);
}

}  // namespace
}  // namespace foretoken
