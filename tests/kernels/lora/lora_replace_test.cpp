#include "kernels/lora/lora_replace.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr int kWholeAdapters = 3;

// Adapters 1 and 3 have a matrix, adapter 2 has none; that of 3 has fewer rows.
class LoraReplaceTest : public RowOpTest,
                        public testing::WithParamInterface<std::tuple<int, DType>> {
 protected:
  void SetUp() override {
    RowOpTest::SetUp();
    if (IsSkipped()) return;
    std::tie(k_, dtype_) = GetParam();
    std::vector<LoraWhole> table(2 * kWholeAdapters);
    for (const int which : {0, 2}) {
      matrices_[which] = typed_data(
          random_floats(size_t(padded_) * k_, 7 + which, 1 / std::sqrt(float(k_))), dtype_);
      table[size_t(2 * which)] = {upload_typed(matrices_[which]), counts_[which]};
    }
    table_ = to_device(table);
  }

  LoraRows group(const std::vector<int32_t>& adapters) {
    std::vector<SlotParams> params(adapters.size());
    std::vector<int32_t> slots(adapters.size());
    for (size_t r = 0; r < adapters.size(); ++r) {
      slots[r] = static_cast<int32_t>(r);
      params[r].adapter = adapters[r];
    }
    const auto rows = static_cast<int32_t>(slots.size());
    LoraRows out{allocate<int32_t>(2), allocate<LoraTile>(max_lora_tiles(rows, kWholeAdapters)),
                 allocate<int32_t>(rows), allocate<int32_t>(rows)};
    group_lora(queue(),
               {counts(rows), to_device(slots), to_device(params), out, rows, kWholeAdapters});
    return out;
  }
  std::vector<float> multiply(const std::vector<int32_t>& adapters, const void* x,
                              const std::vector<float>& before) {
    LoraReplaceArgs args = args_of(adapters, n_);
    args.x = x;
    args.k = k_;
    args.y = to_device(before);
    lora_replace(queue(), args);
    return read(args.y, before.size());
  }
  LoraReplaceArgs args_of(const std::vector<int32_t>& adapters, int32_t n) {
    return {.rows = group(adapters),
            .matrices = table_,
            .x = nullptr,
            .token_ids = nullptr,
            .y = nullptr,
            .adapter_stride = 2,
            .k = 0,
            .n = n,
            .max_rows = static_cast<int32_t>(adapters.size()),
            .max_adapters = kWholeAdapters,
            .dtype = dtype_,
            .scale = 0.5f};
  }

  static constexpr int n_ = 70, padded_ = 72;
  static constexpr int counts_[kWholeAdapters] = {n_, 0, 53};
  int k_ = 0;
  DType dtype_ = DType::kF32;
  TypedData matrices_[kWholeAdapters];
  const LoraWhole* table_ = nullptr;
};

TEST_P(LoraReplaceTest, ProductsTakeThePlaceOfWhatWasThere) {
  const std::vector<int32_t> adapters = {3, 0, 1, 1, 2, 3, 0};
  const TypedData x = typed_data(random_floats(adapters.size() * k_, 1), dtype_);
  const auto before = random_floats(adapters.size() * n_, 2);
  const auto y = multiply(adapters, upload_typed(x), before);
  for (size_t r = 0; r < adapters.size(); ++r) {
    const int which = adapters[r] - 1;
    for (int c = 0; c < n_; ++c) {
      const float got = y[r * n_ + c];
      if (which < 0 || which == 1) {
        ASSERT_EQ(got, before[r * n_ + c]) << "row " << r << " has no matrix";
        continue;
      }
      if (c >= counts_[which]) {
        ASSERT_EQ(got, -std::numeric_limits<float>::infinity()) << "row " << r << " column " << c;
        continue;
      }
      double want = 0;
      for (int i = 0; i < k_; ++i) {
        want += double(matrices_[which].values[size_t(c) * k_ + i]) * x.values[r * k_ + i];
      }
      ASSERT_NEAR(got, 0.5 * want, 2e-5) << "row " << r << " column " << c;
    }
  }
}

TEST_P(LoraReplaceTest, RowsAreBitEqualAloneAndBesideOthers) {
  std::vector<int32_t> adapters(37);
  for (size_t r = 0; r < adapters.size(); ++r) adapters[r] = r < 21 ? 1 : static_cast<int>(r % 4);
  const TypedData x = typed_data(random_floats(adapters.size() * k_, 3), dtype_);
  const std::vector<float> before(adapters.size() * n_, 5);
  const auto together = multiply(adapters, upload_typed(x), before);
  const size_t row_bytes = k_ * dtype_size(dtype_);
  for (const size_t r : {0, 7, 8, 15, 16, 23, 25, 35}) {
    const std::vector<uint8_t> own(x.bytes.begin() + r * row_bytes,
                                   x.bytes.begin() + (r + 1) * row_bytes);
    const auto alone = multiply({adapters[r]}, to_device(own), std::vector<float>(n_, 5));
    ASSERT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + r * n_)) << r;
  }
}

// As tables the matrices have rows of n = k_ elements.
TEST_P(LoraReplaceTest, RowsAreLookedUpByTheirIds) {
  const std::vector<int32_t> adapters = {1, 0, 3, 2, 3, 1}, ids = {69, 3, 52, 0, 53, -1};
  LoraReplaceArgs args = args_of(adapters, k_);
  const std::vector<float> before(adapters.size() * size_t(k_), 3);
  args.token_ids = to_device(ids);
  args.k = n_;
  args.y = to_device(before);
  lora_replace(queue(), args);
  const auto y = read(args.y, before.size());
  const int want_ids[] = {69, -1, 52, -1, 0, 0};
  for (size_t r = 0; r < adapters.size(); ++r) {
    for (int c = 0; c < k_; ++c) {
      const float want =
          want_ids[r] < 0 ? 3.0f
                          : 0.5f * matrices_[adapters[r] - 1].values[size_t(want_ids[r]) * k_ + c];
      ASSERT_EQ(y[r * k_ + c], want) << "row " << r << " element " << c;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, LoraReplaceTest,
                         testing::Combine(testing::Values(64, 333, 1032),
                                          testing::Values(DType::kF32, DType::kBF16)));

}  // namespace
}  // namespace foretoken
