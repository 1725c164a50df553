#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/quantized_rows.h"
#include "base/result.h"
#include "device/dtype.h"

namespace foretoken {

struct TensorView;

// 0 for none, and NaN is passed over.
float largest_magnitude(const float* values, int64_t count);

// The scale by which a channel whose largest magnitude is `largest` is rounded to E4M3: the
// smallest power of two that brings it into the range of the codes, so that code * scale has few
// bits and is the same number in bfloat16, in float and where codes are multiplied as they are. 1
// for zeros and for what is no number.
float fp8_scale(float largest);

// `value` rounded to the nearest code times `scale`, ties to even.
float round_to_fp8(float value, float scale);

// Which elements of a matrix share a scale: those that make one output.
enum class Fp8Channels : uint8_t {
  kRows,
  kColumns,  // of each matrix of a stack, where files have matrices as [inputs, outputs]
};

// A tensor of plain weights, a matrix or a stack of them, whose elements are rounded to E4M3 with a
// scale for each channel while they are read. Scales are those of whole channels, whatever part of
// them is read. The tensor must outlive it.
class RoundedTensor {
 public:
  // Reads the tensor once where channels are columns. Errors as of read_elements.
  static Result<RoundedTensor> create(const TensorView& plain, Fp8Channels channels);

  // Stores elements [first, first + count), rows one after the other, as `dtype` at `to`. Errors as
  // of TensorView::read. Any thread with its own `raw`.
  Status read_elements(int64_t first, int64_t count, DType dtype, void* to,
                       std::vector<std::byte>& raw) const;
  static constexpr QuantForm kRows{8, GroupScale::kFloatOfRow, 1, CodeTable::kE4m3};
  // The form in which rows can stay quantised; null where channels are columns.
  const QuantForm* form() const;
  // Lays rows [first, first + count) out in it, as base/quantized_rows.h says.
  Status read_quantized(int64_t first, int64_t count, std::byte* to,
                        std::vector<std::byte>& raw) const;
  // The scales of rows [first, first + count), and their codes [count, k]. Channels are rows.
  Status read_codes(int64_t first, int64_t count, uint8_t* codes, float* scales,
                    std::vector<std::byte>& raw) const;

 private:
  explicit RoundedTensor(const TensorView& plain) : plain_(&plain) {}
  Status find_column_scales();

  const TensorView* plain_;
  int64_t rows_ = 0;  // of a matrix
  int64_t cols_ = 0;
  std::vector<float> column_scales_;  // [matrices, cols]; empty: channels are rows
};

}  // namespace foretoken
