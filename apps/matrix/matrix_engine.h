#pragma once
#include <foretoken/engine.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/matrix/matrix_cell.h"
#include "apps/matrix/matrix_models.h"
#include "apps/matrix/matrix_scores.h"

namespace foretoken {

struct CellRunOptions {
  std::string folder;         // of checkpoints, which are kept for other cells
  std::string size = "tiny";  // 8b or r1, as MatrixFilesWish
  int num_prompts = 24;
  int max_tokens = 32;
  int num_draft_tokens = 3;
  // Whose likelihoods are compared with the CPU's where the checkpoints are not tiny: there it
  // takes a minute.
  int num_reference_prompts = 0;
};

// What the prompts of a cell gave on one engine.
struct RunOutput {
  std::vector<std::vector<int32_t>> ids;
  std::vector<TokenScores> scores;  // of the first kScoredPrompts
  RequestStats stats;
  std::string attention;
  int64_t grown_bytes = 0;     // resident, by the last of the repetitions
  int64_t resident_bytes = 0;  // behind it
};

// Most bytes that repeated prompts may add.
inline constexpr int64_t kMaxGrowth = int64_t{16} << 20;

// The checkpoints of a cell: those of a kind stand in a folder of their own below options.folder.
// As write_matrix_files; Unsupported where no synthetic checkpoint is like the model.
Result<MatrixFiles> write_cell_files(const MatrixCell& cell, const CellRunOptions& options);

// The prompts of the files, the first of which ask for scores. NotFound where there are none.
Result<std::vector<Request>> read_prompts(const MatrixFiles& files, const CellRunOptions& options);

// The cell's engine without drafts, for so many prompts.
EngineConfig config_of(const MatrixCell& cell, const MatrixFiles& files, size_t num_prompts);
// The same with the cell's drafter, if it has one.
EngineConfig with_drafts(EngineConfig config, const MatrixCell& cell,
                         const CellRunOptions& options);

// The same cell on one rank, without lanes.
MatrixCell on_one_rank(MatrixCell cell);

// All prompts at once on an engine that ends with it. `repeat`: again until they add no more than
// kMaxGrowth to the memory, as they do once every engine has written all of its cache; at most
// eight times. Aborted where an output failed, or a repetition gave other texts.
Result<RunOutput> run_engine(const EngineConfig& config, const std::vector<Request>& requests,
                             bool repeat = false);

// Names of the ops of a short run that is recorded op by op into the file `path`, which is removed
// then, with their kernels where they say so.
Result<nlohmann::ordered_json> seen_ops(EngineConfig config, std::vector<Request> requests,
                                        const std::string& path);

}  // namespace foretoken
