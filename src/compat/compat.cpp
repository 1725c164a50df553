#include "compat/compat.h"

#include <vector>

#include "compat/rules.h"

namespace foretoken {
namespace {

std::vector<CompatRule> all_rules() {
  std::vector<CompatRule> all;
  for (const auto group :
       {backend_rules, expression_rules, kv_format_rules, kv_read_rules, engine_rules, rank_rules,
        expert_rules, lane_rules, layer_rules, weight_rules, adapter_rules, draft_rules,
        draft_model_rules, request_rules, sampling_rules, serving_rules, measuring_rules,
        state_rules, host_block_rules}) {
    all.insert(all.end(), group().begin(), group().end());
  }
  return all;
}

}  // namespace

std::span<const CompatRule> compat_rules() {
  static const std::vector<CompatRule> rules = all_rules();
  return rules;
}

Status compat(const Combination& c) {
  for (const CompatRule& rule : compat_rules()) {
    if (rule.is_broken(c)) return {rule.code, rule.sentence(c)};
  }
  return {};
}

}  // namespace foretoken
