#include "engine/make_drafters.h"

#include <algorithm>

#include "draft/registry.h"

namespace foretoken {
namespace {

Result<std::unique_ptr<Drafter>> make(const EngineConfig& config, size_t index,
                                      const DrafterParts& parts) {
  const SpeculativeConfig& speculative = config.speculative[index];
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
                               .max_spans = config.max_num_seqs,
                               .dummy = config.load_format == "dummy",
                               .token_map = {},
                               .token_map_back = {},
                               .draft_vocab_ids = {}};
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

int most_drafts(const EngineConfig& config) {
  int most = 0;
  for (const SpeculativeConfig& drafter : config.speculative) {
    const int k = drafter.num_speculative_tokens;
    most = std::max(most, k > 0 ? k : kMaxSpeculativeTokens);
  }
  return most;
}

int max_catch_up_rows(const EngineConfig& config) {
  return config.max_num_batched_tokens + config.max_num_seqs;
}

}  // namespace foretoken
