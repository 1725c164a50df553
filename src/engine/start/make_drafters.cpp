#include "engine/start/make_drafters.h"

#include <algorithm>

#include "compat/compat.h"
#include "draft/registry.h"
#include "engine/start/load_format.h"
#include "engine/start/token_map.h"
#include "gguf/model_texts.h"
#include "model/config/config.h"
#include "model/files/quantization_choice.h"

namespace foretoken {
namespace {

// How a draft model with another vocabulary is read; empty maps where the ids are the same.
Result<TokenMap> token_map_of(const SpeculativeConfig& speculative, const std::string& folder,
                              const DrafterParts& parts) {
  const bool has_own = has_model_text(folder, "tokenizer.json");
  FT_RETURN_IF_ERROR(compat({.files = folder,
                             .other_vocabulary = speculative.use_heterogeneous_vocab,
                             .draft_has_tokenizer = has_own,
                             .has_tokenizer = parts.tokenizer != nullptr}));
  const bool is_mapped = declared_traits(speculative.method).maps_vocabulary;
  if (!is_mapped || !has_own || parts.tokenizer == nullptr) return TokenMap{};
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, load_hf_tokenizer(folder));
  FT_ASSIGN_OR_RETURN(const ModelConfig draft, read_model_config(folder, {}));
  return map_tokens({*parts.tokenizer, parts.target.config().vocab_size},
                    {*tokenizer, draft.vocab_size}, speculative.use_heterogeneous_vocab);
}

// The parts that a drafter is cut into: the target's, or one that every rank has whole.
Sharding sharding_of(const SpeculativeConfig& speculative, const Sharding& target) {
  return speculative.draft_tensor_parallel_size == 1 ? Sharding{} : target;
}

Result<std::unique_ptr<Drafter>> make(const EngineConfig& config, size_t index,
                                      const DrafterParts& parts) {
  const SpeculativeConfig& speculative = config.speculative[index];
  TokenMap map;
  if (!parts.are_absent) {
    FT_ASSIGN_OR_RETURN(map, token_map_of(speculative, parts.folders[index], parts));
  }
  const Sharding sharding = sharding_of(speculative, parts.sharding);
  WeightRounding own_rounding = WeightRounding::kNone;
  if (!parts.folders[index].empty()) {
    FT_ASSIGN_OR_RETURN(own_rounding,
                        choose_quantization(speculative.quantization, parts.folders[index],
                                            "speculative config: quantization"));
  }
  const DrafterContext context{.config = speculative,
                               .device = parts.device,
                               .target = parts.target,
                               .target_folder = config.model,
                               .folder = parts.folders[index],
                               .attention = parts.attention,
                               .max_model_len = config.max_model_len > 0
                                                    ? config.max_model_len
                                                    : parts.target.config().max_context,
                               .max_rows = max_catch_up_rows(config),
                               .max_spans = config.max_num_seqs + num_branches(config),
                               .dummy = is_dummy(config.load_format),
                               .dummy_recipe = parts.dummy_recipe,
                               .kv_format = parts.kv_format,
                               .rounding = parts.rounding,
                               .own_rounding = own_rounding,
                               .with_grammars = parts.tokenizer != nullptr,
                               .token_map = std::move(map.to_draft),
                               .token_map_back = std::move(map.to_target),
                               .draft_vocab_ids = {},
                               .sharding = sharding,
                               .is_absent = parts.are_absent};
  return make_drafter(context);
}

}  // namespace

Result<std::vector<std::unique_ptr<Drafter>>> make_drafters(const EngineConfig& config,
                                                            const DrafterParts& parts) {
  std::vector<std::unique_ptr<Drafter>> drafters;
  for (size_t i = 0; i < config.speculative.size(); ++i) {
    FT_ASSIGN_OR_RETURN(std::unique_ptr<Drafter> drafter, make(config, i, parts));
    drafters.push_back(std::move(drafter));
  }
  return drafters;
}

std::vector<std::string> drafter_names(const EngineConfig& config) {
  std::vector<std::string> names;
  for (const SpeculativeConfig& drafter : config.speculative) {
    const auto same = std::count_if(
        config.speculative.data(), &drafter,
        [&](const SpeculativeConfig& other) { return other.method == drafter.method; });
    names.push_back(drafter.method + (same > 0 ? "-" + std::to_string(same + 1) : ""));
  }
  return names;
}

int max_draft_tokens(const EngineConfig& config) {
  int most = 0;
  for (const SpeculativeConfig& drafter : config.speculative) {
    const int k = drafter.num_speculative_tokens;
    most = std::max(most, k > 0 ? k : kMaxOwnDrafts);
  }
  return most;
}

int num_branches(const EngineConfig& config) {
  int most = 0;
  for (const SpeculativeConfig& drafter : config.speculative) {
    most = std::max(most, drafter.num_branches);
  }
  return most;
}

int branch_blocks(const EngineConfig& config) {
  return (config.block_size - 1 + max_draft_tokens(config)) / config.block_size + 1;
}

int max_catch_up_rows(const EngineConfig& config) {
  return config.max_num_batched_tokens + config.max_num_seqs;
}

}  // namespace foretoken
