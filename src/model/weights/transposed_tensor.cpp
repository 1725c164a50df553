#include "model/weights/transposed_tensor.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace foretoken {
namespace {

// Rows and columns of a tile whose lines stay in the first cache.
constexpr size_t kTile = 32;

void turn_elements(const std::byte* from, size_t rows, size_t cols, size_t size, std::byte* to) {
  for (size_t row = 0; row < rows; row += kTile) {
    for (size_t col = 0; col < cols; col += kTile) {
      for (size_t r = row; r < std::min(rows, row + kTile); ++r) {
        for (size_t c = col; c < std::min(cols, col + kTile); ++c) {
          std::memcpy(to + (c * rows + r) * size, from + (r * cols + c) * size, size);
        }
      }
    }
  }
}

}  // namespace

Result<std::unique_ptr<TransposedTensor>> TransposedTensor::create(const TensorView& tensor) {
  FT_CHECK(tensor.shape.size() == 2);
  const int64_t element = tensor.element_bytes();
  if (tensor.dtype == FileDType::kOther || element == 0 || tensor.interleaved_rows != 0) {
    return unsupported(tensor.file + ": tensor '" + tensor.name +
                       "' is quantised, and matrices of this architecture, whose rows are columns "
                       "in the file, are read as floats alone; use weights that are not quantised");
  }
  std::vector<std::byte> read(static_cast<size_t>(tensor.num_bytes));
  FT_RETURN_IF_ERROR(tensor.read(0, tensor.num_bytes, read.data()));
  std::unique_ptr<TransposedTensor> turned(new TransposedTensor);
  turned->elements_.resize(read.size());
  turn_elements(read.data(), static_cast<size_t>(tensor.shape[0]),
                static_cast<size_t>(tensor.shape[1]), static_cast<size_t>(element),
                turned->elements_.data());
  turned->view_ = tensor;
  std::swap(turned->view_.shape[0], turned->view_.shape[1]);
  turned->view_.data = turned->elements_.data();
  turned->view_.descriptor = -1;
  turned->view_.file_offset = 0;
  return turned;
}

}  // namespace foretoken
