#include "convert/gptq_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/half.h"
#include "model/files/forms/packed_tensor.h"

namespace foretoken {
namespace {

constexpr int64_t kRows = 16, kCols = 64;

TensorView view_of(const void* data, const char* dtype, std::vector<int64_t> shape, int64_t size) {
  TensorView view;
  view.name = "m";
  view.dtype_name = dtype;
  view.dtype = std::string(dtype) == "F32"   ? FileDType::kF32
               : std::string(dtype) == "F16" ? FileDType::kF16
                                             : FileDType::kOther;
  view.shape = std::move(shape);
  view.data = static_cast<const std::byte*>(data);
  view.num_bytes = view.num_elements() * size;
  return view;
}

// What is written is read by the reader of checkpoints, half a step from the weights at most.
TEST(GptqMatrix, ComesBackRounded) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.05F);
  std::vector<float> weights(kRows * kCols);
  for (float& weight : weights) weight = normal(random);
  std::fill_n(weights.begin(), 32, 0.0F);
  const TensorView view = view_of(weights.data(), "F32", {kRows, kCols}, 4);
  for (const int bits : {4, 8}) {
    const GptqForm form{bits, 32};
    const int64_t pack = form.per_word();
    const auto matrix = quantize_gptq(TensorRows(view), form);
    ASSERT_TRUE(matrix.ok());
    const GptqMatrix& m = matrix.value();
    const TensorView codes = view_of(m.codes.data(), "I32", {kCols / pack, kRows}, 4);
    const TensorView zeros = view_of(m.zeros.data(), "I32", {2, kRows / pack}, 4);
    const TensorView scales = view_of(m.scales.data(), "F16", {2, kRows}, 2);
    const TensorView groups = view_of(m.groups.data(), "I32", {kCols}, 4);
    Quantization layout;
    layout.bits = bits;
    layout.group = 32;
    layout.stores_zero_less_one = true;
    const auto packed = PackedTensor::create(layout, {&codes, &scales, &zeros, &groups});
    ASSERT_TRUE(packed.ok()) << packed.status().message();
    std::vector<float> back(weights.size());
    ASSERT_TRUE(packed.value().read_elements(0, kRows * kCols, DType::kF32, back.data()).ok());
    for (int64_t i = 0; i < kRows * kCols; ++i) {
      const int64_t group = i % kCols / 32, row = i / kCols;
      const float step = half_to_float(m.scales[static_cast<size_t>(group * kRows + row)]);
      const auto at = static_cast<size_t>(i);
      // Codes reach half a step short of both ends, and scales are rounded.
      ASSERT_LE(std::abs(back[at] - weights[at]), step * 0.6F) << bits << " " << i;
    }
  }
}

}  // namespace
}  // namespace foretoken
