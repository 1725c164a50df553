#include "kernels/attention/kv_layer.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretoken {
namespace {

TEST(KvLayer, BytesOfAnEntry) {
  KvLayer kv{nullptr, nullptr, 2, 16, 64, DType::kBF16};
  EXPECT_EQ(kv_entry_bytes(kv), 128);
  kv.dtype = DType::kF32;
  EXPECT_EQ(kv_entry_bytes(kv), 256);
  kv.format = KvFormat::kInt8;
  EXPECT_EQ(kv_entry_bytes(kv), 68);
  kv.dtype = DType::kBF16;
  EXPECT_EQ(kv_entry_bytes(kv), 68) << "the type of queries changes nothing";
  kv.format = KvFormat::kFp8;
  EXPECT_EQ(kv_entry_bytes(kv), 64);
}

TEST(KvLayer, BytesOfLatents) {
  KvLayer kv{nullptr, nullptr, 1, 16, 576, DType::kBF16, KvFormat::kPlain, 512};
  EXPECT_EQ(kv_entry_bytes(kv), 1152);
  for (const KvFormat format : {KvFormat::kInt8, KvFormat::kFp8}) {
    kv.format = format;
    EXPECT_EQ(kv_entry_bytes(kv), 656) << "512 codes, four scales, 64 elements of bfloat16";
  }
  kv.dtype = DType::kF32;
  EXPECT_EQ(kv_entry_bytes(kv), 512 + 16 + 256);
  kv.value_dim = 300;
  EXPECT_EQ(kv_entry_bytes(kv), 300 + 12 + 276 * 4) << "the last group is smaller";
}

TEST(KvLayer, ScalesAreOneWhereThereAreNone) {
  const float scales[] = {0.5f, 2.0f};
  KvLayer kv{nullptr, nullptr, 2, 16, 64, DType::kBF16, KvFormat::kFp8};
  EXPECT_EQ(key_scale(kv, 1), 1);
  EXPECT_EQ(value_scale(kv, 1), 1);
  kv.k_scales = scales;
  EXPECT_EQ(key_scale(kv, 1), 2);
  EXPECT_EQ(value_scale(kv, 0), 1);
}

// Every position has its entry on one rank, in the order of positions.
TEST(KvLayer, RanksShareThePositions) {
  for (const int size : {1, 2, 3, 8}) {
    std::vector<int32_t> next(static_cast<size_t>(size));
    for (int32_t slot = 0; slot < 50; ++slot) {
      int holders = 0;
      for (int rank = 0; rank < size; ++rank) {
        KvLayer kv{};
        kv.context_size = size;
        kv.context_rank = rank;
        EXPECT_EQ(entries_before(kv, slot), next[static_cast<size_t>(rank)]);
        if (!holds_slot(kv, slot)) continue;
        ++holders;
        EXPECT_EQ(entry_of_slot(kv, slot), next[static_cast<size_t>(rank)]++);
        EXPECT_EQ(position_of_entry(kv, entry_of_slot(kv, slot)), slot);
      }
      EXPECT_EQ(holders, 1);
    }
  }
}

}  // namespace
}  // namespace foretoken
