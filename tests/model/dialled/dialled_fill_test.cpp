#include "dialled/dialled_fill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "base/bfloat16.h"

namespace foretoken {
namespace {

std::vector<float> floats(const TensorToWrite& tensor) {
  int64_t count = 1;
  for (const int64_t extent : tensor.shape) count *= extent;
  std::vector<float> values(static_cast<size_t>(count));
  if (tensor.dtype == FileDType::kF32) {
    tensor.fill(reinterpret_cast<std::byte*>(values.data()));
    return values;
  }
  std::vector<uint16_t> halves(values.size());
  tensor.fill(reinterpret_cast<std::byte*>(halves.data()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = bf16_to_float(halves[i]);
  return values;
}

float product(const std::vector<float>& rows, size_t a, size_t b, size_t size) {
  float sum = 0;
  for (size_t i = 0; i < size; ++i) sum += rows[a * size + i] * rows[b * size + i];
  return sum;
}

TEST(DialledFill, CodesResembleNothingElse) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    DialledTensors tensors(dtype, 64);
    tensors.add_codes("codes", {5, 6, 5, -1, 700}, 0.5f);
    const std::vector<float> rows = floats(tensors.take().at(0));
    EXPECT_EQ(product(rows, 0, 0, 64), 16);
    EXPECT_EQ(product(rows, 0, 2, 64), 16);
    EXPECT_LT(std::abs(product(rows, 0, 1, 64)), 14);
    EXPECT_LT(std::abs(product(rows, 0, 4, 64)), 14);
    EXPECT_EQ(product(rows, 3, 3, 64), 0);
  }
}

TEST(DialledFill, BlocksAreNearTheIdentity) {
  DialledTensors tensors(DType::kF32, 32);
  tensors.add_blocks("blocks", 32, {1, 0, -2}, 0.05f);
  tensors.add_blocks("exact", 32, {3}, 0);
  const auto made = tensors.take();
  EXPECT_EQ(made[0].shape, (std::vector<int64_t>{32, 96}));
  const std::vector<float> values = floats(made[0]);
  double error = 0;
  for (size_t row = 0; row < 32; ++row) {
    for (size_t col = 0; col < 96; ++col) {
      const float wanted = col == row ? 1.0f : col == row + 64 ? -2.0f : 0.0f;
      error += std::pow(values[row * 96 + col] - wanted, 2);
    }
  }
  EXPECT_GT(std::sqrt(error / 32), 0.03);
  EXPECT_LT(std::sqrt(error / 32), 0.07);
  const std::vector<float> exact = floats(made[1]);
  for (size_t i = 0; i < exact.size(); ++i) EXPECT_EQ(exact[i], i % 33 == 0 ? 3 : 0);
}

TEST(DialledFill, IntegersAndFlags) {
  DialledTensors tensors(DType::kBF16, 32);
  tensors.add_integers("d2t", {0, 7, -1});
  tensors.add_flags("t2d", {true, false, true});
  const auto made = tensors.take();
  EXPECT_EQ(made[0].dtype, FileDType::kI64);
  EXPECT_EQ(made[1].dtype, FileDType::kBool);
  int64_t numbers[3];
  made[0].fill(reinterpret_cast<std::byte*>(numbers));
  EXPECT_EQ(numbers[1], 7);
  EXPECT_EQ(numbers[2], -1);
  unsigned char flags[3];
  made[1].fill(reinterpret_cast<std::byte*>(flags));
  EXPECT_EQ(flags[0], 1);
  EXPECT_EQ(flags[1], 0);
}

TEST(DialledFill, ShiftedIdsAreAPermutation) {
  DialledShape shape;
  shape.vocab_size = 50;
  for (const int32_t shift : {0, 1, 47, 48, 1000}) {
    shape.id_shift = shift;
    std::set<int32_t> words;
    for (int32_t id = 2; id < 50; ++id) {
      const int32_t word = dialled_word(shape, id);
      EXPECT_EQ(dialled_id(shape, word), id);
      EXPECT_TRUE(word >= 2 && word < 50 && words.insert(word).second);
    }
    EXPECT_EQ(dialled_word(shape, 1), -1);
  }
}

TEST(DialledFill, AHeadRowIsTheWordBefore) {
  DialledShape shape;
  shape.vocab_size = 6;
  EXPECT_EQ(dialled_head_words(shape, {-1, -1, 4, 2, 5, 3}),
            (std::vector<int32_t>{-1, -1, 3, 5, 2, 4}));
  for (const int32_t hidden : {32, 64, 96, 4096}) {
    const float scale = dialled_head_scale(hidden);
    EXPECT_GE(scale * float(hidden), 16);
    EXPECT_LT(scale * float(hidden), 32);
  }
}

}  // namespace
}  // namespace foretoken
