#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/dtype.h"
#include "model/files/quantization.h"

namespace foretoken {

struct TensorView;

// A matrix, or a stack of them, of floats of eight bits (E4M3 of OCP 2023, without infinities) that
// share scales by blocks of rows and columns: value = code * scale of its block. A row or the whole
// tensor may be a block. The tensors must outlive it.
class Fp8Tensor {
 public:
  // `scales`: one number, one a row, or one a block of the sizes that the quantization names.
  // Unsupported and InvalidArgument name the tensor whose type or shape does not fit.
  static Result<Fp8Tensor> create(const Quantization& quantization, const TensorView& codes,
                                  const TensorView& scales);

  // Stores elements [first, first + count), rows one after the other, as `dtype` at `to`. Errors as
  // of TensorView::read. Any thread with its own `raw`.
  Status read_elements(int64_t first, int64_t count, DType dtype, void* to,
                       std::vector<std::byte>& raw) const;

 private:
  Fp8Tensor(const TensorView& codes, const TensorView& scales) : codes_(&codes), scales_(&scales) {}

  const TensorView* codes_;
  const TensorView* scales_;
  int64_t cols_ = 0;
  int64_t block_rows_ = 0;
  int64_t block_cols_ = 0;
  int64_t scales_of_row_ = 1;  // of blocks side by side
};

// Whether a tensor holds such codes.
bool has_fp8_codes(const TensorView& tensor);

// The name of such a tensor's scales in its checkpoint: "<name>_scale_inv" or "<name>_scale".
// Empty: there are none.
std::string find_fp8_scales(const std::map<std::string, const TensorView*>& tensors,
                            const std::string& name);

// Whether a tensor is a scale of what attention reads, which model/layer/kv_scales.h loads or
// leaves;
bool is_attention_scale(const std::string& name);
// or of other activations, which are not rounded here.
bool is_fp8_activation_scale(const std::string& name);

// The number that a code stands for.
float fp8_value(uint8_t code);

}  // namespace foretoken
