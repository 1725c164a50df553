#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gguf/gguf_bytes.h"
#include "model/config/config.h"

namespace foretoken::test {

// A metadata value, written behind its key.
using Write = std::function<void(test::GgufBytes&, const std::string&)>;
inline Write u32(int64_t value) {
  return [value](test::GgufBytes& file, const std::string& key) {
    file.u32_value(key, static_cast<uint32_t>(value));
  };
}
inline Write f32(double value) {
  return [value](test::GgufBytes& file, const std::string& key) {
    file.f32_value(key, static_cast<float>(value));
  };
}
inline Write flag(bool value) {
  return [value](test::GgufBytes& file, const std::string& key) { file.bool_value(key, value); };
}
inline Write floats(const std::vector<float>& values) {
  return [values](test::GgufBytes& file, const std::string& key) {
    file.key(key, 9).number(uint32_t{6}).number(uint64_t{values.size()});
    for (const float value : values) file.number(value);
  };
}
inline Write flags(const std::vector<bool>& values) {
  return [values](test::GgufBytes& file, const std::string& key) {
    file.key(key, 9).number(uint32_t{7}).number(uint64_t{values.size()});
    for (const bool value : values) file.number(static_cast<uint8_t>(value));
  };
}

inline Write integers(const std::vector<int64_t>& values) {
  return [values](test::GgufBytes& file, const std::string& key) {
    file.key(key, 9).number(uint32_t{5}).number(uint64_t{values.size()});
    for (const int64_t value : values) file.number(static_cast<int32_t>(value));
  };
}

inline Write text(const char* value) {
  return [value](test::GgufBytes& file, const std::string& key) { file.text_value(key, value); };
}

// Of mixtures, under the keys that all of them share.
inline void add_expert_keys(const ModelConfig& config, std::map<std::string, Write>* all) {
  const ExpertConfig& experts = config.experts;
  int32_t dense = 0;
  while (dense < config.num_layers && !config.layers[size_t(dense)].experts) ++dense;
  (*all)["expert_count"] = u32(experts.count);
  (*all)["expert_used_count"] = u32(experts.top_k);
  (*all)["expert_feed_forward_length"] = u32(experts.inner);
  (*all)["expert_shared_count"] = u32(experts.shared_inner / experts.inner);
  (*all)["expert_weights_scale"] = f32(experts.scale);
  (*all)["expert_weights_norm"] = flag(experts.normalised);
  (*all)["expert_group_count"] = u32(experts.num_groups);
  (*all)["expert_group_used_count"] = u32(experts.top_groups);
  (*all)["leading_dense_block_count"] = u32(dense);
}

// Modules stand behind the layers and count among them.
inline void add_module_keys(const ModelConfig& config, std::map<std::string, Write>* all) {
  (*all)["nextn_predict_layers"] = u32(config.num_mtp_modules);
  (*all)["block_count"] = u32(config.num_layers + config.num_mtp_modules);
}

// Numbers of each layer, 0 of parts that it does not have.
inline void add_layer_keys(const ModelConfig& config, std::map<std::string, Write>* all) {
  std::vector<int64_t> heads, kv_heads, inner;
  for (const LayerConfig& layer : config.layers) {
    const int32_t own_heads = layer.num_heads > 0 ? layer.num_heads : config.num_heads;
    heads.push_back(layer.attention ? own_heads : 0);
    kv_heads.push_back(layer.attention ? layer.num_kv_heads : 0);
    inner.push_back(layer.feed_forward ? layer.intermediate_size : 0);
  }
  (*all)["attention.head_count"] = integers(heads);
  (*all)["attention.head_count_kv"] = integers(kv_heads);
  (*all)["feed_forward_length"] = integers(inner);
}

// Layers with a window have more key heads; the window is that of published folders.
inline void add_mimo2_keys(const ModelConfig& config, std::map<std::string, Write>* all) {
  std::vector<int64_t> kv_heads;
  std::vector<bool> windowed;
  int32_t window = 0;
  for (const LayerConfig& layer : config.layers) {
    kv_heads.push_back(layer.num_kv_heads > 0 ? layer.num_kv_heads : config.num_kv_heads);
    windowed.push_back(layer.window > 0);
    window = std::max(window, layer.window);
  }
  (*all)["attention.head_count_kv"] = integers(kv_heads);
  (*all)["attention.sliding_window_pattern"] = flags(windowed);
  (*all)["attention.sliding_window"] = u32(window - 1);
  (*all)["attention.value_length"] = u32(config.value_head_dim);
  (*all)["attention.value_scale"] = f32(config.value_scale);
  (*all)["rope.freq_base_swa"] = f32(config.rope.windowed->theta);
}

// Layers with a convolution have no heads of keys.
inline void add_conv_keys(const ModelConfig& config, std::map<std::string, Write>* all) {
  std::vector<int64_t> kv_heads;
  for (const LayerConfig& layer : config.layers) {
    kv_heads.push_back(layer.recurrent ? 0 : config.num_kv_heads);
  }
  (*all)["attention.head_count_kv"] = integers(kv_heads);
  (*all)["shortconv.l_cache"] = u32(config.recurrent.conv_width);
}

// Of Mamba 1, whose converters say nothing of positions.
inline void add_selective_keys(const std::string& family, const ModelConfig& config,
                               std::map<std::string, Write>* all) {
  const RecurrentConfig& sizes = config.recurrent;
  (*all)["ssm.conv_kernel"] = u32(sizes.conv_width);
  (*all)["ssm.state_size"] = u32(sizes.key_dim);
  (*all)["ssm.time_step_rank"] = u32(sizes.step_rank);
  (*all)["ssm.inner_size"] = u32(sizes.channels);
  for (const char* key : {"attention.key_length", "attention.value_length", "rope.freq_base",
                          "rope.dimension_count"}) {
    all->erase(key);
  }
  if (family == "jamba") {
    std::vector<int64_t> kv_heads;
    for (const LayerConfig& layer : config.layers) {
      kv_heads.push_back(layer.recurrent ? 0 : config.num_kv_heads);
    }
    (*all)["attention.head_count_kv"] = integers(kv_heads);
    return;
  }
  (*all)["attention.head_count"] = (*all)["feed_forward_length"] = u32(0);
  all->erase("attention.head_count_kv");
  (*all)["ssm.dt_b_c_rms"] = flag(config.architecture == "FalconMambaForCausalLM");
}

// Of Mamba 2, and the numbers of layers, 0 of parts that they do not have.
inline void add_state_space_keys(const std::string& family, const ModelConfig& config,
                                 std::map<std::string, Write>* all) {
  const RecurrentConfig& sizes = config.recurrent;
  (*all)["ssm.conv_kernel"] = u32(sizes.conv_width);
  (*all)["ssm.state_size"] = u32(sizes.key_dim);
  (*all)["ssm.group_count"] = u32(sizes.key_heads);
  (*all)["ssm.time_step_rank"] = u32(sizes.value_heads);
  (*all)["ssm.inner_size"] = u32(int64_t{sizes.value_heads} * sizes.value_dim);
  if (family == "falcon-h1") return;
  if (family == "mamba2") {
    (*all)["attention.head_count"] = (*all)["feed_forward_length"] = u32(0);
    all->erase("attention.head_count_kv");
    return;
  }
  std::vector<int64_t> kv_heads, inner;
  for (const LayerConfig& layer : config.layers) {
    const bool attends = layer.attention && !layer.recurrent;
    kv_heads.push_back(attends ? config.num_kv_heads : 0);
    inner.push_back(layer.feed_forward ? config.intermediate_size : 0);
  }
  (*all)["attention.head_count_kv"] = integers(kv_heads);
  if (family.starts_with("nemotron_h")) {
    (*all)["feed_forward_length"] = integers(inner);
    (*all)["expert_shared_feed_forward_length"] = u32(config.experts.shared_inner);
    if (config.experts.latent > 0) (*all)["moe_latent_size"] = u32(config.experts.latent);
    return;
  }
  (*all)["rope.scaling.finetuned"] = flag(false);
  (*all)["attention.scale"] = f32(config.attention_scale);
  (*all)["embedding_scale"] = f32(config.embedding_scale);
  (*all)["residual_scale"] = f32(config.residual_scale);
  (*all)["logit_scale"] = f32(1 / config.logits_scale);
  (*all)["expert_shared_feed_forward_length"] = u32(config.experts.shared_inner);
}

// Heads as the cache holds them, and as they are.
inline void add_linear_keys(const ModelConfig& config, std::map<std::string, Write>* all) {
  const RecurrentConfig& sizes = config.recurrent;
  (*all)["ssm.conv_kernel"] = u32(sizes.conv_width);
  (*all)["ssm.state_size"] = u32(sizes.key_dim);
  (*all)["ssm.group_count"] = u32(sizes.key_heads);
  (*all)["ssm.time_step_rank"] = u32(sizes.value_heads);
  (*all)["ssm.inner_size"] = u32(int64_t{sizes.value_heads} * sizes.value_dim);
  (*all)["full_attention_interval"] = u32(2);
  if (config.experts.count > 0) {
    (*all)["expert_shared_feed_forward_length"] = u32(config.experts.shared_inner);
  }
}

inline void add_latent_keys(const ModelConfig& config, std::map<std::string, Write>* all) {
  const LatentConfig& latent = config.latent;
  (*all)["attention.head_count_kv"] = u32(1);
  (*all)["attention.key_length"] = u32(latent.kv_rank + latent.rope_dim);
  (*all)["attention.value_length"] = u32(latent.kv_rank);
  (*all)["attention.key_length_mla"] = u32(latent.nope_dim + latent.rope_dim);
  (*all)["attention.value_length_mla"] = u32(latent.value_dim);
  (*all)["attention.q_lora_rank"] = u32(latent.q_rank);
  (*all)["attention.kv_lora_rank"] = u32(latent.kv_rank);
  (*all)["rope.dimension_count"] = u32(latent.rope_dim);
  if (!latent.index.exists()) return;
  (*all)["attention.indexer.head_count"] = u32(latent.index.num_heads);
  (*all)["attention.indexer.key_length"] = u32(latent.index.head_dim);
  (*all)["attention.indexer.top_k"] = u32(latent.index.top);
  if (!config.hyper.exist()) return;
  (*all)["hyper_connection.count"] = u32(config.hyper.count);
  (*all)["hyper_connection.epsilon"] = f32(config.hyper.eps);
  (*all)["hyper_connection.magnitude"] = f32(config.hyper.gift);
  (*all)["swiglu_clamp_exp"] =
      floats(std::vector<float>(size_t(config.num_layers), config.experts.clamp.limit));
}

inline void add_block_index_keys(const ModelConfig& config, std::map<std::string, Write>* all) {
  const BlockIndexConfig& index = config.block_index;
  (*all)["attention.indexer.head_count"] = u32(config.num_kv_heads);
  (*all)["attention.indexer.key_length"] = u32(index.head_dim);
  (*all)["attention.indexer.top_k"] = u32(index.top);
  (*all)["attention.indexer.block_size"] = u32(index.block);
  (*all)["attention.indexer.local_blocks"] = u32(index.nearest);
}

// Of DeepSeek V4. Lists of ratios have modules' entries, too.
inline void add_compressed_keys(const ModelConfig& config, std::map<std::string, Write>* all) {
  const CompressedConfig& compressed = config.compressed;
  std::vector<int64_t> ratios;
  int64_t hashed = 0;
  for (const LayerConfig& layer : config.layers) {
    ratios.push_back(layer.compress);
    hashed += layer.hashed ? 1 : 0;
  }
  ratios.push_back(0);
  add_module_keys(config, all);
  (*all)["attention.compress_ratios"] = integers(ratios);
  (*all)["hash_layer_count"] = u32(hashed);
  (*all)["attention.sliding_window"] = u32(config.layers[0].window);
  (*all)["attention.q_lora_rank"] = u32(compressed.q_rank);
  (*all)["attention.output_lora_rank"] = u32(compressed.o_rank);
  (*all)["attention.output_group_count"] = u32(compressed.groups);
  (*all)["attention.compress_rope_freq_base"] = f32(config.rope.full.theta);
  (*all)["attention.indexer.head_count"] = u32(compressed.index.num_heads);
  (*all)["attention.indexer.key_length"] = u32(compressed.index.head_dim);
  (*all)["attention.indexer.top_k"] = u32(compressed.index.top);
  (*all)["hyper_connection.count"] = u32(config.hyper.count);
  (*all)["hyper_connection.sinkhorn_iterations"] = u32(config.hyper.rounds);
  (*all)["hyper_connection.epsilon"] = f32(config.hyper.eps);
  (*all)["swiglu_clamp_exp"] =
      floats(std::vector<float>(size_t(config.num_layers), config.experts.clamp.limit));
  (*all)["rope.freq_base"] = f32(config.rope.windowed->theta);
  (*all)["rope.dimension_count"] = u32(compressed.rope_dim);
  (*all)["rope.scaling.type"] = text("yarn");
  (*all)["rope.scaling.factor"] = f32(config.rope.full.factor);
  (*all)["rope.scaling.original_context_length"] = u32(config.rope.full.original_context);
}

// Of families with gates on attention heads. Heads, and how they turn, may differ by layer.
inline void add_gated_keys(const std::string& family, const ModelConfig& config,
                           std::map<std::string, Write>* all) {
  const bool by_layer = family == "laguna" || family == "step35";
  if (!by_layer && family != "spark2_5" && family != "afmoe") return;
  std::vector<int64_t> heads, kv_heads;
  std::vector<bool> windowed;
  std::vector<float> limits, shared_limits;
  for (const LayerConfig& layer : config.layers) {
    heads.push_back(layer.num_heads > 0 ? layer.num_heads : config.num_heads);
    kv_heads.push_back(layer.num_kv_heads > 0 ? layer.num_kv_heads : config.num_kv_heads);
    windowed.push_back(layer.window > 0);
    limits.push_back(layer.expert_limit);
    shared_limits.push_back(layer.shared_limit);
  }
  (*all)["attention.sliding_window"] = u32(24);
  if (family == "afmoe") return;
  const RopeConfig& other = *config.rope.windowed;
  (*all)["rope.freq_base_swa"] = f32(other.theta);
  (*all)["rope.dimension_count_swa"] = u32(other.rotary_dim);
  if (by_layer) (*all)["attention.head_count"] = integers(heads);
  if (family != "laguna") (*all)["attention.sliding_window_pattern"] = flags(windowed);
  if (by_layer) (*all)["expert_shared_feed_forward_length"] = u32(config.experts.shared_inner);
  if (family == "step35") {
    (*all)["attention.head_count_kv"] = integers(kv_heads);
    (*all)["swiglu_clamp_exp"] = floats(limits);
    (*all)["swiglu_clamp_shexp"] = floats(shared_limits);
    // Half of it turns in layers without a window.
    (*all)["rope.dimension_count"] = u32(config.head_dim);
  }
  if (family != "laguna") return;
  (*all)["rope.scaling.type"] = text("yarn");
  (*all)["rope.scaling.factor"] = f32(config.rope.full.factor);
  (*all)["rope.scaling.original_context_length"] = u32(config.rope.full.original_context);
  (*all)["rope.scaling.yarn_attn_factor"] = f32(config.rope.full.attention_factor);
}

// Of layers with and without a window.
inline void add_later_keys(const std::string& family, const ModelConfig& config,
                           std::map<std::string, Write>* all) {
  if (family != "muse-glimmer") return;
  std::vector<bool> windowed;
  for (const LayerConfig& layer : config.layers) windowed.push_back(layer.window > 0);
  (*all)["attention.sliding_window"] = u32(24);
  (*all)["attention.sliding_window_pattern"] = flags(windowed);
  (*all)["final_logit_softcapping"] = f32(config.logits_softcap);
  (*all)["logit_scale"] = f32(config.logits_scale);
}

// Of Granite with windows, and which layers turn.
inline void add_granite_swa_keys(const ModelConfig& config, std::map<std::string, Write>* all) {
  std::vector<bool> windowed, turning;
  for (const LayerConfig& layer : config.layers) {
    windowed.push_back(layer.window > 0);
    turning.push_back(layer.rope);
  }
  (*all)["attention.sliding_window"] = u32(24);
  (*all)["attention.sliding_window_pattern"] = flags(windowed);
  (*all)["attention.rope_pattern"] = flags(turning);
  (*all)["attention.scale"] = f32(config.attention_scale);
  (*all)["embedding_scale"] = f32(config.embedding_scale);
  (*all)["residual_scale"] = f32(config.residual_scale);
  (*all)["logit_scale"] = f32(1 / config.logits_scale);
}

// Layers of Kimi's delta attention have no heads of keys.
inline void add_kimi_keys(const ModelConfig& config, std::map<std::string, Write>* all) {
  const LatentConfig& latent = config.latent;
  std::vector<int64_t> kv_heads;
  for (const LayerConfig& layer : config.layers) kv_heads.push_back(layer.recurrent ? 0 : 1);
  (*all)["attention.head_count_kv"] = integers(kv_heads);
  (*all)["attention.key_length"] = u32(latent.kv_rank + latent.rope_dim);
  (*all)["attention.key_length_mla"] = u32(latent.nope_dim + latent.rope_dim);
  (*all)["attention.value_length_mla"] = u32(latent.value_dim);
  (*all)["attention.kv_lora_rank"] = u32(latent.kv_rank);
  (*all)["rope.dimension_count"] = u32(latent.rope_dim);
  (*all)["kda.head_dim"] = u32(config.recurrent.key_dim);
  (*all)["ssm.conv_kernel"] = u32(config.recurrent.conv_width);
  if (config.depth_block == 0) return;
  (*all)["attention.q_lora_rank"] = u32(latent.q_rank);
  (*all)["attn_res.block_size"] = u32(config.depth_block);
  (*all)["expert_latent_length"] = u32(config.experts.latent);
  (*all)["kda.gate_lower_bound"] = f32(config.recurrent.lower_bound);
  (*all)["activation.situ_beta"] = f32(config.experts.clamp.limit);
  (*all)["activation.situ_linear_beta"] = f32(config.experts.clamp.up_limit);
}

inline void add_wkv_keys(const ModelConfig& config, std::map<std::string, Write>* all) {
  const RecurrentConfig& sizes = config.recurrent;
  for (const char* key : {"attention.key_length", "attention.value_length", "rope.freq_base",
                          "rope.dimension_count", "attention.head_count_kv"}) {
    all->erase(key);
  }
  (*all)["attention.head_count"] = u32(0);
  (*all)["wkv.head_size"] = u32(sizes.key_dim);
  (*all)["attention.decay_lora_rank"] = u32(sizes.ranks.decay);
  (*all)["attention.iclr_lora_rank"] = u32(sizes.ranks.rate);
  (*all)["attention.value_residual_mix_lora_rank"] = u32(sizes.ranks.share);
  (*all)["attention.gate_lora_rank"] = u32(sizes.ranks.gate);
}

// Of families whose goldens are under names of their own in newer files.
inline void add_own_keys(const std::string& family, const ModelConfig& config,
                         std::map<std::string, Write>* all) {
  (*all)["attention.key_length"] = u32(config.head_dim);
  (*all)["attention.value_length"] = u32(config.head_dim);
  (*all)["rope.freq_base"] = f32(config.rope.full.theta);
  (*all)["rope.dimension_count"] = u32(config.rope.full.rotary_dim);
  if (config.experts.count > 0) add_expert_keys(config, all);
  const bool has_modules = family == "glm4moe" || family == "bailingmoe2" || family == "mimo2" ||
                           family == "step35" || family == "qwen35";
  if (has_modules || config.latent.index.exists()) add_module_keys(config, all);
  if (family == "nanbeige") (*all)["num_loops"] = u32(config.num_loops);
  if (family == "deci" || family == "openelm") add_layer_keys(config, all);
  if (family == "qwen") (*all)["feed_forward_length"] = u32(2 * config.intermediate_size);
  if (family == "granite_swa") add_granite_swa_keys(config, all);
  if (family == "ernie4_5-moe") (*all)["interleave_moe_layer_step"] = u32(2);
  if (family == "command-r") (*all)["logit_scale"] = f32(config.logits_scale);
  if (family == "olmo" || family == "dbrx") (*all)["attention.clamp_kqv"] = f32(config.qkv_clip);
  if (family == "minicpm") {
    (*all)["embedding_scale"] = f32(config.embedding_scale);
    (*all)["residual_scale"] = f32(config.residual_scale);
    (*all)["logit_scale"] = f32(1 / config.logits_scale);
  }
  if (family == "cohere2moe") {
    (*all)["attention.sliding_window"] = u32(24);
    (*all)["attention.sliding_window_pattern"] = flags({true, false});
    (*all)["logit_scale"] = f32(config.logits_scale);
    (*all)["expert_gating_func"] = u32(1);
  }
  if (family == "mimo2") add_mimo2_keys(config, all);
  const bool is_selective = config.recurrent.step_rank > 0;
  if (is_selective) add_selective_keys(family, config, all);
  if (config.recurrent.channels > 0 && !is_selective) add_conv_keys(config, all);
  if (family.starts_with("qwen3")) {
    add_linear_keys(config, all);
  } else if (family.starts_with("kimi")) {
    add_kimi_keys(config, all);
  } else if (family == "rwkv7") {
    add_wkv_keys(config, all);
  } else if (config.recurrent.value_heads > 0) {
    add_state_space_keys(family, config, all);
  }
  add_gated_keys(family, config, all);
  add_later_keys(family, config, all);
  if (family == "mistral4" || config.latent.index.exists()) add_latent_keys(config, all);
  if (config.block_index.exists()) add_block_index_keys(config, all);
  if (config.compressed.exists()) add_compressed_keys(config, all);
  if (family != "mistral3" && family != "mistral4") return;
  (*all)["attention.temperature_scale"] = f32(config.query_growth.beta);
  (*all)["rope.scaling.type"] = text("yarn");
  (*all)["rope.scaling.factor"] = f32(config.rope.full.factor);
  (*all)["rope.scaling.original_context_length"] = u32(config.rope.full.original_context);
  // A tenth of DeepSeek's number, and Ministral's own.
  (*all)["rope.scaling.yarn_log_multiplier"] = f32(family == "mistral3" ? 1 : 0.1);
}

inline std::map<std::string, Write> metadata(const std::string& family, const ModelConfig& config) {
  std::map<std::string, Write> all = {
      {"embedding_length", u32(config.hidden_size)},
      {"block_count", u32(config.num_stored_layers())},
      {"feed_forward_length", u32(config.intermediate_size)},
      {"context_length", u32(512)},
      {"attention.head_count", u32(config.num_heads)},
      {"attention.head_count_kv", u32(config.num_kv_heads)},
      {family == "gemma3n" ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
       f32(family == "openelm" ? 1e-6 : 1e-5)}};
  if (family == "gptneox") {
    all["rope.dimension_count"] = u32(config.rope.full.rotary_dim);
    all["use_parallel_residual"] = flag(config.parallel_blocks);
  } else if (family == "mpt") {
    all["attention.clamp_kqv"] = f32(config.qkv_clip);
    all["attention.max_alibi_bias"] = f32(8);
  } else if (family == "gemma3n") {
    all["attention.key_length"] = u32(config.head_dim);
    all["attention.sliding_window"] = u32(24);
    all["attention.sliding_window_pattern"] = flags({true, false, true, false});
    all["attention.shared_kv_layers"] = u32(2);
    all["final_logit_softcapping"] = f32(config.logits_softcap);
    all["rope.freq_base"] = f32(1e6);
    all["rope.freq_base_swa"] = f32(1000);
    all["embedding_length_per_layer_input"] = u32(config.layer_input_size);
    all["altup.num_inputs"] = u32(config.streams.count);
    all["altup.active_idx"] = u32(config.streams.active);
    const float none = -INFINITY;
    all["activation_sparsity_scale"] = floats({0.8416212f, none, none, none});
  } else if (family != "falcon" && family != "bloom" && family != "gpt2") {
    add_own_keys(family, config, &all);
  }
  return all;
}

}  // namespace foretoken::test
