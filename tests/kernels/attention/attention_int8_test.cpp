#include "kernels/attention/cpu/attention_int8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "support/int8_data.h"

namespace foretoken::cpu {
namespace {

constexpr int kHeads = 6, kKvHeads = 2, kDim = 72, kBlockSize = 8, kBlocks = 80, kRows = 20;
constexpr int kFirst = 500;  // position of the first row
constexpr size_t kEntryBytes = kDim + sizeof(float);

struct Data {
  std::vector<float> q, out;
  TypedData k, v;
  std::vector<int32_t> positions, slots, table;
};

Data make_data() {
  Data data;
  const size_t elements = size_t{kBlocks} * kKvHeads * kBlockSize * kDim;
  data.k = int8_data(random_floats(elements, 1), kDim);
  data.v = int8_data(random_floats(elements, 2), kDim);
  data.q = random_floats(size_t{kRows} * kHeads * kDim, 3);
  data.out.assign(data.q.size(), 0);
  for (int i = 0; i < kBlocks; ++i) data.table.push_back(kBlocks - 1 - i);
  for (int r = 0; r < kRows; ++r) data.positions.push_back(kFirst + r);
  data.slots.assign(kRows, 0);
  return data;
}

// All rows, in tiles of so many.
std::vector<float> attend_int8(const Int8Kernels& kernels, Data& data, int window, float softcap,
                               int rows_of_tile) {
  AttentionArgs a{};
  a.q = data.q.data();
  a.out = data.out.data();
  a.positions = data.positions.data();
  a.row_slot = data.slots.data();
  a.block_tables = data.table.data();
  a.kv = {data.k.bytes.data(), data.v.bytes.data(), kKvHeads, kBlockSize, kDim,
          DType::kF32,         KvFormat::kInt8};
  a.max_blocks = kBlocks;
  a.max_rows = kRows;
  a.num_heads = kHeads;
  a.window = window;
  a.softcap = softcap;
  a.scale = 0.125f;
  for (int row = 0; row < kRows; row += rows_of_tile) {
    for (int kv_head = 0; kv_head < kKvHeads; ++kv_head) {
      const int rows = std::min(rows_of_tile, kRows - row);
      attend_int8_tile(kernels, a, {row, rows, kv_head, 3 * kv_head, 3});
    }
  }
  return data.out;
}

bool equal_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(AttentionInt8, BitsDependNeitherOnTheTileNorOnTheKernels) {
  Data data = make_data();
  const Int8Kernels& plain = int8_kernels().back();
  for (const float softcap : {0.0f, 3.0f}) {
    for (const int window : {0, 10, 300}) {
      const std::vector<float> alone = attend_int8(plain, data, window, softcap, 1);
      for (const Int8Kernels& kernels : int8_kernels()) {
        for (const int rows : {1, 2, 3, 7, 20}) {
          EXPECT_TRUE(equal_bits(attend_int8(kernels, data, window, softcap, rows), alone))
              << kernels.name << " " << rows;
        }
      }
    }
  }
}

// A value that is not finite reaches the rows that see it, and no other one.
TEST(AttentionInt8, WhatIsNotFiniteStaysWhereItIsSeen) {
  Data data = make_data();
  const Int8Kernels& kernels = int8_kernels().front();
  const std::vector<float> before = attend_int8(kernels, data, 0, 0, 20);
  const int position = kFirst + 9;
  const int block = data.table[position / kBlockSize];
  const size_t entry = size_t(block * kKvHeads * kBlockSize + position % kBlockSize);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memset(&data.v.bytes[entry * kEntryBytes], 0, kDim);
  std::memcpy(&data.v.bytes[entry * kEntryBytes + kDim], &nan, sizeof nan);
  const std::vector<float> alone = attend_int8(kernels, data, 0, 0, 1);
  const size_t sees = size_t{9} * kHeads * kDim;
  EXPECT_EQ(std::memcmp(before.data(), alone.data(), sees * sizeof(float)), 0);
  const std::vector<float> together = attend_int8(kernels, data, 0, 0, 20);
  EXPECT_EQ(std::memcmp(before.data(), together.data(), sees * sizeof(float)), 0);
  for (const std::vector<float>* out : {&alone, &together}) {
    EXPECT_TRUE(std::isnan((*out)[sees]));
    EXPECT_FALSE(std::isnan((*out)[sees + 3 * kDim])) << "the other KV head";
  }
}

}  // namespace
}  // namespace foretoken::cpu
