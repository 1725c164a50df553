#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/quantized_rows.h"
#include "base/result.h"
#include "device/dtype.h"
#include "model/files/forms/quantization.h"

namespace foretoken {

struct TensorView;

// What the codes of a scaled tensor are.
enum class CodeType : uint8_t {
  kE4m3,  // floats of eight bits, [.., n, k]
  kE5m2,  // the upper halves of half-precision floats, [.., n, k]
  kE2m1,  // floats of four bits, two in a byte, the lower bits first: [.., n, k / 2]
  // The same where rows share bytes, [.., n / 2, k]: byte row r holds rows 2 r and 2 r + 1 (experts
  // of ModelOpt whose inputs are rows). Found by the shapes of kE2m1's tensors.
  kE2m1OfRows,
  kInt8,  // signed integers, [.., n, k]
  // Signed integers of four bits where two rows share bytes, [n / 2, k], the even row in the lower
  // bits (ModelOpt's AWQ). Found by the shapes of kE2m1's tensors.
  kInt4OfRows,
  // -1, 0 and 1 as 0 to 2 of two bits, [n / 4, k]: byte row r holds rows r, r + n / 4, r + n / 2
  // and r + 3 n / 4, the lowest bits first (BitNet).
  kTernary,
};

// The tensors of a checkpoint that together are one matrix of such codes, or a stack of them.
struct ScaledParts {
  CodeType type = CodeType::kE4m3;
  const TensorView* codes = nullptr;
  const TensorView* scales = nullptr;  // floats, E4M3 or E8M0
  const TensorView* zeros = nullptr;   // of integers: as many as scales, I8; null: 0
  // A number for all scales, or one for each matrix of a stack. Null: 1.
  const TensorView* factor = nullptr;
  bool divides = false;    // scales are divided by the factor, else multiplied
  bool inverse = false;    // weights are codes divided by their scales
  bool in_blocks = false;  // codes are E2M1 as gpt-oss has them: [.., n, k / 32, 16]
};

// A matrix, or a stack of them, whose neighbours share scales: value = (code - zero) * s, where s
// is the scale of the code's block, times or divided by the factor and rounded to a float first
// (OCP 2023, NVFP4, compressed-tensors). A block may be a matrix, a row, a column, a group of a row
// or a rectangle. The tensors must outlive it.
class ScaledTensor {
 public:
  // Which blocks there are follows from the shapes, from the sizes that the quantization names, and
  // of codes of four bits from what they are. Unsupported and InvalidArgument name the tensor whose
  // type or shape does not fit or whose scales are not finite, integers where the quantization has
  // floats of eight bits, or a matrix of NVFP4 without the factor that its method has.
  static Result<ScaledTensor> create(const Quantization& quantization, const ScaledParts& parts);

  // Of elements: [.., n, k].
  const std::vector<int64_t>& shape() const { return shape_; }
  // "FP8", "FP8 (E5M2)", "NVFP4", "MXFP4", "INT8", "INT4" or "ternary".
  const char* type_name() const;
  // The form in which rows can stay quantised without loss; null where there is none.
  const QuantForm* form() const { return form_ ? &*form_ : nullptr; }

  // Stores elements [first, first + count), rows one after the other, as `dtype` at `to`. Errors as
  // of TensorView::read. Any thread with its own `raw`.
  Status read_elements(int64_t first, int64_t count, DType dtype, void* to,
                       std::vector<std::byte>& raw) const;
  // Lays rows [first, first + count) out in `form`, as base/quantized_rows.h says.
  Status read_quantized(int64_t first, int64_t count, std::byte* to) const;

 private:
  // The scales, and zeros, of the blocks side by side that a row crosses.
  struct BlockLine {
    int64_t index = -1;  // of all lines; -1: none yet
    std::vector<float> scales;
    std::vector<float> zeros;
  };

  static constexpr int64_t kPairedRows = 16;  // that share a scale where rows share bytes

  explicit ScaledTensor(const ScaledParts& parts) : parts_(parts) {}
  bool has_paired_rows() const;
  bool has_paired_integers() const;
  Status find_shape();
  Status find_blocks(const Quantization& quantization);
  // Columns that share a scale in every file of these codes and scales; 0: files differ.
  int64_t usual_group(const Quantization& quantization) const;
  Status check_scale_types() const;
  Status read_factors();
  Status find_form();
  Result<bool> has_half_scales() const;
  bool has_float8_scales() const;
  Status read_row_and_bytes(int64_t row, std::byte* to) const;
  Result<bool> has_half_powers() const;
  Result<bool> is_zero(int64_t first, int64_t count) const;
  int64_t num_matrices() const;
  int64_t line_of(int64_t row) const { return row / rows_ * lines_ + row % rows_ / block_rows_; }
  Status read_line(int64_t index, BlockLine* line, std::vector<std::byte>& raw) const;
  Status read_codes(int64_t first, int64_t count, std::vector<std::byte>& raw) const;
  Status read_ternary(int64_t first, int64_t count, std::vector<std::byte>& raw) const;
  Status read_paired_rows(int64_t first, int64_t count, std::vector<std::byte>& raw) const;
  Status read_floats(int64_t first, int64_t count, std::byte* to) const;
  Status misfit() const;

  ScaledParts parts_;
  std::vector<int64_t> shape_;
  int64_t rows_ = 0;  // of a matrix
  int64_t cols_ = 0;
  int64_t block_rows_ = 1;
  int64_t block_cols_ = 1;
  int64_t lines_ = 1;   // of blocks in a matrix
  int64_t across_ = 1;  // blocks of a line
  std::vector<float> factors_;
  std::optional<QuantForm> form_;
};

}  // namespace foretoken
