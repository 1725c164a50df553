#include "convert/tensor_rows.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <numeric>

namespace foretoken {
namespace {

TensorView float_view(const std::vector<float>& values, std::vector<int64_t> shape) {
  TensorView view;
  view.name = "w";
  view.file = "x.safetensors";
  view.shape = std::move(shape);
  view.data = reinterpret_cast<const std::byte*>(values.data());
  view.num_bytes = std::ssize(values) * 4;
  return view;
}

std::vector<float> read(const TensorView& view, int32_t head_dim) {
  const TensorRows rows(view, head_dim);
  std::vector<float> out(static_cast<size_t>(view.num_elements()));
  std::vector<std::byte> scratch;
  EXPECT_TRUE(rows.read(0, rows.rows(), 1e9F, out.data(), scratch).ok());
  return out;
}

TEST(TensorRows, HeadsAreTurned) {
  std::vector<float> values(16);
  std::iota(values.begin(), values.end(), 0.0F);
  EXPECT_EQ(read(float_view(values, {8, 2}), 0), values);
  EXPECT_EQ(read(float_view(values, {8, 2}), 4),
            (std::vector<float>{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}));
  values.resize(8);
  EXPECT_EQ(read(float_view(values, {8}), 4), (std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7}));
  EXPECT_EQ(TensorRows(float_view(values, {8})).rows(), 1);
}

TEST(TensorRows, WhatDoesNotFitIsNamed) {
  for (const float bad : {std::nanf(""), INFINITY, -70000.0F}) {
    const std::vector<float> values = {1, bad};
    const TensorView view = float_view(values, {1, 2});
    std::vector<float> out(2);
    std::vector<std::byte> scratch;
    const Status status = TensorRows(view).read(0, 1, 65504, out.data(), scratch);
    EXPECT_NE(status.message().find("tensor 'w' holds an element"), std::string::npos) << bad;
  }
}

TEST(TensorRows, SlicesCoverAllAndKeepErrors) {
  for (const int64_t count : {0, 1, 7, 1000}) {
    std::atomic<int64_t> sum = 0;
    EXPECT_TRUE(for_slices(count, [&](int64_t first, int64_t num) -> Status {
                  for (int64_t i = first; i < first + num; ++i) sum += i;
                  return {};
                }).ok());
    EXPECT_EQ(sum, count * (count - 1) / 2);
  }
  const Status failed = for_slices(100, [](int64_t first, int64_t num) -> Status {
    return first + num == 100 ? invalid_argument("last") : Status();
  });
  EXPECT_EQ(failed.message(), "last");
}

}  // namespace
}  // namespace foretoken
