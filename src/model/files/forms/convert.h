#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bfloat16.h"
#include "base/result.h"
#include "device/dtype.h"
#include "model/files/containers/safetensors.h"

namespace foretoken {

// Whether the file holds the elements as `dtype`.
bool has_type(const TensorView& tensor, DType dtype);

// Unsupported, naming file and tensor, when the file's type is not F32, BF16, F16 or a block type
// that is read.
Status check_convertible(const TensorView& tensor);

// InvalidArgument, naming file and tensor, when one of the numbers of a tensor of scales is NaN or
// infinite: floats, E4M3, or powers of two in bytes (E8M0). Other types have none. Errors as of
// TensorView::read.
Status check_finite(const TensorView& scales);

// The same of `count` blocks of a GGUF tensor, the first of which has number `first` in the file;
// the message has the number of the block at fault.
Status check_blocks(const TensorView& tensor, int64_t first, int64_t count,
                    const std::byte* blocks);

// Where row `row` of a matrix lies in its file.
int64_t row_in_file(const TensorView& tensor, int64_t row);

// Stores the elements [first, first + count) of the tensor as `dtype`, kF32, kBF16 or the file's
// own (has_type), at `to`, read from the file and converted; quantised ones are decoded, and
// interleaved rows put in order. `raw` is scratch. Errors as of TensorView::read and
// check_convertible. Any thread with its own scratch.
Status read_elements(const TensorView& tensor, int64_t first, int64_t count, DType dtype, void* to,
                     std::vector<std::byte>& raw);

// Stores `value` as element `at` of `dtype` (kF32 or kBF16, round to nearest even) at `to`.
inline void store_element(float value, DType dtype, void* to, int64_t at) {
  if (dtype == DType::kF32) {
    static_cast<float*>(to)[at] = value;
  } else {
    static_cast<uint16_t*>(to)[at] = bf16_from_float(value);
  }
}

// Stores `count` elements at `data`, which have the tensor's type and need no alignment, at `out`
// as `dtype` (kF32, kBF16, round to nearest even, or the file's own). Errors as of
// check_convertible.
Status convert_elements(const TensorView& tensor, const std::byte* data, int64_t count, DType dtype,
                        void* out);

// All elements of the tensor, as read_elements reads them.
Status convert_tensor(const TensorView& tensor, DType dtype, void* out);

// Fills out with `count` elements of `dtype`, uniform with the given standard deviation, as the op
// of that name does on a device; a pure function of name and count.
void fill_random(std::string_view name, int64_t count, float deviation, DType dtype, void* out);

}  // namespace foretoken
