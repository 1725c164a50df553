#include "model/weights/sharding.h"

#include <algorithm>

#include "base/check.h"
#include "compat/context_ranks.h"
#include "kernels/experts/expert_gemm.h"

namespace foretoken {
namespace {

bool divides(int32_t num_heads, int32_t num_kv_heads, int32_t inner, int32_t size) {
  const bool kv_fits = num_kv_heads % size == 0 || size % num_kv_heads == 0;
  return num_heads % size == 0 && kv_fits && inner % size == 0;
}

// Parts of an expert are whole slices of packed columns.
bool divides(const ExpertConfig& experts, int32_t size, bool deals_experts) {
  return (deals_experts || experts.inner % (size * kExpertColumns) == 0) &&
         experts.shared_inner % size == 0 &&
         (!experts.latent_norm || experts.latent % (8 * size) == 0);
}

bool divides(const RecurrentConfig& recurrent, int32_t size) {
  const int32_t keys = recurrent.key_heads;
  const bool keys_fit = keys == 0 || keys % size == 0 || size % keys == 0;
  return keys_fit && recurrent.value_heads % size == 0 && recurrent.channels % size == 0;
}

bool divides(const ModelConfig& config, int32_t size, bool deals_experts) {
  if (!divides(config.recurrent, size)) return false;
  if (config.compressed.exists() && config.compressed.groups % size != 0) return false;
  if (config.experts.count > 0 && !divides(config.experts, size, deals_experts)) return false;
  const auto or_of_config = [](int32_t own, int32_t of_config) {
    return own > 0 ? own : of_config;
  };
  for (const LayerConfig& layer : config.layers) {
    if (!deals_experts && layer.expert_inner % (size * kExpertColumns) != 0) return false;
    if (!divides(or_of_config(layer.num_heads, config.num_heads),
                 or_of_config(layer.num_kv_heads, config.num_kv_heads),
                 or_of_config(layer.intermediate_size, config.intermediate_size), size)) {
      return false;
    }
  }
  return divides(config.num_heads, config.num_kv_heads, config.intermediate_size, size);
}

// ", and 64 inner columns of each expert, a multiple of 32 for each rank".
std::string expert_text(const ExpertConfig& experts, bool deals_experts) {
  if (experts.count == 0) return "";
  std::string text;
  if (!deals_experts) {
    text += ", and " + std::to_string(experts.inner) +
            " inner columns of each expert, of which a rank must have a multiple of " +
            std::to_string(kExpertColumns);
  }
  if (experts.shared_inner > 0) {
    text += ", and " + std::to_string(experts.shared_inner) + " of the shared " +
            (deals_experts ? "expert" : "one");
  }
  return text;
}

// ", and 2 heads of keys and 8 of values of recurrent layers".
std::string recurrent_text(const RecurrentConfig& recurrent) {
  if (!recurrent.exists()) return "";
  if (recurrent.value_heads == 0) {
    return ", and " + std::to_string(recurrent.channels) + " channels of convolutions";
  }
  return ", and " + std::to_string(recurrent.key_heads) + " heads of keys and " +
         std::to_string(recurrent.value_heads) + " of values of recurrent layers";
}

// ", and 8 groups of heads (o_groups)".
std::string group_text(const CompressedConfig& compressed) {
  if (!compressed.exists()) return "";
  return ", and " + std::to_string(compressed.groups) + " groups of heads (o_groups)";
}

// "1, 2 or 4".
std::string possible_sizes(const ModelConfig& config, bool deals_experts) {
  std::string text = "1";
  int32_t last = 0;
  for (int32_t size = 2; size <= config.num_heads; ++size) {
    if (!divides(config, size, deals_experts)) continue;
    if (last > 0) text += ", " + std::to_string(last);
    last = size;
  }
  return last > 0 ? text + " or " + std::to_string(last) : text;
}

// Every rank has at least one expert. The target's are judged before (compat); a drafter's may be
// fewer.
Status check_deal(const ModelConfig& config, const Sharding& sharding) {
  const int32_t count = config.experts.count;
  if (count == 0 || sharding.experts.size <= count) return {};
  return invalid_argument(config.architecture + " has " + std::to_string(count) +
                          " experts, fewer than the " + std::to_string(sharding.experts.size) +
                          " ranks that they are dealt out to; at most " + std::to_string(count) +
                          " can have some");
}

}  // namespace

std::vector<int> kv_heads_of(const ModelConfig& config) {
  std::vector<int> heads;
  const auto add = [&](int32_t number) {
    if (number > 0 && std::ranges::find(heads, number) == heads.end()) heads.push_back(number);
  };
  add(config.num_kv_heads);
  for (const LayerConfig& layer : config.layers) add(layer.num_kv_heads);
  return heads;
}

bool can_share_context(const ModelConfig& config, const Sharding& sharding) {
  const int32_t sharing = sharding.context.size;
  return sharing == 1 || (ranks_with_equal_kv(kv_heads_of(config), sharding.size) % sharing == 0 &&
                          divides_rows(config.hidden_size, sharing));
}

Result<ModelConfig> shard_config(const ModelConfig& config, const Sharding& sharding,
                                 const std::string& flag) {
  FT_RETURN_IF_ERROR(check_deal(config, sharding));
  if (!sharding.is_cut()) return config;
  const bool deals_experts = sharding.deals_experts();
  if (!divides(config, sharding.size, deals_experts)) {
    return invalid_argument(flag + " " + std::to_string(sharding.size) + " does not divide " +
                            config.architecture + " with " + std::to_string(config.num_heads) +
                            " heads, " + std::to_string(config.num_kv_heads) +
                            " of keys and values, and " + std::to_string(config.intermediate_size) +
                            " inner columns" + expert_text(config.experts, deals_experts) +
                            recurrent_text(config.recurrent) + group_text(config.compressed) +
                            "; use " + possible_sizes(config, deals_experts));
  }
  // check_division has refused others.
  FT_CHECK(can_share_context(config, sharding));
  ModelConfig part = config;
  part.num_heads = config.num_heads / sharding.size;
  part.num_kv_heads = static_cast<int32_t>(shard_of_kv_heads(config.num_kv_heads, sharding).count);
  part.intermediate_size = config.intermediate_size / sharding.size;
  if (!deals_experts) part.experts.inner /= sharding.size;
  part.experts.shared_inner /= sharding.size;
  if (config.recurrent.key_heads > 0) {
    part.recurrent.key_heads =
        static_cast<int32_t>(shard_of_kv_heads(config.recurrent.key_heads, sharding).count);
  }
  part.recurrent.value_heads /= sharding.size;
  if (config.compressed.exists()) part.compressed.groups /= sharding.size;
  part.recurrent.channels /= sharding.size;
  for (LayerConfig& layer : part.layers) {
    layer.num_heads /= sharding.size;
    if (layer.num_kv_heads > 0) {
      layer.num_kv_heads =
          static_cast<int32_t>(shard_of_kv_heads(layer.num_kv_heads, sharding).count);
    }
    layer.intermediate_size /= sharding.size;
    if (!deals_experts) layer.expert_inner /= sharding.size;
  }
  return part;
}

}  // namespace foretoken
