#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/quantized_rows.h"
#include "base/result.h"
#include "device/dtype.h"
#include "model/files/forms/quantization.h"

namespace foretoken {

struct TensorView;

// The tensors of a checkpoint that together are one quantised matrix.
struct PackedParts {
  const TensorView* codes = nullptr;
  const TensorView* scales = nullptr;
  const TensorView* zeros = nullptr;   // null: codes are symmetric around 2^(bits - 1)
  const TensorView* groups = nullptr;  // g_idx: the group of each column; null: they follow
  const TensorView* shape = nullptr;   // compressed-tensors: two integers, [n, k]
};

// Rows of such a matrix, taken apart: value = scale of its group * (code - zero of its group).
struct PackedRows {
  std::vector<uint8_t> codes;  // [count, cols]
  std::vector<float> scales;   // [count, num_groups]
  std::vector<int32_t> zeros;  // [count, num_groups]
};

// A matrix whose codes, scales and zeros are tensors of their own, which must outlive it.
class PackedTensor {
 public:
  // Checks types, shapes and the groups of columns. InvalidArgument and Unsupported name the tensor
  // and the remedy, also where a scale is not finite.
  static Result<PackedTensor> create(const Quantization& quantization, const PackedParts& parts);

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t num_groups() const { return num_groups_; }
  const Quantization& quantization() const { return quantization_; }
  // The form in which rows can stay quantised: groups of whole runs, scales that are halves
  // without loss, zeros of a byte. None where something does not fit.
  const QuantForm* form() const { return form_ ? &*form_ : nullptr; }
  // The group of each column.
  std::span<const int32_t> group_of() const { return group_of_; }

  // Errors as of TensorView::read. Any thread with its own `out`.
  Status read_rows(int64_t first, int64_t count, PackedRows* out) const;
  // Lays the rows out in `form`, as base/quantized_rows.h says.
  Status read_quantized(int64_t first, int64_t count, std::byte* to) const;
  // Stores elements [first, first + count), rows one after the other, as `dtype` at `to`.
  Status read_elements(int64_t first, int64_t count, DType dtype, void* to) const;

 private:
  PackedTensor(const Quantization& quantization, const PackedParts& parts)
      : quantization_(quantization), parts_(parts) {}
  Status find_sizes();
  Status check_shapes();
  Status read_groups();
  Status find_form();
  Status read_codes(int64_t first, int64_t count, uint8_t* codes) const;
  Status read_gptq_codes(int64_t first, int64_t count, uint8_t* codes) const;
  Status read_awq_codes(int64_t first, int64_t count, uint8_t* codes) const;
  Status read_scales(int64_t first, int64_t count, float* scales) const;
  Status read_zeros(int64_t first, int64_t count, int32_t* zeros) const;
  Status read_gptq_zeros(int64_t first, int64_t count, int32_t* zeros) const;

  Quantization quantization_;
  PackedParts parts_;
  int64_t rows_ = 0;
  int64_t cols_ = 0;
  int64_t num_groups_ = 0;
  bool groups_follow_ = true;  // each is a run of cols / num_groups columns, in order
  std::optional<QuantForm> form_;
  std::vector<int32_t> group_of_;
};

}  // namespace foretoken
