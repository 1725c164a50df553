#pragma once
#include <string>
#include <vector>

#include "compat/compat.h"

namespace foretoken {

// The parts of compat_rules(), in its order. Pointers of their examples live for ever.
std::vector<CompatRule> attention_rules();
std::vector<CompatRule> kv_rules();
std::vector<CompatRule> rank_rules();
std::vector<CompatRule> layer_rules();
std::vector<CompatRule> weight_rules();
std::vector<CompatRule> draft_rules();
std::vector<CompatRule> request_rules();
std::vector<CompatRule> measuring_rules();
std::vector<CompatRule> memory_rules();

std::string name_of(const AttentionBackend& backend);
// The backend that serves in place of one that does not.
const AttentionBackend& attention_instead(const Combination& c);

}  // namespace foretoken
