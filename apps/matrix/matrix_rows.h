#pragma once
#include <string>
#include <vector>

#include "apps/matrix/matrix_cell.h"

namespace foretoken {

// Where rows are run.
struct MatrixPlace {
  std::string device = kReferenceDevice;
  int max_ranks = 8;  // rows of more have so many, or the power of two below
};

// The cells of a list in YAML or JSON, one for each graph mode, as
// engine/support/support_rows.yaml has them and as cell_json makes them. A row whose attention is
// not on its device gets what that device chooses. `what` (a file) begins each sentence of a fault.
Result<std::vector<MatrixCell>> read_cells(const std::string& text, const std::string& what,
                                           const MatrixPlace& place);

// The cells of the rows of vLLM's list and of our own behind it.
std::vector<MatrixCell> row_cells(const MatrixPlace& place);

// The whole product of drafters, attention backends, graph modes, KV types, quantisation, layouts
// and models on a device.
std::vector<MatrixCell> product_cells(const std::string& device);

// At most `most` of the cells, so chosen that each two values of different parts that occur
// together in any cell occur together in one of these, as far as the number goes. The same for the
// same cells.
std::vector<MatrixCell> pairwise_sample(const std::vector<MatrixCell>& cells, size_t most);

// Those of the cells whose name (cell_id) has one of `parts` between its slashes, as "row8",
// "eagle" or "TP2-DP2"; all where there are no parts. InvalidArgument for a part that no cell has.
Result<std::vector<MatrixCell>> cells_named(const std::vector<MatrixCell>& cells,
                                            const std::vector<std::string>& parts);

// Part `part` (from 1 on) of `parts` of about the same size, which are all cells together.
std::vector<MatrixCell> part_of(const std::vector<MatrixCell>& cells, int part, int parts);

}  // namespace foretoken
