#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "device/device.h"
#include "model/config/config.h"
#include "model/draft_head.h"
#include "model/heads/chain_head.h"
#include "model/model.h"

namespace foretoken {

// What config.json of an MLP speculator says.
struct MlpSpeculatorConfig {
  int32_t num_steps = 0;      // n_predict
  int32_t inner = 0;          // inner_dim; emb_dim where that is 0
  bool ties_weights = false;  // all steps have the tensors of the first, but for the projection
  bool scales_input = false;  // the target's state is normed, and divided by sqrt(2)
};

// Reads <folder>/config.json. NotFound names a missing file; InvalidArgument a missing or wrong
// field, or a size that is not the target's.
Result<MlpSpeculatorConfig> read_mlp_speculator_config(const std::string& folder,
                                                       const ModelConfig& target);

// Loads the first `num_steps` steps of an MLP speculator (Wertheimer et al. 2024, arXiv 2404.19124)
// as IBM publishes it and vLLM loads it: `emb.0.weight`, `proj.0.weight`, `ln.0.weight`,
// `ln.0.bias`, `head.0.weight`, with and without a leading "speculator.". Step i makes
//   state = gelu(ln_i(proj_i(state) + (embedding_weight / state_weight) emb_i[token])),
// ln(x) = x / sqrt(mean(x^2) + 1e-6) * weight + bias, and drafts token i of a chain from head_i;
// state_weight = 0.5^(0.5 / n_predict), embedding_weight = sqrt((1 - state_weight^2) inner / 2).
// `target` outlives the head. options: max_rows, dummy, vocab_ids, target_folder, sharding and
// states.
Result<std::unique_ptr<ChainHead>> load_mlp_speculator(Device& device, const std::string& folder,
                                                       const MlpSpeculatorConfig& config,
                                                       int32_t num_steps, Model& target,
                                                       const DraftHeadOptions& options);

// Both for the row of a drafter.
Result<ChainFiles> read_mlp_speculator_files(const std::string& folder, const ModelConfig& target);

}  // namespace foretoken
