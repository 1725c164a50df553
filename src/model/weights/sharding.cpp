#include "model/weights/sharding.h"

namespace foretoken {
namespace {

bool divides(const ModelConfig& config, int32_t size) {
  const bool kv_fits = config.num_kv_heads % size == 0 || size % config.num_kv_heads == 0;
  return config.num_heads % size == 0 && kv_fits && config.intermediate_size % size == 0;
}

// "1, 2 or 4".
std::string possible_sizes(const ModelConfig& config) {
  std::string text = "1";
  int32_t last = 0;
  for (int32_t size = 2; size <= config.num_heads; ++size) {
    if (!divides(config, size)) continue;
    if (last > 0) text += ", " + std::to_string(last);
    last = size;
  }
  return last > 0 ? text + " or " + std::to_string(last) : text;
}

}  // namespace

Result<ModelConfig> shard_config(const ModelConfig& config, const Sharding& sharding,
                                 const std::string& flag) {
  if (!sharding.is_cut()) return config;
  if (!divides(config, sharding.size)) {
    return invalid_argument(flag + " " + std::to_string(sharding.size) + " does not divide " +
                            config.architecture + " with " + std::to_string(config.num_heads) +
                            " heads, " + std::to_string(config.num_kv_heads) +
                            " of keys and values, and " + std::to_string(config.intermediate_size) +
                            " inner columns; use " + possible_sizes(config));
  }
  ModelConfig part = config;
  part.num_heads = config.num_heads / sharding.size;
  part.num_kv_heads = static_cast<int32_t>(shard_of_kv_heads(config.num_kv_heads, sharding).count);
  part.intermediate_size = config.intermediate_size / sharding.size;
  return part;
}

}  // namespace foretoken
