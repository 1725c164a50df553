#include "model/files/forms/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/bfloat16.h"
#include "base/half.h"

namespace foretoken {
namespace {

// A view of bytes that lie at an odd address, as they may in a file.
struct OddView {
  OddView(FileDType dtype, const void* values, size_t bytes, int64_t count) : memory(bytes + 1) {
    std::memcpy(memory.data() + 1, values, bytes);
    view.name = "w";
    view.file = "f.safetensors";
    view.dtype = dtype;
    view.dtype_name = "I32";
    view.shape = {count};
    view.data = memory.data() + 1;
    view.num_bytes = static_cast<int64_t>(bytes);
  }
  std::vector<std::byte> memory;
  TensorView view;
};

TEST(Convert, EveryPairOfTypes) {
  const float floats[] = {1.0f, -0.3f, 1e-3f, 300.0f};
  uint16_t bf16[4];
  for (int i = 0; i < 4; ++i) bf16[i] = bf16_from_float(floats[i]);
  const uint16_t half[] = {0x3c00, 0xc500, 0x0400, 0x3555};
  float out[4];
  uint16_t out16[4];

  const OddView f32(FileDType::kF32, floats, 16, 4);
  ASSERT_TRUE(convert_tensor(f32.view, DType::kF32, out).ok());
  EXPECT_EQ(std::memcmp(out, floats, 16), 0);
  ASSERT_TRUE(convert_tensor(f32.view, DType::kBF16, out16).ok());
  EXPECT_EQ(std::memcmp(out16, bf16, 8), 0);

  const OddView b16(FileDType::kBF16, bf16, 8, 4);
  ASSERT_TRUE(convert_tensor(b16.view, DType::kBF16, out16).ok());
  EXPECT_EQ(std::memcmp(out16, bf16, 8), 0);
  ASSERT_TRUE(convert_tensor(b16.view, DType::kF32, out).ok());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(out[i], bf16_to_float(bf16[i]));

  const OddView f16(FileDType::kF16, half, 8, 4);
  ASSERT_TRUE(convert_tensor(f16.view, DType::kF32, out).ok());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(out[i], half_to_float(half[i]));
  ASSERT_TRUE(convert_tensor(f16.view, DType::kBF16, out16).ok());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(out16[i], bf16_from_float(half_to_float(half[i])));
  ASSERT_TRUE(convert_tensor(f16.view, DType::kF16, out16).ok());
  EXPECT_EQ(std::memcmp(out16, half, 8), 0);
}

// Columns 0, 2, 4, 1, 3, 5 of each row of the file, wherever a read begins and ends.
TEST(Convert, ColumnsThatAlternate) {
  float values[12];
  for (int i = 0; i < 12; ++i) values[i] = static_cast<float>(i);
  OddView tensor(FileDType::kF32, values, sizeof values, 12);
  tensor.view.shape = {2, 6};
  tensor.view.interleaved_cols = 6;
  const std::vector<float> want = {0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11};
  std::vector<std::byte> raw;
  for (int64_t first = 0; first < 12; ++first) {
    for (int64_t count = 1; first + count <= 12; ++count) {
      std::vector<float> got(static_cast<size_t>(count));
      std::vector<uint16_t> rounded(got.size());
      ASSERT_TRUE(read_elements(tensor.view, first, count, DType::kF32, got.data(), raw).ok());
      ASSERT_TRUE(read_elements(tensor.view, first, count, DType::kBF16, rounded.data(), raw).ok());
      for (int64_t i = 0; i < count; ++i) {
        EXPECT_EQ(got[static_cast<size_t>(i)], want[static_cast<size_t>(first + i)]);
        EXPECT_EQ(bf16_to_float(rounded[static_cast<size_t>(i)]),
                  want[static_cast<size_t>(first + i)]);
      }
    }
  }
}

TEST(Convert, OtherTypesAreUnsupported) {
  const int32_t values[] = {1};
  const OddView integers(FileDType::kOther, values, 4, 1);
  float out = 0;
  const Status status = convert_tensor(integers.view, DType::kF32, &out);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("f.safetensors: tensor 'w' has dtype I32"), std::string::npos);
}

// Matrices of bytes are read where scales lie beside them; those of scales are named as such.
TEST(Convert, BytesWithoutScalesAreNamed) {
  const int8_t values[] = {1, -2, 3, 4};
  OddView bytes(FileDType::kOther, values, 4, 4);
  const std::string missing = "and no scales beside it";
  bytes.view.dtype_name = "I8";
  EXPECT_EQ(check_convertible(bytes.view).message().find(missing), std::string::npos);
  bytes.view.shape = {2, 2};
  EXPECT_NE(check_convertible(bytes.view).message().find(missing), std::string::npos);
  bytes.view.dtype_name = "U8";
  EXPECT_NE(check_convertible(bytes.view).message().find(missing), std::string::npos);
  bytes.view.name = "w_scale";
  EXPECT_EQ(check_convertible(bytes.view).message().find(missing), std::string::npos);
}

TEST(Convert, Integers) {
  const int64_t values[] = {7, -2, int64_t{1} << 40};
  const OddView view(FileDType::kI64, values, 24, 3);
  EXPECT_EQ(read_integers(view.view).value(), (std::vector<int64_t>{7, -2, int64_t{1} << 40}));
  float out = 0;
  EXPECT_EQ(convert_tensor(view.view, DType::kF32, &out).code(), StatusCode::kUnsupported);
  const OddView floats(FileDType::kF32, values, 8, 2);
  const int32_t narrow[] = {7, -2, 3};
  const OddView ids(FileDType::kOther, narrow, 12, 3);
  EXPECT_EQ(read_integers(ids.view).value(), (std::vector<int64_t>{7, -2, 3})) << "I32";
  EXPECT_EQ(read_integers(floats.view).status().code(), StatusCode::kUnsupported);
}

TEST(Convert, RandomHasItsDeviationAndDependsOnTheName) {
  std::vector<float> a(10000), b(10000), c(10000);
  fill_random("a", 10000, 0.5f, DType::kF32, a.data());
  fill_random("a", 10000, 0.5f, DType::kF32, b.data());
  fill_random("c", 10000, 0.5f, DType::kF32, c.data());
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  double sum = 0, square = 0;
  for (const float value : a) {
    sum += value;
    square += double(value) * value;
  }
  EXPECT_NEAR(sum / 10000, 0, 0.02);
  EXPECT_NEAR(std::sqrt(square / 10000), 0.5, 0.01);
  std::vector<uint16_t> d(10000);
  fill_random("a", 10000, 0.5f, DType::kBF16, d.data());
  EXPECT_EQ(d[17], bf16_from_float(a[17]));
}

}  // namespace
}  // namespace foretoken
