#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/dtype.h"
#include "model/files/containers/safetensors.h"

namespace foretoken {

// The tensors of a matrix whose groups have a float as zero.
struct FloatZeroParts {
  std::string name;                // where the matrix is plain: "X.weight"
  std::vector<std::string> names;  // of all its tensors
  const TensorView* codes = nullptr;
  const TensorView* scales = nullptr;
  const TensorView* zeros = nullptr;
  // HQQ, whose settings are tensors of one element or of a text's bytes: [n, k], bits of a code,
  // which of the two dimensions of its groups a scale runs along, how codes lie in bytes, and what
  // it computes in. Null: of torchao.
  const TensorView* shape = nullptr;
  const TensorView* bits = nullptr;
  const TensorView* axis = nullptr;
  const TensorView* packing = nullptr;
  const TensorView* compute_type = nullptr;
  const TensorView* column_scales =
      nullptr;  // of torchao's AWQ: what each column is multiplied with
};

// Those of a checkpoint: HQQ's X.W_q with X.scale and X.zero, and torchao's Int4Tensor in
// safetensors files, X._weight_qdata with X._weight_scale and X._weight_zero_point of floats.
// Unsupported where HQQ quantised its scales too; InvalidArgument when a matrix lacks a part.
Result<std::vector<FloatZeroParts>> find_float_zeros(
    const std::map<std::string, const TensorView*>& tensors);

// Such a matrix. HQQ's elements, all of them one after the other in groups of as many as a line of
// its codes has, are (code - zero) * scale, and both steps are rounded to the type that it computes
// in, as its own dequantising rounds them. torchao's are code * scale + zero with codes of -8 to 7
// and scales [groups, n]. The tensors must outlive it.
class FloatZeroTensor {
 public:
  // InvalidArgument and Unsupported name the tensor that does not fit and the remedy.
  static Result<FloatZeroTensor> create(const FloatZeroParts& parts);

  const std::vector<int64_t>& shape() const { return shape_; }
  int32_t bits() const { return bits_; }
  // Stores elements [first, first + count), rows one after the other, as `dtype` at `to`. Errors as
  // of TensorView::read. Any thread with its own `raw`.
  Status read_elements(int64_t first, int64_t count, DType dtype, void* to,
                       std::vector<std::byte>& raw) const;

 private:
  explicit FloatZeroTensor(const FloatZeroParts& parts) : parts_(parts) {}
  bool is_hqq() const { return parts_.shape != nullptr; }
  Status read_hqq();
  Status read_torchao();
  Status read_run(int64_t first, int64_t count, DType dtype, void* to, int64_t at,
                  std::vector<std::byte>& raw) const;
  Status read_line(int64_t first, int64_t count, DType dtype, void* to, int64_t at,
                   std::vector<std::byte>& raw) const;
  float rounded(float value) const;

  FloatZeroParts parts_;
  std::vector<int64_t> shape_;
  int32_t bits_ = 4;
  // HQQ: codes lie in `lines_` rows of `group_` columns, each with a code of several parts of the
  // matrix, the first in the highest bits.
  int64_t lines_ = 0;
  int64_t group_ = 0;  // torchao: columns that share a scale
  bool by_rows_ = true;
  FileDType compute_ = FileDType::kF16;
  std::vector<float> scales_, zeros_;  // torchao: [n, groups]
};

}  // namespace foretoken
