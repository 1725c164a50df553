#include "attention/families.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "attention/kv_cache.h"
#include "device/arena.h"
#include "support/claimed_device.h"
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

const test::ClaimedDevice kAnyCpu(DeviceType::kCpu, false);
const test::ClaimedDevice kAmpere(DeviceType::kCuda, false);
const test::ClaimedDevice kHopperGpu(DeviceType::kCuda, true);

TEST(AttentionFamilies, EachRunsWhereTheDeviceHasItsKernels) {
  const struct {
    const AttentionBackend& backend;
    bool cpu, ampere, hopper;
  } rows[] = {{flash_attention(), false, false, true},
              {portable_attention(), true, true, true},
              {flashinfer_attention(), false, false, true},
              {flex_attention(), true, true, true},
              {flash_latent_attention(), false, false, true},
              {portable_latent_attention(), true, true, true},
              {flashmla_attention(), false, false, false},
              {flashinfer_latent_attention(), false, false, false},
              {cutlass_latent_attention(), false, false, false}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.backend.traits().name);
    EXPECT_EQ(row.backend.runs_on(kAnyCpu), row.cpu);
    EXPECT_EQ(row.backend.runs_on(kAmpere), row.ampere);
    EXPECT_EQ(row.backend.runs_on(kHopperGpu), row.hopper);
  }
  EXPECT_EQ(std::size(rows), attention_backends().size());
}

TEST(AttentionFamilies, ServeModelsOfWhichTheyTakeALayer) {
  const AttentionDemand llama{DType::kBF16, 128, 0, true};
  for (const int head_dim : {64, 80, 128, 256}) {
    AttentionDemand other = llama;
    other.head_dim = head_dim;
    EXPECT_EQ(flash_attention().serves(other), head_dim == 64 || head_dim == 128);
    EXPECT_EQ(flashinfer_attention().serves(other), head_dim == 64 || head_dim == 128);
    EXPECT_TRUE(portable_attention().serves(other));
  }
  const AttentionDemand floats{DType::kF32, 128, 0, true}, capped{DType::kBF16, 128, 30.0f, true},
      windowed{DType::kBF16, 128, 0, false}, sloped{DType::kBF16, 128, 0, true, 0, true};
  for (const AttentionDemand* demand : {&floats, &capped, &windowed, &sloped}) {
    EXPECT_FALSE(flashinfer_attention().serves(*demand));
    EXPECT_TRUE(portable_attention().serves(*demand) && flex_attention().serves(*demand));
  }
  EXPECT_FALSE(flash_attention().serves(floats) || flash_attention().serves(sloped));
  EXPECT_TRUE(flash_attention().serves(capped) && flash_attention().serves(windowed));
}

TEST(AttentionFamilies, LatentsHaveFamiliesOfTheirOwn) {
  const AttentionDemand deepseek{DType::kBF16, 576, 0, true, 512},
      tiny{DType::kBF16, 48, 0, true, 32};
  for (const AttentionBackend* backend : attention_backends()) {
    SCOPED_TRACE(backend->traits().name);
    EXPECT_EQ(backend->serves(deepseek), backend->traits().is_latent);
    EXPECT_EQ(backend->serves(tiny), backend == &portable_latent_attention());
    AttentionDemand sparse = deepseek;
    sparse.is_sparse = true;
    EXPECT_EQ(backend->serves(sparse),
              backend == &portable_latent_attention() || backend == &flash_latent_attention());
  }
}

TEST(AttentionFamilies, TheDefaultFitsTheModelAndTheDevice) {
  const AttentionDemand llama{DType::kBF16, 128, 0, true},
      deepseek{DType::kBF16, 576, 0, true, 512};
  const auto name = [](const AttentionDemand& demand, const Device& device) {
    return std::string(default_attention(demand, device.type(), &device).traits().name);
  };
  EXPECT_EQ(name(llama, kHopperGpu), "flash");
  EXPECT_EQ(name(llama, kAmpere), "portable");
  EXPECT_EQ(name(llama, kAnyCpu), "portable");
  EXPECT_EQ(name(deepseek, kHopperGpu), "flash_mla");
  EXPECT_EQ(name(deepseek, kAmpere), "portable_mla");
  EXPECT_EQ(name(deepseek, kAnyCpu), "portable_mla");
}

}  // namespace
}  // namespace foretoken
