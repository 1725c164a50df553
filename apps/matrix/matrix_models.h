#pragma once
#include <span>
#include <string>
#include <vector>

#include "attention/backend.h"
#include "base/result.h"

namespace foretoken {

// A model that cells run on: synthetic, of two layers unless it is as large as its row says.
struct MatrixModel {
  const char* architecture;
  bool latent;      // its KV cache keeps latents
  int num_experts;  // 0: no mixture
  AttentionDemand attention;
  std::vector<std::string> shape;  // arguments of foretoken-dial
  // The MatrixFilesWish::size at which it is as large as the model that rows name; empty: none is.
  std::string whole_size = {};
};

std::span<const MatrixModel> matrix_models();
// Null for others.
const MatrixModel* find_matrix_model(const std::string& architecture);

struct MatrixFiles {
  std::string target;
  std::string prompts;  // JSON lines with prompt_token_ids
};

struct MatrixFilesWish {
  std::string drafter;
  std::string dtype = "float32";  // or bfloat16
  // Or 8b: Llama 3 8B's shape, for models of that kind; r1: DeepSeek R1's with 3 layers and 64
  // experts, for models of latents.
  std::string size = "tiny";
  bool one_kv_head = false;  // which tensor parallel ranks share
  int num_prompts = 24;
  std::string folder;
};

// Writes the checkpoints of one drafter into the folder with the program foretoken-dial, unless
// they are there: drafts are accepted at a rate of about 0.7. NotFound when foretoken-dial does not
// stand beside this program.
Result<MatrixFiles> write_matrix_files(const MatrixModel& model, const MatrixFilesWish& wish);

// How many tokens such a drafter is to draft: `wanted`, or fewer where only the first of its drafts
// can be right, so that 0.3 of them are.
int matrix_num_draft_tokens(const std::string& drafter, int wanted);

// The folder of the drafter's own checkpoint below `folder`; empty for drafters without one.
std::string matrix_draft_folder(const std::string& drafter, const std::string& folder);

}  // namespace foretoken
