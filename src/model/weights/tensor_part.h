#pragma once
#include <cstdint>
#include <string>

#include "base/column_range.h"

namespace foretoken {

// Heads whose pairs of rows that turn together lie side by side in the file, while they are wanted
// half of the turning rows apart. Before and behind the turning rows may be some that stay.
struct PairedHeads {
  int32_t rows = 0;     // of a head
  int32_t turning = 0;  // even; 0: the rows are as they are wanted
  int32_t first = 0;    // the first one that turns
  int32_t last = 0;     // so many that end a head in the file are wanted in front of its others

  bool are_as_wanted() const { return turning == 0 && last == 0; }
  // Which row of the file is wanted at `row`.
  int64_t source_of(int64_t row) const {
    if (last == 0) return unpaired(row);
    const int64_t at = row % rows;
    return row - at + (unpaired(at) + rows - last) % rows;
  }

 private:
  int64_t unpaired(int64_t row) const {
    if (turning == 0) return row;
    const int64_t at = row % rows - first, half = turning / 2;
    if (at < 0 || at >= turning) return row;
    return row - at + (at < half ? 2 * at : 2 * (at - half) + 1);
  }
};

// Heads of `from` rows in the file, or columns, that are wanted with `to`: zeros stand behind them.
struct PaddedHeads {
  int32_t from = 0;
  int32_t to = 0;  // 0: the heads are as they are wanted
  bool of_columns = false;
  float scale = 1;  // of what the file has

  // Rows, or columns, that are only multiplied; by 1: they are as they are wanted.
  static PaddedHeads scaled(float scale, bool of_columns = false) {
    return scale == 1 ? PaddedHeads{} : PaddedHeads{1, 1, of_columns, scale};
  }

  // Rows of the file among `rows` that are wanted.
  int64_t of_file(int64_t rows) const { return to == 0 ? rows : rows / to * from; }
  // Which row of the file is wanted at `row`; -1: a zero.
  int64_t source_of(int64_t row) const {
    if (to == 0) return row;
    return row % to < from ? row / to * from + row % to : -1;
  }
};

// Heads of values in a file that take turns among those of keys, where a Hugging Face folder has
// those of a key side by side.
struct TurningHeads {
  int64_t first = 0;   // row, or column, of the first
  int32_t rows = 0;    // of a head
  int32_t keys = 0;    // heads of keys; 0: the file has the folder's order
  int32_t of_key = 0;  // heads of values
  bool of_columns = false;

  // Which row of the folder's tensor the file has at `row`.
  int64_t of_folder(int64_t row) const {
    if (keys == 0 || row < first) return row;
    const int64_t head = (row - first) / rows, in_head = (row - first) % rows;
    return first + (head % keys * of_key + head / keys) * rows + in_head;
  }
};

// Columns [first, first + count) of a tensor of `total` columns that are wanted as rows.
struct Transposed {
  int64_t total = 0;  // 0: rows are rows
  int64_t first = 0;
  int64_t count = 0;
};

// A tensor of the checkpoint by name, the rows it must have, and those of them that are wanted.
struct TensorPart {
  std::string name;
  int64_t rows;
  int64_t first_row = 0;
  int64_t num_rows = -1;  // -1: all that follow
  PairedHeads paired = {};
  // Of a vector that the file has as rows of so many elements, of a matrix or (`stacked`) of
  // several; 0: it has not.
  int64_t row_size = 0;

  // Where columns are wanted as rows: the rows named above are the columns of what is made, a
  // matrix [transposed.count, wanted_of_file()].
  Transposed transposed = {};
  bool widened = false;  // not kept quantised
  // Where the loader rounds matrices (WeightLoader::round_layers): this one it does not, and of
  // this one columns of the file make an output.
  bool is_exact = false;
  bool columns_are_outputs = false;
  // Matrices that the file has as one tensor of three dimensions, `rows` being those of all; 0: the
  // tensor is a matrix.
  int64_t stacked = 0;
  // Rows of so many (columns, where they are wanted as rows or the tensor is of vectors) take turns
  // between two halves in the file, but are wanted half behind half; 0: they lie as they are
  // wanted.
  int64_t alternating = 0;
  bool unit_rows = false;  // each row is divided by its length
  PaddedHeads padded = {};
  TurningHeads turning = {};  // by which adapters, which are a folder's, find its rows

  int64_t wanted() const {
    if (transposed.total > 0) return transposed.count;
    return wanted_of_file();
  }
  // Rows of the file that are wanted, as rows or as columns.
  int64_t wanted_of_file() const { return num_rows < 0 ? rows - first_row : num_rows; }
  // The same matrix of `cols` columns where the file has its rows as columns.
  TensorPart of_columns(int64_t cols) const {
    TensorPart part = *this;
    part.transposed = {rows, first_row, wanted()};
    part.rows = cols;
    part.first_row = 0;
    part.num_rows = -1;
    part.columns_are_outputs = true;
    return part;
  }
};

}  // namespace foretoken
