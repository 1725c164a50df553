#include "attention/kv_cache.h"

#include <gtest/gtest.h>

#include "support/test_device.h"

namespace foretoken {
namespace {

TEST(KvCache, LayersShareOneAllocationWithoutOverlap) {
  const KvGroupSpec spec{3, 2, 16, DType::kBF16};
  const auto made = KvCache::create(*test_device(), spec, 5, 16);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const KvCache& cache = *made.value();
  EXPECT_EQ(cache.bytes_per_block(), 3 * 2 * 2 * 16 * 16 * 2);
  EXPECT_EQ(cache.num_blocks(), 5);
  EXPECT_EQ(cache.num_layers(), 3);
  EXPECT_GE(cache.num_bytes(), 5 * cache.bytes_per_block());
  const int64_t part = cache.bytes_per_block() / 6 * 5;
  const char* end = nullptr;
  for (int32_t i = 0; i < 3; ++i) {
    const KvLayer& layer = cache.layer(i);
    EXPECT_EQ(layer.num_kv_heads, 2);
    EXPECT_EQ(layer.block_size, 16);
    EXPECT_EQ(layer.head_dim, 16);
    EXPECT_EQ(layer.dtype, DType::kBF16);
    for (void* begin : {layer.k, layer.v}) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(begin) % 256, 0u);
      if (end != nullptr) {
        EXPECT_GE(static_cast<char*>(begin), end);
      }
      end = static_cast<char*>(begin) + part;
    }
  }
  EXPECT_LE(end, static_cast<char*>(cache.layer(0).k) + cache.num_bytes());
}

TEST(KvCache, Int8TakesAByteAnElementAndAFloatAnEntry) {
  const KvGroupSpec spec{
      .num_layers = 3, .num_kv_heads = 2, .head_dim = 16, .format = KvFormat::kInt8};
  const auto made = KvCache::create(*test_device(), spec, 5, 16);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made.value()->bytes_per_block(), 3 * 2 * 2 * 16 * (16 + 4));
  EXPECT_EQ(made.value()->layer(2).format, KvFormat::kInt8);
}

// Windows and compressed entries of DeepSeek V4; keys of indexers stay as they are.
TEST(KvCache, EntriesWhoseEndsTurnTakeTheBytesOfTheirCodes) {
  KvGroupSpec spec{.num_layers = 2,
                   .num_kv_heads = 1,
                   .head_dim = 512,
                   .dtype = DType::kBF16,
                   .format = KvFormat::kFp8,
                   .value_dim = 512,
                   .rope_dim = 64};
  spec.index = {128, 4, 1};
  spec.compressed[0] = {512, 4, 1, 64};
  EXPECT_EQ(group_entry_bytes(spec), 592);
  EXPECT_EQ(kv_bytes_per_block(spec, 16), 2 * 16 * 592 + 4 * 128 * 2 + 4 * 592);
  spec.context_size = 2;
  EXPECT_EQ(kv_bytes_per_block(spec, 32), 2 * 16 * 592 + 8 * 128 * 2 + 4 * 592)
      << "ranks that share positions have all keys and their entries";
  spec.compressed[0].positions = 64;
  EXPECT_EQ(kv_bytes_per_block(spec, 32), 2 * 16 * 592 + 8 * 128 * 2 + 592);
  spec.compressed[0].positions = 4;
  spec.context_size = 1;
  const auto made = KvCache::create(*test_device(), spec, 5, 16);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const auto* entries = static_cast<const char*>(made.value()->compressed(0, 0));
  const auto* keys = static_cast<const char*>(made.value()->index_keys(0));
  EXPECT_GE(entries - keys, 5 * 4 * 128 * 2);
  EXPECT_LE(entries + 5 * 4 * 592 - static_cast<const char*>(made.value()->layer(0).k),
            made.value()->num_bytes());
}

TEST(KvCache, LatentsHaveOneEntryForKeysAndValues) {
  const KvGroupSpec spec{
      .num_layers = 3, .num_kv_heads = 1, .head_dim = 576, .dtype = DType::kBF16, .value_dim = 512};
  const auto made = KvCache::create(*test_device(), spec, 5, 16);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const KvCache& cache = *made.value();
  EXPECT_EQ(cache.bytes_per_block(), 3 * 16 * 576 * 2);
  const char* end = nullptr;
  for (int32_t i = 0; i < 3; ++i) {
    const KvLayer& layer = cache.layer(i);
    EXPECT_EQ(layer.k, layer.v);
    EXPECT_EQ(layer.value_dim, 512);
    EXPECT_EQ(layer.value_size(), 512);
    EXPECT_TRUE(end == nullptr || layer.k == end);
    end = static_cast<char*>(layer.k) + cache.bytes_per_block() / 3 * 5;
  }
  EXPECT_LE(end, static_cast<char*>(cache.layer(0).k) + cache.num_bytes());
}

// Two of three layers have a key beside each entry.
TEST(KvCache, KeysOfIndexersLieBehindTheLayers) {
  KvGroupSpec spec{
      .num_layers = 3, .num_kv_heads = 1, .head_dim = 576, .dtype = DType::kBF16, .value_dim = 512};
  const int64_t without = kv_bytes_per_block(spec, 16);
  spec.index = {.dim = 128, .num_layers = 2};
  const auto made = KvCache::create(*test_device(), spec, 5, 16);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const KvCache& cache = *made.value();
  EXPECT_EQ(cache.bytes_per_block(), without + 2 * 16 * 128 * 2);
  const std::vector<BlockPart> parts = cache.block_parts();
  ASSERT_EQ(parts.size(), 5u);
  EXPECT_EQ(parts[4].base, cache.index_keys(1));
  EXPECT_EQ(parts[4].bytes, 16 * 128 * 2);
  EXPECT_GE(cache.index_keys(0), static_cast<char*>(cache.layer(2).k) + without / 3 * 5);
  EXPECT_GE(cache.index_keys(1), static_cast<char*>(cache.index_keys(0)) + parts[4].bytes * 5);
  EXPECT_EQ(cache.index_keys(2), nullptr);
  EXPECT_EQ(cache.index_keys(-1), nullptr);
}

// A block of 64 positions, of which each of four ranks has 16.
TEST(KvCache, RanksShareTheEntriesOfABlock) {
  KvGroupSpec spec{3, 1, 16, DType::kBF16};
  const int64_t whole = kv_bytes_per_block(spec, 64);
  spec.context_size = 4;
  spec.context_rank = 3;
  EXPECT_EQ(kv_bytes_per_block(spec, 64), whole / 4);
  const auto made = KvCache::create(*test_device(), spec, 5, 64);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const KvLayer& layer = made.value()->layer(2);
  EXPECT_EQ(made.value()->block_size(), 64);
  EXPECT_EQ(layer.block_size, 16);
  EXPECT_EQ(layer.context_size, 4);
  EXPECT_EQ(layer.context_rank, 3);
  EXPECT_EQ(static_cast<char*>(layer.v) - static_cast<char*>(layer.k), 5 * 16 * 16 * 2);
}

// The second layer has half of the heads: its blocks lie close together.
TEST(KvCache, LayersWithFewerHeadsHaveSmallerBlocks) {
  KvGroupSpec spec{3, 2, 16, DType::kBF16};
  const int64_t alike = kv_bytes_per_block(spec, 16);
  spec.layer_bytes = {64, 32, 64};
  EXPECT_EQ(kv_bytes_per_block(spec, 16), alike - 2 * 16 * 32);
  const auto made = KvCache::create(*test_device(), spec, 8, 16);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const KvCache& cache = *made.value();
  const std::vector<BlockPart> parts = cache.block_parts();
  ASSERT_EQ(parts.size(), 6u);
  int64_t bytes = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].bytes, i / 2 == 1 ? 16 * 32 : 16 * 64);
    const KvLayer& layer = cache.layer(static_cast<int32_t>(i / 2));
    EXPECT_EQ(parts[i].base, i % 2 == 0 ? layer.k : layer.v);
    EXPECT_TRUE(i == 0 || parts[i].base == parts[i - 1].base + 8 * parts[i - 1].bytes);
    bytes += parts[i].bytes;
  }
  EXPECT_EQ(bytes, cache.bytes_per_block());
  EXPECT_EQ(cache.num_bytes(), 8 * bytes);
}

TEST(KvCache, AGroupWithoutLayersTakesNoMemory) {
  const KvGroupSpec spec{.num_layers = 0, .num_kv_heads = 2, .head_dim = 8};
  const auto cache = KvCache::create(*test_device(), spec, 1 << 20, 16);
  ASSERT_TRUE(cache.ok()) << cache.status().message();
  EXPECT_EQ(cache.value()->num_layers(), 0);
  EXPECT_EQ(cache.value()->num_bytes(), 0);
  EXPECT_EQ(cache.value()->bytes_per_block(), 0);
}

TEST(KvCache, TooLargeIsResourceExhausted) {
  const KvGroupSpec spec{100, 128, 512, DType::kF32};
  const auto made = KvCache::create(*test_device(), spec, 1 << 30, 16);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(made.status().message().find("KV cache"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
