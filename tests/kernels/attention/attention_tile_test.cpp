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

constexpr int kHeads = 6, kKvHeads = 2, kDim = 64, kBlockSize = 8, kBlocks = 80, kRows = 20;
constexpr int kFirst = 500;  // position of the first row

struct Data {
  std::vector<uint16_t> q, k, v, out;
  std::vector<int32_t> positions, slots, table;
};

std::vector<uint16_t> random_halves(size_t count, uint64_t seed) {
  std::vector<uint16_t> halves;
  for (const float value : random_floats(count, seed)) halves.push_back(bf16_from_float(value));
  return halves;
}

Data make_data() {
  Data data;
  const size_t entries = size_t{kBlocks} * kKvHeads * kBlockSize * kDim;
  data.k = random_halves(entries, 1);
  data.v = random_halves(entries, 2);
  data.q = random_halves(size_t{kRows} * kHeads * kDim, 3);
  data.out.assign(data.q.size(), 0);
  for (int i = 0; i < kBlocks; ++i) data.table.push_back(kBlocks - 1 - i);
  for (int r = 0; r < kRows; ++r) data.positions.push_back(kFirst + r);
  data.slots.assign(kRows, 0);
  return data;
}

AttentionArgs args_of(Data& data, int window) {
  AttentionArgs a{};
  a.q = data.q.data();
  a.out = data.out.data();
  a.positions = data.positions.data();
  a.row_slot = data.slots.data();
  a.block_tables = data.table.data();
  a.kv = {data.k.data(), data.v.data(), kKvHeads, kBlockSize, kDim, DType::kBF16};
  a.max_blocks = kBlocks;
  a.max_rows = kRows;
  a.num_heads = kHeads;
  a.window = window;
  a.scale = 0.125f;
  return a;
}

// All rows, in tiles of so many.
std::vector<uint16_t> attend(Data& data, int window, int rows_of_tile) {
  const AttentionArgs a = args_of(data, window);
  for (int row = 0; row < kRows; row += rows_of_tile) {
    for (int kv_head = 0; kv_head < kKvHeads; ++kv_head) {
      attend_tile(a, {row, std::min(rows_of_tile, kRows - row), kv_head, 3 * kv_head, 3});
    }
  }
  return data.out;
}

class AttentionTileTest : public testing::Test {
 protected:
  void SetUp() override {
    Data data = make_data();
    if (!has_attention_tiles(args_of(data, 0).kv)) GTEST_SKIP() << "no products of bfloat16";
  }
};

TEST_F(AttentionTileTest, BitsDoNotDependOnTheTile) {
  for (const int window : {0, 10, 300}) {
    Data data = make_data();
    const std::vector<uint16_t> alone = attend(data, window, 1);
    for (const int rows : {2, 3, 7, 20}) EXPECT_EQ(attend(data, window, rows), alone) << rows;
  }
}

// A value that is not finite reaches the rows that see it, and no other one.
TEST_F(AttentionTileTest, WhatIsNotFiniteStaysWhereItIsSeen) {
  Data data = make_data();
  const std::vector<uint16_t> before = attend(data, 0, 20);
  const int position = kFirst + 9;
  const int block = data.table[position / kBlockSize];
  const size_t at = size_t(block * kKvHeads * kBlockSize + position % kBlockSize) * kDim;
  data.v[at] = bf16_from_float(std::nanf(""));
  data.k[at + 1] = bf16_from_float(std::numeric_limits<float>::infinity());
  const std::vector<uint16_t> alone = attend(data, 0, 1);
  EXPECT_EQ(attend(data, 0, 20), alone);
  const size_t sees = size_t{9} * kHeads * kDim;
  EXPECT_EQ(std::memcmp(before.data(), alone.data(), sees * 2), 0);
  EXPECT_TRUE(std::isnan(bf16_to_float(alone[sees])));
  EXPECT_FALSE(std::isnan(bf16_to_float(alone[sees + 3 * kDim]))) << "the other KV head";
}

TEST_F(AttentionTileTest, OnlyBfloat16InWholeSteps) {
  Data data = make_data();
  KvLayer kv = args_of(data, 0).kv;
  kv.head_dim = 80;
  EXPECT_FALSE(has_attention_tiles(kv));
  kv.head_dim = 64;
  kv.dtype = DType::kF32;
  EXPECT_FALSE(has_attention_tiles(kv));
}

}  // namespace
}  // namespace foretoken::cpu
