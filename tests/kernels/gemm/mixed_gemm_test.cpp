#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/pack_rows.h"
#include "support/quant_data.h"
#include "support/row_ops.h"

namespace foretoken {
namespace {

constexpr QuantForm kQ4K{4, GroupScale::kSuper, 32}, kQ6K{6, GroupScale::kSuperSigned, 16};
constexpr QuantForm kQ2K{2, GroupScale::kSuper, 16}, kQ3K{3, GroupScale::kSuperSigned, 16};
constexpr QuantForm kQ80{8, GroupScale::kHalf, 32}, kQ40{4, GroupScale::kHalf, 32};

// A weight whose parts have different forms, as q, k and v of a GGUF file.
class MixedGemm : public RowOpTest {
 protected:
  static constexpr int kK = 512;

  void TearDown() override {
    if (!weights_.empty()) drain();
    for (void* weight : weights_) device().free_weight(weight);
    RowOpTest::TearDown();
  }

  bool keeps(const std::vector<QuantizedPart>& parts, int64_t unit_rows = 0) {
    for (const QuantizedPart& part : parts) {
      if (!device().keeps_quantized(part.form, kK)) return false;
    }
    return device().keeps_together(parts, unit_rows);
  }

  // Rows of each part as parts[i].form has them, packed in three pieces.
  const void* pack(const std::vector<QuantizedPart>& parts, uint32_t seed) {
    std::vector<std::vector<std::byte>> rows;
    for (const QuantizedPart& part : parts) {
      const auto all = random_quantized_rows(part.form, part.num_rows, kK, seed++);
      const int64_t bytes = quantized_row_bytes(part.form, kK);
      for (auto at = all.begin(); at != all.end(); at += bytes) rows.emplace_back(at, at + bytes);
    }
    const QuantizedWeight made =
        device().make_quantized_weight(parts, kK, DType::kBF16, WeightOrder::kPlain);
    weights_.push_back(made.handle);
    PackRowsArgs args;
    args.weight = made.handle;
    args.n = std::ssize(rows);
    args.k = kK;
    args.slice_rows = made.slice_rows;
    args.dtype = DType::kBF16;
    const int64_t third = (args.n / 3 + made.slice_rows - 1) / made.slice_rows * made.slice_rows;
    for (; args.first_row < args.n; args.first_row += args.num_rows) {
      args.num_rows = std::min(third, args.n - args.first_row);
      std::vector<std::byte> piece;
      for (int64_t i = args.first_row; i < args.first_row + args.num_rows; ++i) {
        piece.insert(piece.end(), rows[size_t(i)].begin(), rows[size_t(i)].end());
      }
      args.rows = to_device(piece);
      pack_rows(queue(), args);
      drain();
    }
    return made.handle;
  }

  // y [rows, n], which held `before`, of a weight [n, kK].
  std::vector<float> multiply(const void* x, const void* weight, const std::vector<float>& bias,
                              const std::vector<float>& before) {
    const auto n = static_cast<int32_t>(bias.size());
    const auto rows = static_cast<int32_t>(before.size() / bias.size());
    auto* y = to_device(before);
    gemm(queue(), {.counts = counts(rows),
                   .x = x,
                   .weight = weight,
                   .y = y,
                   .bias = to_device(bias),
                   .row_kind = RowKind::kToken,
                   .row_offset = 0,
                   .max_rows = rows,
                   .n = n,
                   .k = kK,
                   .dtype = DType::kBF16,
                   .out_dtype = DType::kF32,
                   .add = 1});
    return read(y, before.size());
  }

  // The columns of each part have the bits of a product with that part alone.
  void expect_columns_of_parts(const std::vector<QuantizedPart>& parts) {
    constexpr int kMaxRows = 80;
    const void* joint = pack(parts, 1);
    std::vector<const void*> alone;
    for (const QuantizedPart& part : parts)
      alone.push_back(pack({part}, 1 + uint32_t(alone.size())));
    int64_t n = 0;
    for (const QuantizedPart& part : parts) n += part.num_rows;
    const std::vector<float> bias = random_floats(size_t(n), 11);
    const void* x =
        upload_typed(typed_data(random_floats(size_t{kMaxRows} * kK, 12), DType::kBF16));
    for (const int rows : {1, 12, 40, kMaxRows}) {
      const std::vector<float> before = random_floats(size_t(rows * n), 13);
      const std::vector<float> all = multiply(x, joint, bias, before);
      int64_t first = 0;
      for (size_t i = 0; i < parts.size(); first += parts[i++].num_rows) {
        const int64_t own = parts[i].num_rows;
        std::vector<float> of_bias(bias.begin() + first, bias.begin() + first + own), of_before;
        for (int r = 0; r < rows; ++r) {
          const auto at = before.begin() + r * n + first;
          of_before.insert(of_before.end(), at, at + own);
        }
        const auto y = multiply(x, alone[i], of_bias, of_before);
        for (int r = 0; r < rows; ++r) {
          ASSERT_EQ(std::memcmp(y.data() + r * own, all.data() + r * n + first, size_t(own) * 4), 0)
              << "part " << i << ", row " << r << " of " << rows;
        }
      }
    }
  }

  std::vector<void*> weights_;
};

TEST_F(MixedGemm, PartsHaveTheBitsOfTheirOwnProducts) {
  for (const int64_t last : {64, 61}) {
    const std::vector<std::vector<QuantizedPart>> weights = {
        {{kQ4K, 128}, {kQ4K, 64}, {kQ6K, last}},
        {{kQ6K, 64}, {kQ4K, 16}, {kQ80, last}},
        {{kQ80, 8}, {kQ40, 8}, {kQ80, last}},
        {{kQ2K, 32}, {kQ3K, last}}};
    for (const auto& parts : weights) {
      if (!keeps(parts)) GTEST_SKIP() << "the device widens such a weight";
      expect_columns_of_parts(parts);
      if (HasFatalFailure()) return;
    }
  }
}

// What a device cannot keep so is widened.
TEST_F(MixedGemm, EqualPartsStayTogetherEverywhere) {
  const std::vector<QuantizedPart> equal = {{kQ4K, 20}, {kQ4K, 12}};
  EXPECT_TRUE(device().keeps_together(equal, 0));
  EXPECT_TRUE(device().keeps_together(equal, 32));
  if (device().type() == DeviceType::kCpu) return;
  EXPECT_FALSE(device().keeps_together(std::vector<QuantizedPart>{{kQ4K, 20}, {kQ6K, 12}}, 0));
  EXPECT_FALSE(device().keeps_together(std::vector<QuantizedPart>{{kQ4K, 16}, {kQ6K, 16}}, 32));
}

}  // namespace
}  // namespace foretoken
