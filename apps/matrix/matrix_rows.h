#pragma once
#include <string>
#include <vector>

#include "apps/matrix/matrix_cell.h"

namespace foretoken {

// The cells of the rows of vLLM's list (engine/compat/support_matrix.h), one for each graph mode,
// on such a device. Rows of more ranks than `max_ranks` are reduced to that many.
std::vector<MatrixCell> row_cells(const std::string& device, int max_ranks);

// Cells of a JSON file: a list of objects as cell_json makes them. NotFound or InvalidArgument with
// the place of the fault.
Result<std::vector<MatrixCell>> read_cells(const std::string& path);

// The whole product of drafters, attention backends, graph modes, KV types, quantisation, layouts
// and models on a device.
std::vector<MatrixCell> product_cells(const std::string& device);

// At most `most` of the cells, so chosen that each two values of different parts that occur
// together in any cell occur together in one of these, as far as the number goes. The same for the
// same cells.
std::vector<MatrixCell> pairwise_sample(const std::vector<MatrixCell>& cells, size_t most);

}  // namespace foretoken
