#include "compat/compat.h"

#include <iterator>
#include <vector>

#include "compat/rules.h"

namespace foretoken {
namespace {

std::vector<CompatRule> all_rules() {
  std::vector<CompatRule> all;
  for (const auto part : {attention_rules, kv_rules, rank_rules, layer_rules, weight_rules,
                          draft_rules, request_rules, measuring_rules, memory_rules}) {
    std::vector<CompatRule> rules = part();
    all.insert(all.end(), std::make_move_iterator(rules.begin()),
               std::make_move_iterator(rules.end()));
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
