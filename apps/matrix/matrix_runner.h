#pragma once
#include <functional>
#include <vector>

#include "apps/matrix/matrix_process.h"
#include "apps/matrix/matrix_results.h"

namespace foretoken {

// Decides each cell, and runs those that `compat` allows in processes of their own, up to
// cells_per_process of neighbours that differ in their drafters in one. Cells whose results are
// `known` are not run again, so that a run that was ended goes on where it was; others are added.
// A row of the list whose attention the start refuses, as a build or a GPU has not every family, is
// run with what the device chooses, and its result has "stands_in_because".
// `progress` gets each result. Aborted when cancelled; the errors of ResultsFile::add and of
// checkpoints that cannot be written.
Result<std::vector<CellResult>> run_cells(const std::vector<MatrixCell>& cells,
                                          const MatrixRunOptions& options, ResultsFile& known,
                                          const std::function<void(const CellResult&)>& progress);

// "not run", or unsupported with the sentence of compat.
CellResult decided(const MatrixCell& cell);

}  // namespace foretoken
