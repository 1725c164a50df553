#include "kernels/attention/cpu/attention_tile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/bfloat16.h"
#include "support/random_data.h"

namespace foretoken::cpu {
namespace {

constexpr int kAttentionTileHeads = 6, kAttentionTileKvHeads = 2, kAttentionTileDim = 64,
              kAttentionTileBlockSize = 8, kAttentionTileBlocks = 80, kAttentionTileRows = 20;
constexpr int kAttentionTileFirst = 500;  // position of the first row

struct AttentionTileData {
  std::vector<uint16_t> q, k, v, out;
  std::vector<int32_t> positions, slots, table;
};

std::vector<uint16_t> random_halves(size_t count, uint64_t seed) {
  std::vector<uint16_t> halves;
  for (const float value : random_floats(count, seed)) halves.push_back(bf16_from_float(value));
  return halves;
}

AttentionTileData attention_tile_make_data() {
  AttentionTileData data;
  const size_t entries = size_t{kAttentionTileBlocks} * kAttentionTileKvHeads *
                         kAttentionTileBlockSize * kAttentionTileDim;
  data.k = random_halves(entries, 1);
  data.v = random_halves(entries, 2);
  data.q = random_halves(size_t{kAttentionTileRows} * kAttentionTileHeads * kAttentionTileDim, 3);
  data.out.assign(data.q.size(), 0);
  for (int i = 0; i < kAttentionTileBlocks; ++i) data.table.push_back(kAttentionTileBlocks - 1 - i);
  for (int r = 0; r < kAttentionTileRows; ++r) data.positions.push_back(kAttentionTileFirst + r);
  data.slots.assign(kAttentionTileRows, 0);
  return data;
}

AttentionArgs args_of(AttentionTileData& data, int window) {
  AttentionArgs a{};
  a.q = data.q.data();
  a.out = data.out.data();
  a.positions = data.positions.data();
  a.row_slot = data.slots.data();
  a.block_tables = data.table.data();
  a.kv = {data.k.data(),           data.v.data(),     kAttentionTileKvHeads,
          kAttentionTileBlockSize, kAttentionTileDim, DType::kBF16};
  a.max_blocks = kAttentionTileBlocks;
  a.max_rows = kAttentionTileRows;
  a.num_heads = kAttentionTileHeads;
  a.window = window;
  a.scale = 0.125f;
  return a;
}

// All rows, in tiles of so many.
std::vector<uint16_t> attend(AttentionTileData& data, int window, int rows_of_tile) {
  const AttentionArgs a = args_of(data, window);
  for (int row = 0; row < kAttentionTileRows; row += rows_of_tile) {
    for (int kv_head = 0; kv_head < kAttentionTileKvHeads; ++kv_head) {
      attend_tile(a,
                  {row, std::min(rows_of_tile, kAttentionTileRows - row), kv_head, 3 * kv_head, 3});
    }
  }
  return data.out;
}

class AttentionTileTest : public testing::Test {
 protected:
  void SetUp() override {
    AttentionTileData data = attention_tile_make_data();
    if (!has_attention_tiles(args_of(data, 0).kv)) GTEST_SKIP() << "no products of bfloat16";
  }
};

TEST_F(AttentionTileTest, BitsDoNotDependOnTheTile) {
  for (const int window : {0, 10, 300}) {
    AttentionTileData data = attention_tile_make_data();
    const std::vector<uint16_t> alone = attend(data, window, 1);
    for (const int rows : {2, 3, 7, 20}) EXPECT_EQ(attend(data, window, rows), alone) << rows;
  }
}

// A value that is not finite reaches the rows that see it, and no other one.
TEST_F(AttentionTileTest, WhatIsNotFiniteStaysWhereItIsSeen) {
  AttentionTileData data = attention_tile_make_data();
  const std::vector<uint16_t> before = attend(data, 0, 20);
  const int position = kAttentionTileFirst + 9;
  const int block = data.table[position / kAttentionTileBlockSize];
  const size_t at = size_t(block * kAttentionTileKvHeads * kAttentionTileBlockSize +
                           position % kAttentionTileBlockSize) *
                    kAttentionTileDim;
  data.v[at] = bf16_from_float(std::nanf(""));
  data.k[at + 1] = bf16_from_float(std::numeric_limits<float>::infinity());
  const std::vector<uint16_t> alone = attend(data, 0, 1);
  EXPECT_EQ(attend(data, 0, 20), alone);
  const size_t sees = size_t{9} * kAttentionTileHeads * kAttentionTileDim;
  EXPECT_EQ(std::memcmp(before.data(), alone.data(), sees * 2), 0);
  EXPECT_TRUE(std::isnan(bf16_to_float(alone[sees])));
  EXPECT_FALSE(std::isnan(bf16_to_float(alone[sees + 3 * kAttentionTileDim])))
      << "the other KV head";
}

TEST_F(AttentionTileTest, OnlyBfloat16InWholeSteps) {
  AttentionTileData data = attention_tile_make_data();
  KvLayer kv = args_of(data, 0).kv;
  kv.head_dim = 80;
  EXPECT_FALSE(has_attention_tiles(kv));
  kv.head_dim = 64;
  kv.dtype = DType::kF32;
  EXPECT_FALSE(has_attention_tiles(kv));
}

}  // namespace
}  // namespace foretoken::cpu
