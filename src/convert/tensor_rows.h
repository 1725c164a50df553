#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/files/containers/safetensors.h"

namespace foretoken {

// Reads rows of tensors as floats for conversion.
class TensorRows {
 public:
  // A tensor of one dimension is one row. `turned_head_dim`: rows of a head whose two halves are to
  // alternate (the inverse of TensorView::interleaved_rows); 0: rows stay in order.
  explicit TensorRows(const TensorView& view, int32_t turned_head_dim = 0);

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  // Rows [first, first + count) into `out`. Errors as of read_elements; InvalidArgument names the
  // tensor when an element is no number or beyond `most`. Any thread with its own scratch.
  Status read(int64_t first, int64_t count, float most, float* out,
              std::vector<std::byte>& scratch) const;

 private:
  const TensorView& view_;
  int64_t rows_ = 1;
  int64_t cols_ = 1;
  int32_t head_dim_ = 0;
};

// Calls work(first, count) for slices of [0, count), one a core at a time; the first error.
Status for_slices(int64_t count, const std::function<Status(int64_t first, int64_t count)>& work);

// Calls work(row, values) for each row, in order within a slice as for_slices makes them. Errors as
// of TensorRows::read with `most`.
Status for_rows(const TensorRows& rows, float most,
                const std::function<void(int64_t row, const float* values)>& work);

}  // namespace foretoken
