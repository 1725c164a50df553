#pragma once
#include <span>
#include <string>

#include "compat/compat.h"

namespace foretoken {

// The groups of compat_rules(), in its order. They live for ever.
std::span<const CompatRule> backend_rules();
std::span<const CompatRule> expression_rules();
std::span<const CompatRule> kv_format_rules();
std::span<const CompatRule> kv_read_rules();
std::span<const CompatRule> engine_rules();
std::span<const CompatRule> server_rules();
std::span<const CompatRule> rank_rules();
std::span<const CompatRule> expert_rules();
std::span<const CompatRule> lane_rules();
std::span<const CompatRule> layer_rules();
std::span<const CompatRule> context_rules();
std::span<const CompatRule> file_rules();
std::span<const CompatRule> weight_rules();
std::span<const CompatRule> adapter_rules();
std::span<const CompatRule> draft_rules();
std::span<const CompatRule> draft_model_rules();
std::span<const CompatRule> branch_rules();
std::span<const CompatRule> request_rules();
std::span<const CompatRule> sampling_rules();
std::span<const CompatRule> text_rules();
std::span<const CompatRule> serving_rules();
std::span<const CompatRule> measuring_rules();
std::span<const CompatRule> position_rules();
std::span<const CompatRule> host_block_rules();

// Whether a remedy helps: `changed`, which is `c` with it, does not break the first rule that `c`
// breaks, and none that holds of `c`. So that sentences name what is accepted.
bool is_helped(const Combination& c, const Combination& changed);

std::string name_of(const AttentionBackend& backend);
// The backend that serves in place of one that does not.
const AttentionBackend& attention_instead(const Combination& c);

}  // namespace foretoken
