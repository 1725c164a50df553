#include "draft/drafter_parts.h"

namespace foretoken {

void add_drafter(const SpeculativeConfig& config, const DrafterEntry& entry, Combination* c) {
  c->drafts = true;
  c->drafter = entry.name;
  c->drafter_traits = &entry.traits;
  if (config.quantization != "none") c->draft_quantization = config.quantization;
  c->other_vocabulary = config.use_heterogeneous_vocab;
  c->num_draft_ranks = config.draft_tensor_parallel_size;
}

Status check_combination(const Combination& known, const std::vector<SpeculativeConfig>& drafters) {
  FT_RETURN_IF_ERROR(compat(known));
  for (const SpeculativeConfig& drafter : drafters) {
    const Result<const DrafterEntry*> entry = find_drafter(drafter.method);
    if (!entry.ok()) continue;
    Combination c = known;
    add_drafter(drafter, *entry.value(), &c);
    FT_RETURN_IF_ERROR(compat(c));
  }
  return {};
}

}  // namespace foretoken
