#include "draft/config_check.h"

#include "draft/drafter_parts.h"
#include "kernels/step_types.h"

namespace foretoken {
namespace {

Status check_count(const SpeculativeConfig& config, const DrafterTraits& traits) {
  const int count = config.num_speculative_tokens;
  if (count >= 1 && count <= kMaxDraftTokens) return {};
  if (count == 0 && traits.counts_itself) return {};
  return invalid_argument("speculative config: num_speculative_tokens is " + std::to_string(count) +
                          (count == 0 ? " or not given" : "") + "; give a number from 1 to " +
                          std::to_string(kMaxDraftTokens) +
                          (count == 0 ? ", or no speculative config at all" : ""));
}

}  // namespace

Status check_config(const SpeculativeConfig& config, const DrafterEntry& entry) {
  const DrafterTraits& traits = entry.traits;
  FT_RETURN_IF_ERROR(check_count(config, traits));
  Combination c;
  add_drafter(config, entry, &c);
  FT_RETURN_IF_ERROR(compat(c));
  if (entry.check != nullptr) FT_RETURN_IF_ERROR(entry.check(config));
  if (config.model.empty() && traits.needs_model) {
    return invalid_argument("speculative config: method " + std::string(entry.name) +
                            " needs `model` (--spec-model), the folder or Hub id of its weights");
  }
  return {};
}

}  // namespace foretoken
