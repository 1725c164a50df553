#include "model/weights/transposed_tensor.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace foretoken {
namespace {

TensorView view_of(const std::vector<float>& values, std::vector<int64_t> shape) {
  TensorView view;
  view.name = "w";
  view.file = "f";
  view.shape = std::move(shape);
  view.data = reinterpret_cast<const std::byte*>(values.data());
  view.num_bytes = static_cast<int64_t>(values.size() * sizeof(float));
  return view;
}

// Sizes around those of a tile.
TEST(TransposedTensor, HasRowsForColumns) {
  for (const auto& [rows, cols] : {std::pair{1, 5}, {3, 2}, {32, 33}, {70, 31}}) {
    std::vector<float> values(static_cast<size_t>(rows * cols));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const auto turned = TransposedTensor::create(view_of(values, {rows, cols}));
    ASSERT_TRUE(turned.ok()) << turned.status().message();
    const TensorView& view = turned.value()->view();
    ASSERT_EQ(view.shape, (std::vector<int64_t>{cols, rows}));
    std::vector<float> read(values.size());
    ASSERT_TRUE(view.read(0, view.num_bytes, read.data()).ok());
    for (int c = 0; c < cols; ++c) {
      for (int r = 0; r < rows; ++r) {
        ASSERT_EQ(read[static_cast<size_t>(c * rows + r)], static_cast<float>(r * cols + c));
      }
    }
  }
}

TEST(TransposedTensor, BlocksAreRefusedByName) {
  const std::vector<float> values(8);
  TensorView view = view_of(values, {2, 4});
  view.dtype = FileDType::kOther;
  const Status status = TransposedTensor::create(view).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("f: tensor 'w' is quantised"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
