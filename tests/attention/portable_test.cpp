#include "attention/portable.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "attention/kv_cache.h"
#include "device/arena.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

constexpr int32_t kHeads = 4, kKvHeads = 2, kHeadDim = 32, kBlockSize = 16, kMaxBlocks = 40;

float value_at(int64_t index) { return std::sin(static_cast<float>(index) * 12.9898f) * 1.5f; }

// Attention in double precision over contiguous keys and values of one KV head.
std::vector<double> reference(const float* q, const float* k, const float* v, int32_t length,
                              double scale) {
  std::vector<double> weights(static_cast<size_t>(length)), out(kHeadDim, 0.0);
  double max = -1e300, sum = 0;
  for (int32_t p = 0; p < length; ++p) {
    double dot = 0;
    for (int32_t d = 0; d < kHeadDim; ++d) dot += double(q[d]) * k[p * kHeadDim + d];
    weights[static_cast<size_t>(p)] = dot * scale;
    max = std::max(max, dot * scale);
  }
  for (double& weight : weights) sum += weight = std::exp(weight - max);
  for (int32_t p = 0; p < length; ++p) {
    for (int32_t d = 0; d < kHeadDim; ++d) {
      out[static_cast<size_t>(d)] += weights[static_cast<size_t>(p)] / sum * v[p * kHeadDim + d];
    }
  }
  return out;
}

// Rows of several lengths, one of them beyond a split, through a block table in disorder.
TEST(PortableAttention, MatchesDoublePrecisionThroughPages) {
  Device& device = *test_device();
  const AttentionBackend& backend = portable_attention();
  const std::vector<int32_t> positions = {0, 5, 16, 255, 256, 600};
  const auto num_rows = static_cast<int32_t>(positions.size());
  Arena arena(device, MemoryKind::kPinned);
  const size_t cache_floats = size_t{1 + kMaxBlocks} * kKvHeads * kBlockSize * kHeadDim;
  auto* k = arena.take_array<float>(cache_floats, "k").value();
  auto* v = arena.take_array<float>(cache_floats, "v").value();
  const size_t q_floats = static_cast<size_t>(num_rows) * kHeads * kHeadDim;
  auto* q = arena.take_array<float>(q_floats, "q").value();
  auto* out = arena.take_array<float>(q_floats, "out").value();
  auto* ints = arena.take_array<int32_t>(2 * positions.size() + kMaxBlocks, "rows").value();
  auto* counts = arena.take_array<StepCounts>(1, "counts").value();
  int32_t* table = ints + 2 * num_rows;
  std::vector<float> keys(size_t{kKvHeads} * kMaxBlocks * kBlockSize * kHeadDim), values(keys);
  for (int32_t b = 0; b < kMaxBlocks; ++b) table[b] = (b * 7) % kMaxBlocks + 1;
  for (int64_t h = 0; h < kKvHeads; ++h) {
    for (int64_t p = 0; p < kMaxBlocks * kBlockSize; ++p) {
      for (int64_t d = 0; d < kHeadDim; ++d) {
        const int64_t flat = (h * kMaxBlocks * kBlockSize + p) * kHeadDim + d;
        const int64_t paged =
            ((table[p / kBlockSize] * kKvHeads + h) * kBlockSize + p % kBlockSize) * kHeadDim + d;
        k[paged] = keys[static_cast<size_t>(flat)] = value_at(flat);
        v[paged] = values[static_cast<size_t>(flat)] = value_at(flat + 1000003);
      }
    }
  }
  for (size_t i = 0; i < q_floats; ++i) q[i] = value_at(static_cast<int64_t>(i) + 77);
  for (int32_t r = 0; r < num_rows; ++r) ints[r] = positions[static_cast<size_t>(r)];
  *counts = {num_rows, 0, 1, 0};
  const int64_t floats = backend.workspace_floats(device, num_rows, kHeads, kHeadDim);
  Arena scratch(device, MemoryKind::kDevice);
  const float scale = 1 / std::sqrt(float(kHeadDim));
  const auto queue = device.make_queue().value();
  backend.run(*queue,
              {.counts = counts,
               .q = q,
               .out = out,
               .positions = ints,
               .row_slot = ints + num_rows,
               .block_tables = table,
               .workspace = scratch.take_array<float>(static_cast<size_t>(floats), "w").value(),
               .workspace_floats = floats,
               .kv = {k, v, kKvHeads, kBlockSize, kHeadDim, DType::kF32},
               .max_blocks = kMaxBlocks,
               .max_rows = num_rows,
               .num_heads = kHeads,
               .window = 0,
               .scale = scale});
  ASSERT_TRUE(queue->drain().ok());
  for (int32_t r = 0; r < num_rows; ++r) {
    for (int32_t h = 0; h < kHeads; ++h) {
      const int64_t head = int64_t{h / (kHeads / kKvHeads)} * kMaxBlocks * kBlockSize * kHeadDim;
      const int64_t at = (int64_t{r} * kHeads + h) * kHeadDim;
      const auto expected = reference(q + at, keys.data() + head, values.data() + head,
                                      positions[static_cast<size_t>(r)] + 1, scale);
      for (int32_t d = 0; d < kHeadDim; ++d) {
        ASSERT_NEAR(out[at + d], expected[static_cast<size_t>(d)], 1e-5) << r << " " << h;
      }
    }
  }
}

}  // namespace
}  // namespace foretoken
