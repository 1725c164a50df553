#include "kernels/latent/turn_tails.h"

#include <cmath>

#include "kernels/latent/cpu/coded_entry.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr int kTailRows = 4, kTailMost = 5, kTailDim = 32, kTailRope = 8;
constexpr float kTailEps = 1e-6f, kTailScaling = 0.8f;

class TurnTailsTest : public RowOpTest, public testing::WithParamInterface<DType> {
 protected:
  static std::vector<float> frequencies() {
    std::vector<float> all;
    for (int i = 0; i < kTailRope / 2; ++i) {
      all.push_back(static_cast<float>(std::pow(10000.0, -2.0 * i / kTailRope)));
    }
    return all;
  }
  static std::vector<double> turned(std::vector<double> head, int position) {
    const auto inv_freq = frequencies();
    double* tail = head.data() + kTailDim - kTailRope;
    for (size_t i = 0; i < inv_freq.size(); ++i) {
      const double angle = double(static_cast<float>(position) * inv_freq[i]);
      const double c = std::cos(angle) * double(kTailScaling),
                   s = std::sin(angle) * double(kTailScaling);
      const double a = tail[2 * i], b = tail[2 * i + 1];
      tail[2 * i] = a * c - b * s;
      tail[2 * i + 1] = b * c + a * s;
    }
    return head;
  }
  static std::vector<double> normed(const float* x, const std::vector<float>* weights) {
    double squares = 0;
    for (int i = 0; i < kTailDim; ++i) squares += double(x[i]) * double(x[i]);
    std::vector<double> head;
    for (int i = 0; i < kTailDim; ++i) {
      const double weight = weights != nullptr ? double((*weights)[size_t(i)]) : 1.0;
      head.push_back(double(x[i]) / std::sqrt(squares / kTailDim + double(kTailEps)) * weight);
    }
    return head;
  }
  void expect_head(const float* got, const std::vector<double>& want) const {
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], std::abs(want[i]) * storage_error(GetParam()) + 1e-5) << i;
    }
  }

  const std::vector<int32_t> positions_ = {0, 7, 1000, 40000, 3};
};

TEST_P(TurnTailsTest, HeadsAreNormedAndTheirLastPairsTurn) {
  constexpr int kHeads = 3, kStride = kHeads * kTailDim + 5;
  const auto x = random_floats(size_t{kTailMost} * kStride, 1);
  const size_t bytes = size_t{kTailMost} * kHeads * kTailDim * dtype_size(GetParam());
  uint8_t* out = marked(bytes);
  turn_tails(queue(), {.counts = counts(kTailRows),
                       .x = to_device(x),
                       .out = out,
                       .positions = to_device(positions_),
                       .entry_slot = nullptr,
                       .inv_freq = to_device(frequencies()),
                       .norm = nullptr,
                       .x_stride = kStride,
                       .max_rows = kTailMost,
                       .num_heads = kHeads,
                       .head_dim = kTailDim,
                       .rope_dim = kTailRope,
                       .scaling = kTailScaling,
                       .norm_eps = kTailEps,
                       .dtype = GetParam(),
                       .position_shift = 2});
  const auto raw = read(out, bytes);
  const auto got = to_floats(raw, GetParam());
  for (int r = 0; r < kTailRows; ++r) {
    for (int h = 0; h < kHeads; ++h) {
      const float* head = &x[size_t(r) * kStride + size_t(h) * kTailDim];
      expect_head(&got[(size_t(r) * kHeads + size_t(h)) * kTailDim],
                  turned(normed(head, nullptr), positions_[size_t(r)] + 2));
    }
  }
  expect_marked(raw, size_t{kTailRows} * kHeads * kTailDim * dtype_size(GetParam()));
}

TEST_P(TurnTailsTest, OneHeadGoesToTheEntryOfItsSlot) {
  const auto x = random_floats(size_t{kTailMost} * kTailDim, 2), norm = random_floats(kTailDim, 3);
  const std::vector<int32_t> slots = {5, 0, 7, 2, 6};
  const size_t bytes = size_t{8} * kTailDim * dtype_size(GetParam());
  uint8_t* entries = marked(bytes);
  turn_tails(queue(), {.counts = counts(kTailRows),
                       .x = to_device(x),
                       .out = entries,
                       .positions = to_device(positions_),
                       .entry_slot = to_device(slots),
                       .inv_freq = to_device(frequencies()),
                       .norm = to_device(norm),
                       .x_stride = kTailDim,
                       .max_rows = kTailMost,
                       .num_heads = 1,
                       .head_dim = kTailDim,
                       .rope_dim = kTailRope,
                       .scaling = kTailScaling,
                       .norm_eps = kTailEps,
                       .dtype = GetParam()});
  const auto raw = read(entries, bytes);
  const auto got = to_floats(raw, GetParam());
  for (size_t r = 0; r < kTailRows; ++r) {
    expect_head(&got[size_t(slots[r]) * kTailDim],
                turned(normed(&x[r * kTailDim], &norm), positions_[r]));
  }
  const size_t each = kTailDim * dtype_size(GetParam());
  for (const size_t slot : {1, 3, 4, 6}) {
    for (size_t b = 0; b < each; ++b) ASSERT_EQ(raw[slot * each + b], 0x5a) << slot;
  }
}

// Where ranks share positions one keeps the entries of its slots alone; heads may turn back.
TEST_P(TurnTailsTest, ARankKeepsItsOwnAndHeadsTurnBack) {
  const auto x = random_floats(size_t{kTailMost} * kTailDim, 2);
  const std::vector<int32_t> slots = {5, 0, 7, 2, 6};
  const size_t bytes = size_t{4} * kTailDim * dtype_size(GetParam());
  uint8_t* entries = marked(bytes);
  turn_tails(queue(), {.counts = counts(kTailRows),
                       .x = to_device(x),
                       .out = entries,
                       .positions = to_device(positions_),
                       .entry_slot = to_device(slots),
                       .inv_freq = to_device(frequencies()),
                       .norm = nullptr,
                       .x_stride = kTailDim,
                       .max_rows = kTailMost,
                       .num_heads = 1,
                       .head_dim = kTailDim,
                       .rope_dim = kTailRope,
                       .scaling = kTailScaling,
                       .norm_eps = 0,
                       .dtype = GetParam(),
                       .context_size = 2,
                       .context_rank = 1,
                       .back = true});
  const auto raw = read(entries, bytes);
  const auto got = to_floats(raw, GetParam());
  for (const size_t r : {0, 2}) {
    const std::vector<double> head(x.begin() + static_cast<ptrdiff_t>(r * kTailDim),
                                   x.begin() + static_cast<ptrdiff_t>((r + 1) * kTailDim));
    expect_head(&got[size_t(slots[r] / 2) * kTailDim], turned(head, -positions_[r]));
  }
  const size_t each = kTailDim * dtype_size(GetParam());
  for (const size_t slot : {0, 1}) {
    for (size_t b = 0; b < each; ++b) ASSERT_EQ(raw[slot * each + b], 0x5a) << slot;
  }
}

TEST_P(TurnTailsTest, EntriesOfCodesAreThoseOfTheirElements) {
  const auto x = random_floats(size_t{kTailMost} * kTailDim, 2), norm = random_floats(kTailDim, 3);
  const std::vector<int32_t> slots = {5, 0, 7, 2, 6};
  const EntryForm form{KvFormat::kFp8, GetParam(), kTailDim, kTailRope};
  const size_t each = static_cast<size_t>(form.bytes());
  uint8_t* entries = marked(8 * each);
  turn_tails(queue(), {.counts = counts(kTailRows),
                       .x = to_device(x),
                       .out = entries,
                       .positions = to_device(positions_),
                       .entry_slot = to_device(slots),
                       .inv_freq = to_device(frequencies()),
                       .norm = to_device(norm),
                       .x_stride = kTailDim,
                       .max_rows = kTailMost,
                       .num_heads = 1,
                       .head_dim = kTailDim,
                       .rope_dim = kTailRope,
                       .scaling = kTailScaling,
                       .norm_eps = kTailEps,
                       .dtype = GetParam(),
                       .format = KvFormat::kFp8});
  const auto raw = read(entries, 8 * each);
  for (size_t r = 0; r < kTailRows; ++r) {
    const auto* entry = reinterpret_cast<const std::byte*>(raw.data()) + size_t(slots[r]) * each;
    float got[kTailDim];
    (GetParam() == DType::kF32 ? cpu::widen_coded_entry<float>
                               : cpu::widen_coded_entry<uint16_t>)(form, entry, got);
    const auto want = turned(normed(&x[r * kTailDim], &norm), positions_[r]);
    for (size_t i = 0; i < kTailDim; ++i) {
      const bool is_code = i < size_t(form.coded());
      const double step = is_code ? std::abs(want[i]) / 16 + 0x1p-10
                                  : std::abs(want[i]) * storage_error(GetParam());
      ASSERT_NEAR(got[i], want[i], step + 1e-5) << r << " " << i;
    }
  }
  for (const size_t slot : {1, 3, 4, 6}) {
    for (size_t b = 0; b < each; ++b) ASSERT_EQ(raw[slot * each + b], 0x5a) << slot;
  }
}

INSTANTIATE_TEST_SUITE_P(All, TurnTailsTest, testing::Values(DType::kF32, DType::kBF16));

}  // namespace
}  // namespace foretoken
