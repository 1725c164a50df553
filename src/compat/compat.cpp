#include "compat/compat.h"

#include <vector>

#include "compat/rules.h"

namespace foretoken {
namespace {

std::vector<CompatRule> all_rules() {
  std::vector<CompatRule> all;
  for (const auto group :
       {backend_rules,     expression_rules, kv_format_rules, kv_read_rules,   engine_rules,
        server_rules,      rank_rules,       expert_rules,    lane_rules,      layer_rules,
        context_rules,     file_rules,       weight_rules,    adapter_rules,   draft_rules,
        draft_model_rules, branch_rules,     request_rules,   sampling_rules,  text_rules,
        serving_rules,     measuring_rules,  position_rules,  host_block_rules}) {
    all.insert(all.end(), group().begin(), group().end());
  }
  return all;
}

}  // namespace

std::span<const CompatRule> compat_rules() {
  static const std::vector<CompatRule> rules = all_rules();
  return rules;
}

bool is_helped(const Combination& c, const Combination& changed) {
  bool was_first = true;
  for (const CompatRule& rule : compat_rules()) {
    const bool was_broken = rule.is_broken(c);
    if (rule.is_broken(changed) && (was_first || !was_broken)) return false;
    was_first &= !was_broken;
  }
  return true;
}

Status compat(const Combination& c) {
  for (const CompatRule& rule : compat_rules()) {
    if (rule.is_broken(c)) return {rule.code, rule.sentence(c)};
  }
  return {};
}

}  // namespace foretoken
