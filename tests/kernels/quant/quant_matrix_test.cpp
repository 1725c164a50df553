#include "kernels/quant/cpu/quant_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/quant_data.h"
#include "support/random_data.h"

namespace foretoken::cpu {
namespace {

constexpr int64_t kK = 512;

struct Packed {
  std::unique_ptr<QuantMatrix> matrix;
  std::vector<float> floats;  // [n, k]
  int n = 0;
  int slice_cols = 0;
};

Packed pack(const std::vector<QuantizedPart>& parts, int slice_cols) {
  Packed packed{std::make_unique<QuantMatrix>(parts, kK, slice_cols), {}, 0, slice_cols};
  std::vector<std::byte> rows;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto part =
        random_quantized_rows(parts[i].form, parts[i].num_rows, kK, static_cast<uint32_t>(i));
    const auto floats = dequantized(parts[i].form, part, kK);
    rows.insert(rows.end(), part.begin(), part.end());
    packed.floats.insert(packed.floats.end(), floats.begin(), floats.end());
    packed.n += static_cast<int>(parts[i].num_rows);
  }
  const std::byte* at = rows.data();
  for (int i = 0; i < packed.matrix->num_slices(); ++i) {
    packed.matrix->pack_slice(i, at);
    at += packed.matrix->slice_row_bytes(i);
  }
  EXPECT_EQ(at, rows.data() + rows.size());
  return packed;
}

// y [num_rows, n].
std::vector<float> multiply(const QuantKernels& kernels, const Packed& packed, const float* x,
                            int num_rows) {
  CpuPool pool(1);
  const QuantRows rows = quantize_rows(pool, x, DType::kF32, num_rows, kK, kernels.max_rows);
  std::vector<float> y(static_cast<size_t>(num_rows * packed.n));
  for (int i = 0, col = 0; i < packed.matrix->num_slices(); ++i) {
    const int cols = std::min(packed.slice_cols, packed.n - col);
    for (int first = 0; first < num_rows; first += 8) {
      const int count = std::min(8, num_rows - first);
      std::vector<float> tile(static_cast<size_t>(count * cols));
      packed.matrix->multiply(kernels, i, rows, first, count, tile.data());
      for (int r = 0; r < count; ++r) {
        std::copy_n(tile.data() + r * cols, cols, y.data() + (first + r) * packed.n + col);
      }
    }
    col += cols;
  }
  return y;
}

// The products are those of the rounded x with the exact weights, in double precision.
TEST(QuantMatrix, MatchesDouble) {
  const std::vector<float> x = random_floats(5 * kK, 3);
  std::vector<QuantStep> steps(kK / 32);
  for (const QuantForm& form : quant_forms()) {
    const Packed packed = pack({{form, 45}}, 32);
    for (const QuantKernels& kernels : quant_kernels()) {
      const std::vector<float> y = multiply(kernels, packed, x.data(), 5);
      for (int r = 0; r < 5; ++r) {
        quantize_row(x.data() + r * kK, DType::kF32, kK, 1, steps.data());
        for (int c = 0; c < packed.n; ++c) {
          double want = 0, size = 0;
          for (int i = 0; i < kK; ++i) {
            const QuantStep& step = steps[static_cast<size_t>(i / 32)];
            const double term = double(step.scale) * step.codes[i % 32] *
                                packed.floats[static_cast<size_t>(c * kK + i)];
            want += term;
            size += std::abs(term);
          }
          // kSuper subtracts sums that are larger than the products themselves.
          ASSERT_NEAR(y[static_cast<size_t>(r * packed.n + c)], want, size * 4e-6)
              << kernels.name << " bits " << int(form.bits) << " scale " << int(form.scale)
              << " row " << r << " col " << c;
        }
      }
    }
  }
}

// Rows come out of slices and blocks as they went in.
TEST(QuantMatrix, ReadsItsRows) {
  std::vector<QuantizedPart> parts;
  for (const QuantForm& form : quant_forms()) parts.push_back({form, 21});
  for (const int slice_cols : {16, 48, 1000}) {
    const Packed packed = pack(parts, slice_cols);
    std::vector<float> row(kK);
    for (int r = 0; r < packed.n; ++r) {
      packed.matrix->read_row(r, row.data());
      ASSERT_EQ(std::memcmp(row.data(), packed.floats.data() + r * kK, kK * sizeof(float)), 0)
          << "row " << r << " of slices of " << slice_cols;
    }
  }
}

// Every kind of processor gives the same bits, for every number of rows.
TEST(QuantMatrix, BitsDependOnTheRowAlone) {
  constexpr int kRows = 37;
  const std::vector<float> x = random_floats(kRows * kK, 4);
  std::vector<QuantizedPart> parts;
  for (const QuantForm& form : quant_forms()) parts.push_back({form, 21});
  const Packed packed = pack(parts, 48);
  std::vector<float> alone;
  for (int r = 0; r < kRows; ++r) {
    const auto y = multiply(quant_kernels().back(), packed, x.data() + r * kK, 1);
    alone.insert(alone.end(), y.begin(), y.end());
  }
  for (const QuantKernels& kernels : quant_kernels()) {
    for (int rows = 1; rows <= kRows; ++rows) {
      const auto y = multiply(kernels, packed, x.data(), rows);
      ASSERT_EQ(std::memcmp(y.data(), alone.data(), y.size() * sizeof(float)), 0)
          << kernels.name << ", " << rows << " rows";
    }
  }
}

// Parts of a row each, whose forms alternate or not, and groups longer than the pieces of k.
TEST(QuantMatrix, ManySmallParts) {
  constexpr int kRows = 19;
  const std::vector<float> x = random_floats(kRows * kK, 5);
  const QuantForm a{8, GroupScale::kHalf, 32}, b{4, GroupScale::kHalf, int32_t{kK}};
  std::vector<QuantizedPart> same(40, {a, 1}), turns;
  for (int i = 0; i < 70; ++i) turns.push_back({i % 2 == 0 ? a : b, 1});
  for (const auto& parts : {same, turns}) {
    const Packed packed = pack(parts, 96);
    const auto y = multiply(quant_kernels().front(), packed, x.data(), kRows);
    for (int r = 0; r < kRows; ++r) {
      const auto alone = multiply(quant_kernels().back(), packed, x.data() + r * kK, 1);
      ASSERT_EQ(std::memcmp(alone.data(), y.data() + r * packed.n, alone.size() * 4), 0) << r;
      for (int c = 0; c < packed.n; ++c) {
        double want = 0;
        for (int i = 0; i < kK; ++i) want += double(x[r * kK + i]) * packed.floats[c * kK + i];
        ASSERT_NEAR(alone[static_cast<size_t>(c)], want, 3) << c;
      }
    }
  }
}

}  // namespace
}  // namespace foretoken::cpu
