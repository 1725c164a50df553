#include "kernels/attention/cpu/kv_entry.h"

#include <gtest/gtest.h>

namespace foretoken::cpu {
namespace {

TEST(KvEntry, CachesAreBlocksOfHeadsOfPlaces) {
  KvLayer kv{};
  kv.num_kv_heads = 3;
  kv.block_size = 16;
  EXPECT_EQ(kv_entry(kv, 0, 0, 5), 5);
  EXPECT_EQ(kv_entry(kv, 0, 2, 5), 2 * 16 + 5);
  EXPECT_EQ(kv_entry(kv, 7, 2, 5), (7 * 3 + 2) * 16 + 5);
  const int32_t table[] = {9, 4};
  EXPECT_EQ(kv_entry_at(kv, table, 1, 15), kv_entry(kv, 9, 1, 15));
  EXPECT_EQ(kv_entry_at(kv, table, 1, 16), kv_entry(kv, 4, 1, 0));
  EXPECT_EQ(kv_entry(kv, int64_t{1} << 30, 0, 0), (int64_t{1} << 30) * 48) << "past 32 bits";
}

}  // namespace
}  // namespace foretoken::cpu
