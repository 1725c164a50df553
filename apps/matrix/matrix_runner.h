#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/matrix/matrix_cell.h"
#include "apps/matrix/matrix_run.h"

namespace foretoken {

struct MatrixRunOptions {
  CellRunOptions cell;
  std::chrono::seconds time_limit{120};  // of a cell
  std::string results;                   // file of JSON lines, a line a cell that was run
  const std::atomic<bool>* cancel = nullptr;
};

// What is known of a cell: its fields under "cell", and "verdict": green, red, unsupported (with
// the sentence of compat or of the start under "reason") or "not run". A cell that was run has its
// evidence, "command" and "seconds".
using CellResult = nlohmann::ordered_json;

// Decides each cell, and runs those that `compat` allows in processes of their own. Cells whose
// results stand in the file already are not run again, so that a run that was ended goes on where
// it was. `progress` gets each result. Aborted when cancelled; InvalidArgument for a file that is
// not of this kind.
Result<std::vector<CellResult>> run_cells(const std::vector<MatrixCell>& cells,
                                          const MatrixRunOptions& options,
                                          const std::function<void(const CellResult&)>& progress);

// The arguments of the process of one cell, without the program.
std::vector<std::string> cell_arguments(const MatrixCell& cell, const CellRunOptions& options);

// What the end of that process says: its own result, or red with how it ended.
CellResult result_of_process(const MatrixCell& cell, const MatrixRunOptions& options);

// "not run", or unsupported with the sentence of compat.
CellResult decided(const MatrixCell& cell);

}  // namespace foretoken
