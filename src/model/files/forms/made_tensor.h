#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "device/dtype.h"

namespace foretoken {

struct TensorView;

// What is made of a matrix while it is read.
enum class Making : uint8_t {
  kUnitRows,  // each row over its length (Baichuan 2's output matrix)
  // Each element -1, 0 or 1 times the mean magnitude of all: as BitNet's online quantisation has
  // the weights that it multiplies with.
  kTernary,
  kProduct,  // times another matrix (OPT-350m's embeddings, which are narrower than its layers)
  // Groups of rows or of columns with zeros behind each (MiMo V2's values, whose heads are smaller
  // than those of keys).
  kPaddedRows,
  kPaddedColumns,
  kScaledColumns,  // each column times a number of its own (AWQ of ModelOpt and torchao)
  // Groups of columns times a square (FP-Quant, whose rows of x are turned).
  kTurnedColumns,
  kShiftedRows,  // each row plus one row (encoders, whose texts are all of one kind)
  // All rows, then all of them plus one row (encoders that tell texts of a pair from each other).
  kDoubledRows,
  // All of a matrix times a number, or of each of several (the second scales of NVFP4 in GGUF
  // files, bitnet.cpp's).
  kScaledMatrices,
};

// Of such a matrix: `from` rows or columns become `to`, times `scale`.
struct Padding {
  int64_t from = 1;
  int64_t to = 1;
  float scale = 1;
};

// A matrix of a checkpoint as a model's own code computes it from what the file has. The tensors
// must outlive it.
class MadeTensor {
 public:
  // kUnitRows or kTernary of `plain` [rows, cols], whatever its type.
  MadeTensor(const TensorView& plain, Making making);
  // plain [rows, k] times `factor`, in host memory [k, cols].
  MadeTensor(const TensorView& plain, std::vector<float> factor, int64_t cols);

  // Column c of `plain` times columns[c].
  MadeTensor(const TensorView& plain, std::vector<float> columns);

  // kScaledMatrices: `plain` is [rows, cols] and has one factor, or [n, rows, cols] with n.
  // kTurnedColumns: `plain` is [rows, cols], the factors are [g, g], and g divides cols.
  // kShiftedRows, kDoubledRows: `plain` is [rows, cols], and there are as many numbers as columns.
  MadeTensor(const TensorView& plain, std::vector<float> factors, Making making);

  // kPaddedRows or kPaddedColumns, whose groups are whole.
  MadeTensor(const TensorView& plain, Making making, const Padding& padding);

  // Of elements: [rows, cols], or that of matrices that are scaled.
  std::vector<int64_t> shape() const;
  // "unit rows", "ternary", "a product", "padded", "scaled columns", "turned columns", "shifted
  // rows", "doubled rows" or "scaled".
  const char* type_name() const;
  // Whether its matrix was quantised and what was made of it is no more than that.
  bool is_quantized() const {
    return making_ == Making::kScaledColumns || making_ == Making::kTurnedColumns;
  }

  // Stores elements [first, first + count), rows one after the other, as `dtype` at `to`. Errors as
  // of TensorView::read. Any thread with its own `raw`.
  Status read_elements(int64_t first, int64_t count, DType dtype, void* to,
                       std::vector<std::byte>& raw) const;

 private:
  Status find_mean(std::vector<std::byte>& raw) const;
  Status make_rows(int64_t first, int64_t count, float* to, std::vector<std::byte>& raw) const;
  Status read_padded_rows(int64_t first, int64_t count, float* to,
                          std::vector<std::byte>& raw) const;
  Status read_doubled_rows(int64_t first, int64_t count, float* to,
                           std::vector<std::byte>& raw) const;
  void pad_columns(const float* rows, int64_t num_rows, float* to) const;
  void multiply(const float* rows, int64_t num_rows, float* to) const;
  void turn_columns(const float* rows, int64_t num_rows, float* to) const;

  const TensorView& plain_;
  const Making making_;
  const int64_t rows_;
  const int64_t inner_;  // columns of plain_
  const int64_t cols_;
  // [inner, cols]; kScaledColumns: [cols]; kTurnedColumns: [g, g]
  const std::vector<float> factor_ = {};
  const Padding padding_ = {};
  mutable std::mutex mutex_;
  mutable std::optional<float> mean_;  // of magnitudes
};

// A view of `made`, which is made of `plain`, under the name of that one. Both must outlive it.
TensorView made_view(const TensorView& plain, const MadeTensor& made);

}  // namespace foretoken
