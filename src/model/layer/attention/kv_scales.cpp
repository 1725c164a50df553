#include "model/layer/attention/kv_scales.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace foretoken {
namespace {

constexpr const char* kKeyScales[] = {
    "attn.k_scale",     "k_scale",       "k_proj.k_scale", "k_proj.output_scale",
    "qkv_proj.k_scale", "attn.kv_scale", "kv_scale"};
constexpr const char* kValueScales[] = {"attn.v_scale", "v_scale", "v_proj.v_scale",
                                        "v_proj.output_scale", "qkv_proj.v_scale"};
constexpr const char* kOtherScales[] = {"attn.q_scale",        "q_scale",          "q_proj.q_scale",
                                        "qkv_proj.q_scale",    "attn.prob_scale",  "prob_scale",
                                        "q_proj.output_scale", "prob_output_scale"};
// What ModelOpt subtracts from entries before it rounds them (FP8_AFFINE), one for each column.
constexpr const char* kBiases[] = {"k_proj.k_bias", "v_proj.v_bias"};

// The first of the names below `base` that the checkpoint has; empty: none.
template <size_t N>
std::string find_kv_scale(const PartLoader& loader, const std::string& base,
                          const char* const (&names)[N]) {
  for (const char* name : names) {
    if (loader.weights().has_optional(base + name)) return base + name;
  }
  return {};
}

// One for each head of the rank.
Result<std::vector<float>> read_kv_scales(PartLoader& loader, const std::string& name,
                                          int32_t num_kv_heads) {
  FT_ASSIGN_OR_RETURN(std::vector<float> scales, loader.weights().numbers(name));
  if (scales.size() == 1) scales.resize(static_cast<size_t>(num_kv_heads), scales.front());
  if (scales.size() != static_cast<size_t>(num_kv_heads)) {
    return invalid_argument("tensor '" + name + "' has " + std::to_string(scales.size()) +
                            " scales of an FP8 KV cache, but the layer has " +
                            std::to_string(num_kv_heads) +
                            " heads of keys and values; it must have one for each, or one");
  }
  const auto bad = std::find_if(scales.begin(), scales.end(),
                                [](float scale) { return !std::isnormal(scale) || scale < 0; });
  if (bad != scales.end()) {
    return invalid_argument("tensor '" + name + "' has a scale of " + std::to_string(*bad) +
                            "; scales of an FP8 KV cache must be positive; correct the file, or " +
                            "remove the tensor");
  }
  const ShardRange own = shard_of_kv_heads(num_kv_heads, loader.sharding());
  const auto first = scales.begin() + own.begin;
  return std::vector<float>(first, first + own.count);
}

Status load_some_kv_scales(PartLoader& loader, const std::string& name, int32_t num_kv_heads,
                           const float** out) {
  FT_ASSIGN_OR_RETURN(const std::vector<float> scales, read_kv_scales(loader, name, num_kv_heads));
  return loader.upload(scales, "scales of the KV cache", out);
}

}  // namespace

Status load_kv_scales(PartLoader& loader, const std::string& base, int32_t num_kv_heads,
                      KvScales* out) {
  const std::string keys = find_kv_scale(loader, base, kKeyScales);
  const std::string values = find_kv_scale(loader, base, kValueScales);
  // Scales of entries less a bias are too small for the entries themselves.
  const bool are_affine = !find_kv_scale(loader, base, kBiases).empty();
  ignore_attention_scales(loader, base);
  if (are_affine || (keys.empty() && values.empty())) return {};
  const std::string& of_keys = keys.empty() ? values : keys;
  FT_RETURN_IF_ERROR(load_some_kv_scales(loader, of_keys, num_kv_heads, &out->keys));
  if (keys.empty() || values.empty()) {
    out->values = out->keys;
    return {};
  }
  return load_some_kv_scales(loader, values, num_kv_heads, &out->values);
}

void ignore_attention_scales(PartLoader& loader, const std::string& base) {
  for (const char* name : kKeyScales) loader.weights().ignore(base + name);
  for (const char* name : kValueScales) loader.weights().ignore(base + name);
  for (const char* name : kOtherScales) loader.weights().ignore(base + name);
  for (const char* name : kBiases) loader.weights().ignore(base + name);
}

}  // namespace foretoken
