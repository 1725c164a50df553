#include "model/files/containers/joined_tensor.h"

#include <gtest/gtest.h>

#include <numeric>

#include "model/files/containers/safetensors.h"

namespace foretoken {
namespace {

TensorView halves(const std::vector<uint16_t>& values, const std::vector<int64_t>& shape) {
  TensorView view;
  view.name = "w";
  view.file = "part";
  view.dtype = FileDType::kBF16;
  view.dtype_name = "BF16";
  view.shape = shape;
  view.data = reinterpret_cast<const std::byte*>(values.data());
  view.num_bytes = static_cast<int64_t>(values.size() * sizeof(uint16_t));
  return view;
}

std::vector<uint16_t> counted_from(uint16_t first, size_t count) {
  std::vector<uint16_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// All bytes at once, and in pieces that end inside of rows.
std::vector<uint16_t> read_all(const JoinedTensor& joined, int64_t piece) {
  const TensorView view = joined.view("joined");
  std::vector<uint16_t> out(static_cast<size_t>(view.num_bytes / 2));
  for (int64_t at = 0; at < view.num_bytes; at += piece) {
    const int64_t count = std::min(piece, view.num_bytes - at);
    EXPECT_TRUE(view.read(at, count, reinterpret_cast<std::byte*>(out.data()) + at).ok());
  }
  return out;
}

TEST(JoinedTensor, RowsFollowOneAnother) {
  const auto left = counted_from(0, 6), right = counted_from(6, 3);
  const TensorView a = halves(left, {2, 3}), b = halves(right, {1, 3});
  const auto joined = JoinedTensor::create({&a, &b}, JoinedTensor::Axis::kRows).value();
  EXPECT_EQ(joined->view("x").shape, (std::vector<int64_t>{3, 3}));
  for (const int64_t piece : {18, 5, 1}) EXPECT_EQ(read_all(*joined, piece), counted_from(0, 9));
}

TEST(JoinedTensor, ColumnsStandSideBySide) {
  const auto left = counted_from(0, 6), right = counted_from(10, 4);
  const TensorView a = halves(left, {2, 3}), b = halves(right, {2, 2});
  const auto joined = JoinedTensor::create({&a, &b}, JoinedTensor::Axis::kColumns).value();
  EXPECT_EQ(joined->view("x").shape, (std::vector<int64_t>{2, 5}));
  const std::vector<uint16_t> want = {0, 1, 2, 10, 11, 3, 4, 5, 12, 13};
  for (const int64_t piece : {20, 7, 1}) EXPECT_EQ(read_all(*joined, piece), want);
}

TEST(JoinedTensor, PartsThatDoNotFitAreNamed) {
  const auto values = counted_from(0, 6);
  const TensorView a = halves(values, {2, 3}), b = halves(values, {3, 2});
  for (const auto axis : {JoinedTensor::Axis::kRows, JoinedTensor::Axis::kColumns}) {
    const Status status = JoinedTensor::create({&a, &b}, axis).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("[3, 2], cannot be joined with that of part, BF16 [2, 3]"),
              std::string::npos)
        << status.message();
  }
  const TensorView line = halves(values, {6});
  EXPECT_FALSE(JoinedTensor::create({&line}, JoinedTensor::Axis::kRows).ok());
}

}  // namespace
}  // namespace foretoken
