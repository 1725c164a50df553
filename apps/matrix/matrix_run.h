#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "apps/matrix/matrix_cell.h"

namespace foretoken {

struct CellRunOptions {
  std::string folder;         // of checkpoints, which are kept for other cells
  std::string size = "tiny";  // 8b or r1, as MatrixFilesWish
  int num_prompts = 24;
  int max_tokens = 32;
  int num_drafts = 3;
};

// Runs a cell in this process: all prompts at once without drafts, then with drafts, with one and
// with two steps in flight, again and again until the memory stays, and on one rank without drafts.
// Likelihoods of the first prompts are compared with those without drafts and, where attention is
// named or on a GPU (not at size), with those of the CPU's own attention. The result says "verdict"
// (green, red or unsupported), "reason" where it is not green, and the evidence: numbers of prompts
// and tokens, drafted and accepted tokens, the share accepted, texts that differ, bytes that the
// last repetition added, the attention backend and the ops that ran. Whatever ends the process ends
// this cell alone: cells have processes of their own.
nlohmann::ordered_json run_cell(const MatrixCell& cell, const CellRunOptions& options);

}  // namespace foretoken
