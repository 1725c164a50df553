#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/matrix/matrix_cell.h"
#include "apps/matrix/matrix_engine.h"

namespace foretoken {

// What hears of cells while they run.
struct CellWatch {
  std::function<void(const std::string& what)> begins;         // as "without drafts"
  std::function<void(const nlohmann::ordered_json&)> is_done;  // with the result of a cell
};

// Runs cells in this process, one after the other. A cell has all prompts at once without drafts,
// then with drafts, with one and with two steps in flight, again and again until the memory stays,
// and on one rank without drafts. Likelihoods of the first prompts are compared with those without
// drafts and, where attention is named or on a GPU, with those of the CPU's own attention; on a GPU
// with those of the portable family there, too. What has no drafts is run once for all cells that
// share it. A result says "verdict" (green, red or
// unsupported), "reason" where it is not green, "refused" where the start refused the cell, and the
// evidence: numbers of prompts and tokens, drafted and accepted tokens, the share accepted, texts
// that differ, bytes that the last repetition added, the attention backend, the ops that ran and
// "seconds".
void run_cells_here(const std::vector<MatrixCell>& cells, const CellRunOptions& options,
                    const CellWatch& watch);

}  // namespace foretoken
