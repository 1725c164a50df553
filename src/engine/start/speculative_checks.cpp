#include "engine/start/speculative_checks.h"

#include <filesystem>
#include <string>

#include "compat/combination.h"
#include "draft/config_check.h"
#include "draft/draft_bounds.h"
#include "draft/drafter_parts.h"
#include "draft/parts/draft_vocab.h"
#include "draft/registry.h"
#include "engine/start/speculation_rules.h"
#include "kernels/step_types.h"

namespace foretoken {
namespace {

Status fault(const std::string& what) { return invalid_argument("speculative config: " + what); }

// What can be told before the model of an unnamed method says what it is.
Status check_fields(const SpeculativeConfig& config) {
  if (config.num_speculative_tokens < 0 || config.num_speculative_tokens > kMaxDraftTokens) {
    return fault("num_speculative_tokens is " + std::to_string(config.num_speculative_tokens) +
                 "; give a number from 1 to " + std::to_string(kMaxDraftTokens));
  }
  if (config.num_branches < 0 || config.num_branches > kMaxBranches) {
    return fault("num_branches is " + std::to_string(config.num_branches) +
                 "; give a number from 0 (none) to " + std::to_string(kMaxBranches));
  }
  if (config.max_model_len < 0) {
    return fault("max_model_len is " + std::to_string(config.max_model_len) +
                 "; give a positive number of tokens, or leave it out");
  }
  FT_RETURN_IF_ERROR(samples_drafts(config).status());
  if (config.method.empty() && !config.model.empty()) return {};
  FT_ASSIGN_OR_RETURN(const DrafterEntry* entry, choose_drafter(config, ""));
  return check_config(config, *entry);
}

// Without a file, the one that lies beside the target.
void find_ranked_vocab(const std::string& target_folder, SpeculativeConfig& config) {
  if (config.draft_vocab_size == 0 || !config.draft_vocab_file.empty()) return;
  const std::filesystem::path ranked = std::filesystem::path(target_folder) / "draft_vocab.txt";
  std::error_code error;
  if (std::filesystem::exists(ranked, error)) config.draft_vocab_file = ranked.string();
}

bool is_same_folder(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || std::filesystem::equivalent(a, b, error);
}

}  // namespace

Status check_speculative(const EngineConfig& config) {
  const std::vector<SpeculativeConfig>& all = config.speculative;
  if (all.size() > kMaxDrafters) {
    return invalid_argument("speculative config: " + std::to_string(all.size()) +
                            " drafters are configured; an engine has at most " +
                            std::to_string(kMaxDrafters));
  }
  FT_RETURN_IF_ERROR(check_combination(combination_of(config), all));
  for (const SpeculativeConfig& each : all) {
    FT_RETURN_IF_ERROR(check_fields(each));
    FT_RETURN_IF_ERROR(length_mode(each).status());
    FT_RETURN_IF_ERROR(acceptance_method(each).status());
  }
  return {};
}

Status resolve_methods(EngineConfig& config, const std::vector<std::string>& folders,
                       const ModelConfig& target) {
  std::vector<SpeculativeConfig>& all = config.speculative;
  for (size_t i = 0; i < all.size(); ++i) {
    FT_ASSIGN_OR_RETURN(const DrafterEntry* entry, choose_drafter(all[i], folders[i]));
    all[i].method = entry->name;
    FT_RETURN_IF_ERROR(check_config(all[i], *entry));
    for (size_t j = 0; j < i; ++j) {
      if (all[j].method != all[i].method) continue;
      if (entry->traits.reads_files && !is_same_folder(folders[j], folders[i])) continue;
      return fault("'" + all[i].method +
                   "' with the same model is configured twice; leave one out");
    }
    find_ranked_vocab(config.model, all[i]);
    FT_RETURN_IF_ERROR(choose_draft_vocab(all[i], target.own_ids(), target.eos_token_ids).status());
    if (config.max_model_len > 0 && all[i].max_model_len > config.max_model_len) {
      return fault("max_model_len " + std::to_string(all[i].max_model_len) +
                   " exceeds the target's, " + std::to_string(config.max_model_len) +
                   "; lower it or leave it out");
    }
  }
  return check_combination(combination_of(config), all);
}

}  // namespace foretoken
