#pragma once
#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/matrix/matrix_cell.h"
#include "apps/matrix/matrix_engine.h"

namespace foretoken {

struct MatrixRunOptions {
  CellRunOptions cell;
  std::chrono::seconds time_limit{120};  // of a cell
  // That one process runs, where they differ in nothing but their drafters.
  size_t cells_per_process = 1;
  // Of the user's list, where what the start refuses is unsupported; elsewhere compat took it
  // already, so that it is a fault of ours and red.
  bool own_rows = false;
  const std::atomic<bool>* cancel = nullptr;
};

// What is known of a cell: its fields under "cell", and "verdict": green, red, unsupported (with
// the sentence of compat or of the start under "reason") or "not run". A cell that was run has its
// evidence, "command", "seconds" and under "asked" what asked_json says.
using CellResult = nlohmann::ordered_json;

// The version, the size and the numbers of prompts, without which a result is another cell's.
nlohmann::ordered_json asked_json(const CellRunOptions& options);

// Runs cells in a process of their own, in which each has the time limit; the checkpoints are
// written before. What ends that process is the result of the cell that was running: those behind
// it have another process. Where checkpoints cannot be written, as on a full disk, that says
// nothing of a cell: those before it have results and the others none, and it is the error where
// it is the first.
Result<std::vector<CellResult>> run_in_processes(const std::vector<MatrixCell>& cells,
                                                 const MatrixRunOptions& options);

// In such a process: runs the cells of `json`, one or a list, and prints a line each; one that does
// not end in `limit` is red and ends the process. InvalidArgument for what is no cell.
Status run_told_cells(const std::string& json, const CellRunOptions& options,
                      std::chrono::seconds limit);

}  // namespace foretoken
