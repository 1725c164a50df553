#include "kernels/latent/latent_kv.h"

#include <algorithm>
#include <cmath>

#include "kernels/attention/cpu/latent_codes.h"
#include "support/latent_data.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

struct LatentKvCase {
  int q_size;
  int kv_rank;
  int rope_dim;
  DType dtype;
  bool q_norm = true;
  bool turns = true;
  int shift = 0;
};

constexpr int kBlocks = 4, kBlockSize = 4, kMaxRows = 5, kRows = 4;
constexpr float kEps = 1e-6f, kScaling = 0.8f;

class LatentKvTest : public RowOpTest, public testing::WithParamInterface<LatentKvCase> {
 protected:
  static std::vector<double> normed(const float* x, const std::vector<float>& weight) {
    double squares = 0;
    for (size_t i = 0; i < weight.size(); ++i) squares += double(x[i]) * x[i];
    std::vector<double> out;
    for (size_t i = 0; i < weight.size(); ++i) {
      out.push_back(x[i] * weight[i] / std::sqrt(squares / double(weight.size()) + kEps));
    }
    return out;
  }

  static std::vector<double> turned(const float* x, const std::vector<float>& inv_freq,
                                    int position) {
    const size_t half = inv_freq.size();
    std::vector<double> out(2 * half);
    for (size_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * inv_freq[i];
      const double c = std::cos(double(angle)) * kScaling, s = std::sin(double(angle)) * kScaling;
      out[i] = x[i] * c - x[i + half] * s;
      out[i + half] = x[i + half] * c + x[i] * s;
    }
    return out;
  }

  static const std::vector<int32_t>& code_slots() {
    static const std::vector<int32_t> slots = {5, 0, 15, 8, 9};
    return slots;
  }

  // The bytes of a cache with kRows rows at code_slots().
  std::vector<uint8_t> written(DType dtype, KvFormat format) {
    const LatentKvCase c = GetParam();
    const int dim = c.kv_rank + c.rope_dim, width = c.q_size + dim;
    KvLayer kv{nullptr, nullptr, 1, kBlockSize, dim, dtype, format, c.kv_rank};
    const size_t bytes = size_t(kBlocks) * kBlockSize * size_t(kv_entry_bytes(kv));
    kv.k = kv.v = marked(bytes);
    latent_kv(queue(), {.counts = counts(kRows),
                        .x = to_device(random_floats(size_t(kMaxRows) * width, 1)),
                        .q_out = nullptr,
                        .positions = to_device(std::vector<int32_t>{0, 7, 1000, 40000, 3}),
                        .kv_slot = to_device(code_slots()),
                        .inv_freq = to_device(random_floats(size_t(c.rope_dim / 2), 4)),
                        .kv_norm = to_device(random_floats(size_t(c.kv_rank), 3)),
                        .q_norm = nullptr,
                        .kv = kv,
                        .max_rows = kMaxRows,
                        .q_size = c.q_size,
                        .kv_rank = c.kv_rank,
                        .rope_dim = c.rope_dim,
                        .scaling = kScaling,
                        .norm_eps = kEps,
                        .position_shift = c.shift});
    return read(static_cast<uint8_t*>(kv.k), bytes);
  }

  // entry_of(elements, layer): the bytes of an entry of codes.
  template <class EntryOf>
  void expect_codes(KvFormat format, const EntryOf& entry_of) {
    const LatentKvCase c = GetParam();
    const int dim = c.kv_rank + c.rope_dim;
    const auto floats = to_floats(written(DType::kF32, KvFormat::kPlain), DType::kF32);
    const auto got = written(c.dtype, format);
    const KvLayer kv{nullptr, nullptr, 1, kBlockSize, dim, c.dtype, format, c.kv_rank};
    const auto size = static_cast<size_t>(kv_entry_bytes(kv));
    std::vector<uint8_t> want(got.size(), 0x5a);
    for (int r = 0; r < kRows; ++r) {
      const auto slot = static_cast<size_t>(code_slots()[static_cast<size_t>(r)]);
      const float* x = &floats[slot * size_t(dim)];
      const std::vector<uint8_t> entry = entry_of(std::vector<float>(x, x + dim), kv);
      std::copy(entry.begin(), entry.end(), want.begin() + std::ptrdiff_t(slot * size));
    }
    EXPECT_EQ(got, want);
  }

  void expect_near(const std::vector<double>& want, const float* got) const {
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], std::abs(want[i]) * storage_error(GetParam().dtype) + 5e-6) << i;
    }
  }
};

TEST_P(LatentKvTest, NormsTurnsAndStores) {
  const LatentKvCase c = GetParam();
  const int dim = c.kv_rank + c.rope_dim, width = c.q_size + dim;
  const auto x = random_floats(size_t(kMaxRows) * width, 1);
  const std::vector<int32_t> positions = {0, 7, 1000, 40000, 3}, slots = {5, 0, 15, 8, 9};
  std::vector<float> inv_freq;
  for (int i = 0; i < c.rope_dim / 2; ++i) {
    inv_freq.push_back(static_cast<float>(std::pow(10000.0, -2.0 * i / c.rope_dim)));
  }
  const auto q_weight = random_floats(size_t(c.q_size), 2);
  const auto kv_weight = random_floats(size_t(c.kv_rank), 3);
  const size_t element = dtype_size(c.dtype);
  const size_t cache_bytes = size_t(kBlocks) * kBlockSize * dim * element;
  const size_t q_bytes = size_t(kMaxRows) * c.q_size * element;
  uint8_t* cache = marked(cache_bytes);
  uint8_t* q = marked(q_bytes);
  KvLayer kv{cache, cache, 1, kBlockSize, dim, c.dtype};
  kv.value_dim = c.kv_rank;
  latent_kv(queue(), {.counts = counts(kRows),
                      .x = to_device(x),
                      .q_out = c.q_norm ? q : nullptr,
                      .positions = to_device(positions),
                      .kv_slot = to_device(slots),
                      .inv_freq = c.turns ? to_device(inv_freq) : nullptr,
                      .kv_norm = to_device(kv_weight),
                      .q_norm = c.q_norm ? to_device(q_weight) : nullptr,
                      .kv = kv,
                      .max_rows = kMaxRows,
                      .q_size = c.q_size,
                      .kv_rank = c.kv_rank,
                      .rope_dim = c.rope_dim,
                      .scaling = kScaling,
                      .norm_eps = kEps,
                      .position_shift = c.shift});
  const auto q_raw = read(q, q_bytes), raw = read(cache, cache_bytes);
  const auto q_out = to_floats(q_raw, c.dtype), entries = to_floats(raw, c.dtype);
  for (int r = 0; r < kRows; ++r) {
    const float* row = &x[size_t(r) * width];
    const float* entry = &entries[size_t(slots[r]) * dim];
    if (c.q_norm) expect_near(normed(row, q_weight), &q_out[size_t(r) * c.q_size]);
    expect_near(normed(row + c.q_size, kv_weight), entry);
    const float* key = row + c.q_size + c.kv_rank;
    const int position = std::max(0, positions[r] + c.shift);
    expect_near(
        c.turns ? turned(key, inv_freq, position) : std::vector<double>(key, key + c.rope_dim),
        entry + c.kv_rank);
  }
  expect_marked(q_raw, c.q_norm ? size_t(kRows) * c.q_size * element : 0);
  for (int slot = 0; slot < kBlocks * kBlockSize; ++slot) {
    if (std::count(slots.begin(), slots.begin() + kRows, slot) > 0) continue;
    for (size_t b = 0; b < dim * element; ++b) ASSERT_EQ(raw[slot * dim * element + b], 0x5a);
  }
}

// The codes of what a cache of floats holds, and the rope key as it is.
TEST_P(LatentKvTest, Fp8EntriesAreThoseOfTheFloats) {
  expect_codes(KvFormat::kFp8, [](const std::vector<float>& x, const KvLayer& kv) {
    return latent_data(x, kv).bytes;
  });
}

TEST_P(LatentKvTest, Int8EntriesAreThoseOfTheFloats) {
  expect_codes(KvFormat::kInt8, [](const std::vector<float>& x, const KvLayer& kv) {
    std::vector<uint8_t> entry = latent_data(x, kv).bytes;
    cpu::store_latents(kv.format, x.data(), kv.value_dim, entry.data());
    return entry;
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, LatentKvTest,
                         testing::Values(LatentKvCase{24, 32, 16, DType::kF32},
                                         LatentKvCase{24, 32, 16, DType::kBF16},
                                         LatentKvCase{96, 512, 64, DType::kBF16, true, true, -1},
                                         LatentKvCase{192, 48, 2, DType::kF32, false},
                                         LatentKvCase{19, 16, 6, DType::kBF16, false, false},
                                         LatentKvCase{1536, 512, 64, DType::kF32, true, true, -3}));

}  // namespace
}  // namespace foretoken
