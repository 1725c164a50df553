#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/quantized_rows.h"
#include "base/result.h"
#include "device/dtype.h"

namespace foretoken {

struct TensorView;

// The tensors of a matrix, or of a stack of them, as MLX quantises it ("affine").
struct AffineParts {
  const TensorView* codes = nullptr;   // U32, [.., n, k * bits / 32]
  const TensorView* scales = nullptr;  // floats, [.., n, k / group]
  const TensorView* biases = nullptr;  // of the same shape
};

// Rows whose groups of neighbours share a scale and a bias: value = scale * code + bias, the
// product rounded to a float first, as MLX computes it in floats. The codes of a row follow one
// another without gaps, the lowest bits first. The tensors must outlive it.
class AffineTensor {
 public:
  // `group`: columns that share a scale; the bits of a code follow from the shapes. Unsupported
  // and InvalidArgument name the tensor whose type or shape does not fit.
  static Result<AffineTensor> create(const AffineParts& parts, int64_t group);

  // Of elements: [.., n, k].
  const std::vector<int64_t>& shape() const { return shape_; }
  int32_t bits() const { return bits_; }
  // The form in which rows can stay quantised without loss: scales and biases are halves. Null
  // where there is none.
  const QuantForm* form() const { return form_ ? &*form_ : nullptr; }

  // Stores elements [first, first + count), rows one after the other, as `dtype` at `to`. Errors as
  // of TensorView::read. Any thread with its own `raw`.
  Status read_elements(int64_t first, int64_t count, DType dtype, void* to,
                       std::vector<std::byte>& raw) const;
  // Lays rows [first, first + count) out in `form`, as base/quantized_rows.h says.
  Status read_quantized(int64_t first, int64_t count, std::byte* to) const;

 private:
  // Rows, taken apart.
  struct Rows {
    std::vector<uint8_t> codes;  // [count, k]
    std::vector<float> scales;   // [count, k / group]
    std::vector<float> biases;
  };

  explicit AffineTensor(const AffineParts& parts) : parts_(parts) {}
  Status find_form();
  Status read_scales(int64_t first, int64_t count, Rows* rows, std::vector<std::byte>& raw) const;
  Status read_rows(int64_t first, int64_t count, Rows* rows, std::vector<std::byte>& raw) const;

  AffineParts parts_;
  std::vector<int64_t> shape_;
  int32_t bits_ = 4;
  int64_t group_ = 0;
  int64_t rows_ = 0;  // of all matrices
  int64_t cols_ = 0;
  int64_t groups_ = 0;  // of a row
  std::optional<QuantForm> form_;
};

}  // namespace foretoken
