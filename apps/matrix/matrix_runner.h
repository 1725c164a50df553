#pragma once
#include <functional>
#include <vector>

#include "apps/matrix/matrix_process.h"

namespace foretoken {

// Decides each cell, and runs those that `compat` allows in processes of their own, up to
// cells_per_process of neighbours that differ in their drafters in one. Cells whose results, of the
// same size and prompts, stand in the file already are not run again, so that a run that was ended
// goes on where it was.
// `progress` gets each result. Aborted when cancelled; InvalidArgument for a file that is not of
// this kind.
Result<std::vector<CellResult>> run_cells(const std::vector<MatrixCell>& cells,
                                          const MatrixRunOptions& options,
                                          const std::function<void(const CellResult&)>& progress);

// "not run", or unsupported with the sentence of compat.
CellResult decided(const MatrixCell& cell);

}  // namespace foretoken
