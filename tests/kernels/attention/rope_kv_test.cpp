#include "kernels/attention/rope_kv.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/float8.h"
#include "kernels/attention/cpu/int8_entry.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

struct RopeKvCase {
  int num_heads;
  int num_kv_heads;
  int head_dim;
  int rotary_dim;  // negative: no frequencies are given, and nothing may turn
  float scaling;
  DType dtype;
  bool q_norm = false;
  bool k_norm = false;
  int shift = 0;
};

constexpr int kBlocks = 4, kRopeKvBlockSize = 4, kMaxRows = 5, kRows = 4;
constexpr float kEps = 1e-6f;

class RopeKvTest : public RowOpTest, public testing::WithParamInterface<RopeKvCase> {
 protected:
  // The head at x, with the root mean square norm if wanted.
  static std::vector<double> head_of(const float* x, bool norm, const std::vector<float>& weight) {
    const size_t dim = weight.size();
    std::vector<double> head(x, x + dim);
    if (!norm) return head;
    double squares = 0;
    for (const double value : head) squares += value * value;
    for (size_t i = 0; i < dim; ++i) head[i] *= weight[i] / std::sqrt(squares / dim + kEps);
    return head;
  }

  // Element i of head `x` after rotation at `position`.
  static double rotated(const std::vector<double>& x, int i, int position,
                        const std::vector<float>& inv_freq, float scaling) {
    const int half = static_cast<int>(inv_freq.size());
    if (i >= 2 * half) return x[i];
    const float angle = static_cast<float>(position) * inv_freq[i % half];
    const double c = std::cos(double(angle)) * scaling, s = std::sin(double(angle)) * scaling;
    return i < half ? x[i] * c - x[i + half] * s : x[i] * c + x[i - half] * s;
  }
};

TEST_P(RopeKvTest, RotatesAndStores) {
  const RopeKvCase c = GetParam();
  const int width = (c.num_heads + 2 * c.num_kv_heads) * c.head_dim;
  const auto qkv = random_floats(kMaxRows * width, 1);
  const std::vector<int32_t> positions = {0, 7, 1000, 40000, 3};
  const std::vector<int32_t> slots = {5, 0, 15, 8, 9};
  std::vector<float> inv_freq;
  for (int i = 0; i < std::max(0, c.rotary_dim) / 2; ++i) {
    inv_freq.push_back(static_cast<float>(std::pow(10000.0, -2.0 * i / c.rotary_dim)));
  }
  const size_t element = dtype_size(c.dtype);
  const size_t q_bytes = size_t(kMaxRows) * c.num_heads * c.head_dim * element;
  const size_t cache_count = size_t(kBlocks) * kRopeKvBlockSize * c.num_kv_heads * c.head_dim;
  uint8_t* q = marked(q_bytes);
  uint8_t* k = marked(cache_count * element);
  uint8_t* v = marked(cache_count * element);
  const KvLayer kv{k, v, c.num_kv_heads, kRopeKvBlockSize, c.head_dim, c.dtype};
  const auto q_weight = random_floats(c.head_dim, 2), k_weight = random_floats(c.head_dim, 3);
  const float* device_freq = c.rotary_dim < 0 ? nullptr : to_device(inv_freq);
  rope_kv(queue(), {counts(kRows), to_device(qkv), q, to_device(positions), to_device(slots),
                    device_freq, kv, kMaxRows, c.num_heads, std::abs(c.rotary_dim), c.scaling,
                    c.q_norm ? to_device(q_weight) : nullptr,
                    c.k_norm ? to_device(k_weight) : nullptr, kEps, c.shift});
  const auto q_raw = read(q, q_bytes);
  const auto q_out = to_floats(q_raw, c.dtype);
  const auto k_raw = read(k, cache_count * element);
  const auto v_raw = read(v, cache_count * element);
  const auto k_out = to_floats(k_raw, c.dtype), v_out = to_floats(v_raw, c.dtype);
  // Rotated values are differences of larger ones.
  const double rounding = c.q_norm || c.k_norm ? 5e-6 : 1e-6;
  const auto check = [&](float got, double want) {
    ASSERT_NEAR(got, want, std::abs(want) * storage_error(c.dtype) + rounding);
  };
  std::vector<bool> written(cache_count, false);
  for (int r = 0; r < kRows; ++r) {
    for (int h = 0; h < c.num_heads + 2 * c.num_kv_heads; ++h) {
      const float* x = &qkv[r * width + h * c.head_dim];
      const bool is_q = h < c.num_heads, is_k = !is_q && h < c.num_heads + c.num_kv_heads;
      const auto head = head_of(x, is_q ? c.q_norm : is_k && c.k_norm, is_q ? q_weight : k_weight);
      for (int i = 0; i < c.head_dim; ++i) {
        const double turned =
            rotated(head, i, std::max(0, positions[r] + c.shift), inv_freq, c.scaling);
        if (is_q) {
          check(q_out[(r * c.num_heads + h) * c.head_dim + i], turned);
          continue;
        }
        const int kv_head = (h - c.num_heads) % c.num_kv_heads;
        const size_t at =
            ((size_t(slots[r] / kRopeKvBlockSize) * c.num_kv_heads + kv_head) * kRopeKvBlockSize +
             slots[r] % kRopeKvBlockSize) *
                c.head_dim +
            i;
        written[at] = true;
        if (is_k) {
          check(k_out[at], turned);
        } else {
          check(v_out[at], x[i]);
        }
      }
    }
  }
  expect_marked(q_raw, size_t(kRows) * c.num_heads * c.head_dim * element);
  for (size_t i = 0; i < cache_count; ++i) {
    if (written[i]) continue;
    ASSERT_EQ(k_raw[i * element], 0x5a);
    ASSERT_EQ(v_raw[i * element], 0x5a);
  }
}

// Against plain calls: clipped inputs, weights that multiply turned heads, scaled queries.
TEST_P(RopeKvTest, ClipsNormsAfterwardsAndScalesQueries) {
  const RopeKvCase c = GetParam();
  const int width = (c.num_heads + 2 * c.num_kv_heads) * c.head_dim;
  const auto qkv = random_floats(kRows * width, 14, 2.0f);
  const std::vector<int32_t> positions = {0, 7, 1000, 40000}, slots = {5, 0, 15, 8};
  const float* inv_freq = to_device(random_floats(kMaxHeadDim / 2, 15));
  const auto weight = random_floats(c.head_dim, 16);
  const float* ones = to_device(std::vector<float>(c.head_dim, 1.0f));
  const size_t count = size_t(kBlocks) * kRopeKvBlockSize * c.num_kv_heads * c.head_dim;
  const auto run = [&](const std::vector<float>& x, const float* norm, const auto& change) {
    auto* k = reinterpret_cast<float*>(marked(count * sizeof(float)));
    auto* v = reinterpret_cast<float*>(marked(count * sizeof(float)));
    const KvLayer kv{k, v, c.num_kv_heads, kRopeKvBlockSize, c.head_dim, DType::kF32};
    float* q = allocate<float>(size_t(kRows) * c.num_heads * c.head_dim);
    RopeKvArgs args{counts(kRows),
                    to_device(x),
                    q,
                    to_device(positions),
                    to_device(slots),
                    inv_freq,
                    kv,
                    kRows,
                    c.num_heads,
                    std::max(0, c.rotary_dim),
                    c.scaling,
                    norm,
                    norm,
                    kEps,
                    c.shift};
    change(args);
    rope_kv(queue(), args);
    return std::array{read(q, size_t(kRows) * c.num_heads * c.head_dim), read(k, count),
                      read(v, count)};
  };
  std::vector<float> kept = qkv;
  for (float& value : kept) value = std::clamp(value, -0.5f, 0.5f);
  auto want = run(kept, ones, [](RopeKvArgs&) {});
  const auto scale_of = [&](int row) {
    const double position = std::max(0, positions[row] + c.shift);
    return 1 + 0.3 * std::log1p(std::floor((position + 1) / 16));
  };
  const auto got = run(qkv, to_device(weight), [](RopeKvArgs& args) {
    args.clip = 0.5f;
    args.norm_after = 1;
    args.query_scale = {0.3f, 16, 1};
  });
  for (size_t i = 0; i < got[0].size(); ++i) {
    const int row = static_cast<int>(i) / (c.num_heads * c.head_dim);
    const double value = double(want[0][i]) * weight[i % c.head_dim] * scale_of(row);
    ASSERT_NEAR(got[0][i], value, 1e-5) << i;
  }
  const std::vector<uint8_t> mark(sizeof(float), 0x5a);
  float marked_value;
  std::memcpy(&marked_value, mark.data(), sizeof(float));
  for (size_t i = 0; i < count; ++i) {
    const bool written = std::memcmp(&want[1][i], &marked_value, sizeof(float)) != 0;
    const double value = written ? double(want[1][i]) * weight[i % c.head_dim] : got[1][i];
    ASSERT_NEAR(got[1][i], value, 1e-5) << i;
  }
  ASSERT_EQ(std::memcmp(got[2].data(), want[2].data(), count * sizeof(float)), 0);
}

TEST_P(RopeKvTest, RowsAreBitEqualAloneAndInABatch) {
  const RopeKvCase c = GetParam();
  const int width = (c.num_heads + 2 * c.num_kv_heads) * c.head_dim;
  const auto qkv = random_floats(kRows * width, 4);
  const std::vector<int32_t> positions = {9, 70, 71, 5000};
  const float* inv_freq = to_device(random_floats(kMaxHeadDim / 2, 5));
  const float* weight = to_device(random_floats(c.head_dim, 6));
  const size_t element = dtype_size(c.dtype), q_bytes = c.num_heads * c.head_dim * element;
  const size_t cache_bytes =
      size_t(kBlocks) * kRopeKvBlockSize * c.num_kv_heads * c.head_dim * element;
  uint8_t* q = marked(kRows * q_bytes);
  const auto run = [&](int first, int rows) {
    const KvLayer kv{marked(cache_bytes), marked(cache_bytes), c.num_kv_heads,
                     kRopeKvBlockSize,    c.head_dim,          c.dtype};
    const std::vector<float> x(qkv.begin() + first * width, qkv.begin() + (first + rows) * width);
    const std::vector<int32_t> at(positions.begin() + first, positions.begin() + first + rows);
    // Rows fill one block each, at the same place.
    std::vector<int32_t> slots;
    for (int r = 0; r < rows; ++r) slots.push_back((first + r) * kRopeKvBlockSize);
    rope_kv(queue(), {counts(rows), to_device(x), q, to_device(at), to_device(slots), inv_freq, kv,
                      rows, c.num_heads, std::max(0, c.rotary_dim), c.scaling,
                      c.q_norm ? weight : nullptr, c.k_norm ? weight : nullptr, kEps, c.shift});
    return std::pair{read(q, rows * q_bytes), read(static_cast<uint8_t*>(kv.k), cache_bytes)};
  };
  const auto [all_q, all_k] = run(0, kRows);
  const size_t block_bytes = cache_bytes / kBlocks;
  for (int r = 0; r < kRows; ++r) {
    const auto [one_q, one_k] = run(r, 1);
    ASSERT_EQ(std::memcmp(&all_q[r * q_bytes], one_q.data(), q_bytes), 0) << r;
    ASSERT_EQ(std::memcmp(&all_k[r * block_bytes], &one_k[r * block_bytes], block_bytes), 0) << r;
  }
}

// What a cache of one format holds behind the same rows, and their queries.
struct Written {
  std::vector<uint8_t> q, k, v;
};

class RopeKvFormats : public RopeKvTest {
 protected:
  static constexpr std::array<int32_t, kRows> kSlots = {5, 0, 15, 8};

  static size_t num_entries() {
    return size_t(kBlocks) * kRopeKvBlockSize * GetParam().num_kv_heads;
  }
  // Of each KV head.
  static std::vector<float> scales(float first) {
    std::vector<float> all;
    for (int h = 0; h < GetParam().num_kv_heads; ++h) all.push_back(first * float(h + 1));
    return all;
  }

  Written write(DType dtype, KvFormat format) {
    const RopeKvCase c = GetParam();
    const int width = (c.num_heads + 2 * c.num_kv_heads) * c.head_dim;
    const float* weight = to_device(random_floats(c.head_dim, 9));
    KvLayer kv{nullptr, nullptr, c.num_kv_heads, kRopeKvBlockSize, c.head_dim, dtype, format};
    const size_t bytes = num_entries() * static_cast<size_t>(kv_entry_bytes(kv));
    kv.k = marked(bytes);
    kv.v = marked(bytes);
    kv.k_scales = to_device(scales(0.02f));
    kv.v_scales = to_device(scales(0.003f));
    const size_t q_bytes = size_t(kRows) * c.num_heads * c.head_dim * dtype_size(dtype);
    uint8_t* q = marked(q_bytes);
    rope_kv(queue(), {counts(kRows), to_device(random_floats(kRows * width, 7)), q,
                      to_device(std::vector<int32_t>{0, 7, 1000, 40000}),
                      to_device(std::vector<int32_t>(kSlots.begin(), kSlots.end())),
                      to_device(random_floats(kMaxHeadDim / 2, 8)), kv, kRows, c.num_heads,
                      std::max(0, c.rotary_dim), c.scaling, c.q_norm ? weight : nullptr,
                      c.k_norm ? weight : nullptr, kEps, c.shift});
    return {read(q, q_bytes), read(static_cast<uint8_t*>(kv.k), bytes),
            read(static_cast<uint8_t*>(kv.v), bytes)};
  }

  // A cache whose written entries are what `store(x, head, to)` makes of those of `floats`.
  template <class Store>
  static std::vector<uint8_t> stored(const std::vector<uint8_t>& floats, size_t size,
                                     const Store& store) {
    const RopeKvCase c = GetParam();
    std::vector<uint8_t> out(num_entries() * size, 0x5a);
    for (const int32_t slot : kSlots) {
      for (int head = 0; head < c.num_kv_heads; ++head) {
        const size_t at =
            size_t(slot / kRopeKvBlockSize * c.num_kv_heads + head) * kRopeKvBlockSize +
            size_t(slot % kRopeKvBlockSize);
        store(reinterpret_cast<const float*>(floats.data()) + at * c.head_dim, head,
              &out[at * size]);
      }
    }
    return out;
  }
};

// The codes of what a cache of floats holds; queries are the same.
TEST_P(RopeKvFormats, Int8EntriesAreThoseOfTheFloats) {
  const RopeKvCase c = GetParam();
  const Written floats = write(DType::kF32, KvFormat::kPlain);
  const Written codes = write(c.dtype, KvFormat::kInt8);
  const bool on_cpu = device().type() == DeviceType::kCpu;
  if (on_cpu) {
    EXPECT_EQ(codes.q, write(c.dtype, KvFormat::kPlain).q);
  }
  const auto store = [&](const float* x, int, uint8_t* to) {
    cpu::store_int8_entry(x, c.head_dim, reinterpret_cast<int8_t*>(to));
  };
  const size_t size = size_t(c.head_dim) + sizeof(float);
  // A GPU's kernel for codes rounds products elsewhere than that for floats.
  const auto expect_entries = [&](const std::vector<uint8_t>& got, std::vector<uint8_t> want) {
    ASSERT_EQ(got.size(), want.size());
    if (on_cpu) {
      EXPECT_EQ(got, want);
      return;
    }
    for (size_t at = 0; at < got.size(); at += size) {
      float scales[2];
      std::memcpy(&scales[0], &got[at + size_t(c.head_dim)], sizeof(float));
      std::memcpy(&scales[1], &want[at + size_t(c.head_dim)], sizeof(float));
      EXPECT_NEAR(scales[0], scales[1], scales[1] * 1e-5f) << at;
      for (size_t i = at; i < at + size_t(c.head_dim); ++i) {
        ASSERT_LE(std::abs(int8_t(got[i]) - int8_t(want[i])), 1) << i;
      }
    }
  };
  expect_entries(codes.k, stored(floats.k, size, store));
  expect_entries(codes.v, stored(floats.v, size, store));
}

TEST_P(RopeKvFormats, Fp8EntriesAreThoseOfTheFloats) {
  const RopeKvCase c = GetParam();
  const Written floats = write(DType::kF32, KvFormat::kPlain);
  const Written codes = write(c.dtype, KvFormat::kFp8);
  const bool on_cpu = device().type() == DeviceType::kCpu;
  if (on_cpu) {
    EXPECT_EQ(codes.q, write(c.dtype, KvFormat::kPlain).q);
  }
  const auto expect_codes = [&](const std::vector<uint8_t>& got, const std::vector<uint8_t>& from,
                                const std::vector<float>& all_scales) {
    const std::vector<uint8_t> want =
        stored(from, size_t(c.head_dim), [&](const float* x, int head, uint8_t* to) {
          for (int i = 0; i < c.head_dim; ++i) to[i] = e4m3_code(x[i] / all_scales[size_t(head)]);
        });
    ASSERT_EQ(got.size(), want.size());
    // A GPU's kernel for codes rounds products elsewhere than that for floats.
    const int most = on_cpu ? 0 : 1;
    for (size_t i = 0; i < got.size(); ++i) ASSERT_LE(std::abs(got[i] - want[i]), most) << i;
  };
  expect_codes(codes.k, floats.k, scales(0.02f));
  expect_codes(codes.v, floats.v, scales(0.003f));
}

const auto kRopeKvShapes = testing::Values(
    RopeKvCase{4, 2, 16, 16, 1.0f, DType::kF32}, RopeKvCase{3, 1, 64, 32, 1.0f, DType::kF32},
    RopeKvCase{8, 8, 128, 128, 1.25f, DType::kBF16}, RopeKvCase{2, 1, 10, 0, 1.0f, DType::kBF16},
    RopeKvCase{4, 2, 64, -64, 1.0f, DType::kF32, true, true},
    RopeKvCase{3, 1, 80, 32, 1.0f, DType::kF32, false, true},
    RopeKvCase{4, 4, 96, 72, 1.19f, DType::kBF16, true, false},
    RopeKvCase{16, 2, 128, 128, 1.0f, DType::kBF16, true, true},
    RopeKvCase{4, 1, 256, 256, 1.0f, DType::kF32, true, true},
    RopeKvCase{2, 2, 72, 0, 1.0f, DType::kF32, true, true},
    RopeKvCase{2, 1, 512, 512, 1.0f, DType::kBF16, true, true},
    RopeKvCase{4, 2, 16, 16, 1.0f, DType::kF32, false, false, -1},
    RopeKvCase{3, 1, 80, 32, 1.0f, DType::kF32, false, true, -8},
    RopeKvCase{8, 8, 128, 128, 1.25f, DType::kBF16, false, false, 3});

INSTANTIATE_TEST_SUITE_P(Shapes, RopeKvTest, kRopeKvShapes);
INSTANTIATE_TEST_SUITE_P(Shapes, RopeKvFormats, kRopeKvShapes);

}  // namespace
}  // namespace foretoken
