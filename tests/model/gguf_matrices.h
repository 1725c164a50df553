#pragma once
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"

namespace foretoken::test {

// Tensors of a checkpoint as floats, to be put in the order of another format.

struct Matrix {
  std::vector<int64_t> shape;
  std::vector<float> values;
  bool whole = false;  // integers, of 32 bits in files
};
using Matrices = std::map<std::string, Matrix>;

inline Matrices matrices_of(const std::string& folder) {
  const Checkpoint checkpoint = Checkpoint::open(folder).value();
  Matrices all;
  for (const auto& [name, view] : checkpoint.tensors()) {
    Matrix matrix{view->shape, std::vector<float>(static_cast<size_t>(view->num_elements()))};
    if (view->dtype == FileDType::kI64) {
      const std::vector<int64_t> whole = read_integers(*view).value();
      matrix.values.assign(whole.begin(), whole.end());
      matrix.whole = true;
    } else {
      std::vector<std::byte> raw;
      EXPECT_TRUE(
          read_elements(*view, 0, view->num_elements(), DType::kF32, matrix.values.data(), raw)
              .ok());
    }
    all[name] = std::move(matrix);
  }
  return all;
}

inline Matrix transposed(const Matrix& from) {
  Matrix to{{from.shape[1], from.shape[0]}, std::vector<float>(from.values.size())};
  for (int64_t r = 0; r < from.shape[0]; ++r) {
    for (int64_t c = 0; c < from.shape[1]; ++c) {
      to.values[size_t(c * from.shape[0] + r)] = from.values[size_t(r * from.shape[1] + c)];
    }
  }
  return to;
}

// Rows of a tensor, or elements of a vector, by their numbers.
inline Matrix picked_rows(const Matrix& from, const std::vector<int64_t>& rows) {
  Matrix to{from.shape, {}};
  to.shape[0] = std::ssize(rows);
  const int64_t width = std::ssize(from.values) / from.shape[0];
  for (const int64_t row : rows) {
    const auto begin = from.values.begin() + row * width;
    to.values.insert(to.values.end(), begin, begin + width);
  }
  return to;
}

}  // namespace foretoken::test
