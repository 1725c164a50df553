#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/quantized_rows.h"
#include "model/files/containers/safetensors.h"
#include "model/weights/tensor_part.h"

namespace foretoken {

// Rows of a tensor that follow one another; random ones without a tensor. With turned_from > 0 they
// are columns of a tensor of so many, and `cols` are rows of it.
struct RowRun {
  std::string_view name;  // of the tensor
  const TensorView* tensor;
  int64_t first_row;
  int64_t num_rows;
  ColumnRange cols;
  const QuantForm* form;  // null: not quantised
  int64_t turned_from = 0;
};

// Runs that make up a matrix, one after the other. Which of them hold a row is found by bisection:
// a matrix of many experts has thousands.
class RowRuns {
 public:
  // `runs` outlive it.
  explicit RowRuns(std::span<const RowRun> runs);

  int64_t num_rows() const { return begins_.back(); }
  // The runs of rows [first, end).
  std::vector<RowRun> between(int64_t first, int64_t end) const;

 private:
  std::span<const RowRun> runs_;
  std::vector<int64_t> begins_;  // first row of each run, then their number
};

}  // namespace foretoken
