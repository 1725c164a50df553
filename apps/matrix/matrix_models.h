#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken {

// A model that cells run on: synthetic, of two layers unless it is as large as its row says.
struct MatrixModel {
  const char* architecture;
  bool latent;                     // its KV cache keeps latents
  int num_experts;                 // 0: no mixture
  std::vector<std::string> shape;  // arguments of foretoken-dial
};

std::span<const MatrixModel> matrix_models();
// Null for others.
const MatrixModel* find_matrix_model(const std::string& architecture);

// Shapes of --size: "tiny", or "8b" for Llama-3-8B's.
struct MatrixFiles {
  std::string target;
  std::string prompts;  // JSON lines with prompt_token_ids
};

// Writes the checkpoints of one drafter into `folder` with the program foretoken-dial, unless they
// are there: drafts are accepted at a rate of about 0.7. `dtype`: float32 or bfloat16. NotFound
// when foretoken-dial does not stand beside this program.
Result<MatrixFiles> write_matrix_files(const MatrixModel& model, const std::string& drafter,
                                       const std::string& dtype, const std::string& size,
                                       int num_prompts, const std::string& folder);

// The folder of the drafter's own checkpoint below `folder`; empty for drafters without one.
std::string matrix_draft_folder(const std::string& drafter, const std::string& folder);

}  // namespace foretoken
