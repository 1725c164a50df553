#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gguf/gguf_bytes.h"
#include "gguf/hf_names.h"
#include "model/config/config.h"
#include "model/config/rope_table.h"
#include "model/gguf_matrices.h"
#include "model/gguf_metadata.h"
#include "model/gguf_orders.h"
#include "model/mlx_family_files.h"

namespace foretoken::test {

// Families whose tensors converters put in another order than Hugging Face: the tiny models of
// tests/golden/architectures as llama.cpp's converter would write them.

// Value heads of `each` rows, behind `before` others, so that those of one key do not lie together
// but take turns with those of others.
inline std::vector<int64_t> turns_of_heads(const RecurrentConfig& sizes, int64_t before,
                                           int64_t each) {
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < before; ++row) rows.push_back(row);
  const int64_t of_key = sizes.value_heads / sizes.key_heads;
  for (int64_t turn = 0; turn < of_key; ++turn) {
    for (int64_t key = 0; key < sizes.key_heads; ++key) {
      for (int64_t i = 0; i < each; ++i) rows.push_back(before + (key * of_key + turn) * each + i);
    }
  }
  return rows;
}

// Of Qwen 3.5: every tensor that has rows, elements or columns of value heads.
inline void let_heads_take_turns(const RecurrentConfig& sizes, Matrices* all) {
  const int64_t keys = 2 * int64_t{sizes.key_heads} * sizes.key_dim;
  for (auto& [name, matrix] : *all) {
    const auto ends = [&](const char* ending) { return name.ends_with(ending); };
    if (ends("in_proj_qkv.weight") || ends("conv1d.weight")) {
      matrix = picked_rows(matrix, turns_of_heads(sizes, keys, sizes.value_dim));
    } else if (ends("in_proj_z.weight")) {
      matrix = picked_rows(matrix, turns_of_heads(sizes, 0, sizes.value_dim));
    } else if (ends("in_proj_a.weight") || ends("in_proj_b.weight") || ends("linear_attn.A") ||
               ends("dt_bias")) {
      matrix = picked_rows(matrix, turns_of_heads(sizes, 0, 1));
    } else if (ends("linear_attn.out_proj.weight")) {
      matrix =
          transposed(picked_rows(transposed(matrix), turns_of_heads(sizes, 0, sizes.value_dim)));
    }
  }
}

// Of Qwen 3 Next: queries, keys and values of all heads, and gates apart from them.
inline void divide_groups(const RecurrentConfig& sizes, const std::string& base, Matrices* all) {
  const auto whole = all->extract(base + "in_proj_qkvz.weight");
  if (whole.empty()) return;
  const int64_t key = sizes.key_dim;
  const int64_t values = sizes.value_heads / sizes.key_heads * int64_t{sizes.value_dim};
  std::vector<int64_t> first, gates;
  const auto take = [&](int64_t at, int64_t count, std::vector<int64_t>* rows) {
    for (int64_t head = 0; head < sizes.key_heads; ++head) {
      for (int64_t i = 0; i < count; ++i) rows->push_back(head * 2 * (key + values) + at + i);
    }
  };
  take(0, key, &first);
  take(key, key, &first);
  take(2 * key, values, &first);
  take(2 * key + values, values, &gates);
  (*all)[base + "in_proj_qkv.weight"] = picked_rows(whole.mapped(), first);
  (*all)[base + "in_proj_z.weight"] = picked_rows(whole.mapped(), gates);
}

inline const GgufArchitecture& architecture_of(const std::string& family) {
  for (const GgufArchitecture& architecture : gguf_architectures()) {
    if (architecture.name == family) return architecture;
  }
  ADD_FAILURE() << family;
  return gguf_architectures()[0];
}

// The name in a file of a tensor of the draft module behind so many layers; "" for others.
inline std::string module_name_in_file(const GgufArchitecture& architecture,
                                       const std::string& name, int32_t num_layers) {
  const std::string layer = std::to_string(num_layers) + ".";
  for (const GgufName& end : architecture.module_ends) {
    if (end.hf == name) return "blk." + layer + std::string(end.gguf);
  }
  const std::string front = std::string(architecture.modules) + "0.";
  if (architecture.modules.empty()) return gguf_tensor_name(architecture, name).value_or("");
  if (!name.starts_with(front)) return "";
  const std::string part = name.substr(front.size());
  for (const GgufName& own : architecture.module_tensors) {
    if (own.hf == part) return "blk." + layer + std::string(own.gguf);
  }
  return gguf_tensor_name(architecture, std::string(architecture.layers) + layer + part)
      .value_or("");
}

// Linear attention; vision is left out, and so are draft modules but that of Qwen 3.5.
inline void put_linear_in_order(const std::string& family, const ModelConfig& config,
                                Matrices* all) {
  Matrices renamed;
  for (auto& [name, matrix] : *all) {
    if (name.starts_with("model.visual.")) continue;
    std::string own = name;
    if (name.starts_with("mtp.")) {
      if (family != "qwen35") continue;
      own = module_name_in_file(architecture_of(family), name, config.num_layers);
    }
    if (const size_t at = own.find("language_model."); at != std::string::npos) own.erase(at, 15);
    if (own.ends_with(".A_log")) {
      own.resize(own.size() - 4);
      for (float& rate : matrix.values) rate = -std::exp(rate);
    }
    renamed[own] = std::move(matrix);
  }
  *all = std::move(renamed);
  if (family != "qwen3next") return let_heads_take_turns(config.recurrent, all);
  for (int32_t layer = 0; layer < config.num_layers; ++layer) {
    divide_groups(config.recurrent, "model.layers." + std::to_string(layer) + ".linear_attn.", all);
  }
}

// Rates of Mamba 2 instead of their logarithms, and shapes as its converter has them, which leaves
// draft modules out.
inline void put_states_in_order(const ModelConfig& config, Matrices* all) {
  Matrices renamed;
  for (auto& [name, matrix] : *all) {
    if (name.starts_with("mtp.")) continue;
    std::string own = name;
    const int64_t size = std::ssize(matrix.values);
    if (own.ends_with(".A_log")) {
      own.resize(own.size() - 4);
      for (float& value : matrix.values) value = -std::exp(value);
    }
    const bool has_heads = config.recurrent.key_heads > 0;  // of Mamba 2
    if (has_heads && (own.ends_with(".A") || own.ends_with(".D"))) matrix.shape = {size, 1};
    if (own.ends_with("mixer.norm.weight") || own.ends_with("mamba.norm.weight")) {
      matrix.shape = {config.recurrent.key_heads, size / config.recurrent.key_heads};
    }
    renamed[own] = std::move(matrix);
  }
  *all = std::move(renamed);
}

// Converters multiply matrices with the numbers that the model multiplies rows with.
inline void multiply_falcon_h1(const ModelConfig& config, Matrices* all) {
  const RecurrentConfig& sizes = config.recurrent;
  const LinearFactors& factors = sizes.factors;
  const int64_t inner = int64_t{sizes.value_heads} * sizes.value_dim;
  const int64_t maps = int64_t{sizes.key_heads} * sizes.key_dim;
  // Scores are the product of keys and queries, and all of what lies before them is in the keys.
  const float scores = config.attention_scale * std::sqrt(static_cast<float>(config.head_dim));
  for (auto& [name, matrix] : *all) {
    const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
    float factor = 1;
    if (has("down_proj")) factor = config.mlp_out_scale;
    if (has("gate_proj")) factor = config.gate_scale;
    if (has("k_proj")) factor = scores;
    if (has("o_proj")) factor = config.attention_out_scale;
    if (has("out_proj")) factor = factors.out;
    if (has("lm_head")) factor = config.logits_scale;
    if (has("embed_tokens")) factor = config.embedding_scale;
    const int64_t width = matrix.shape.size() > 1 ? matrix.shape[1] : 1;
    for (int64_t i = 0; i < std::ssize(matrix.values); ++i) {
      const int64_t row = i / width;
      const float of_states = row < inner                  ? factors.gates
                              : row < 2 * inner            ? factors.values
                              : row < 2 * inner + maps     ? factors.keys
                              : row < 2 * inner + 2 * maps ? factors.queries
                                                           : factors.steps;
      matrix.values[static_cast<size_t>(i)] *= has("in_proj") ? of_states : factor;
    }
  }
}

// Gates and ups of one tensor, of one expert or of all, become two.
inline void split_gates(const ModelConfig& config, const char* fused, Matrices* all) {
  Matrices apart;
  for (auto& [name, matrix] : *all) {
    const size_t at = name.find(fused);
    if (at == std::string::npos) {
      apart[name] = std::move(matrix);
      continue;
    }
    const bool stacked = matrix.shape.size() == 3;
    const int64_t count = stacked ? config.experts.count : 1;
    const int64_t half = std::ssize(matrix.values) / count / 2;
    std::vector<int64_t> shape = matrix.shape;
    shape[stacked ? 1 : 0] /= 2;
    for (const int64_t part : {0, 1}) {
      Matrix& to = apart[name.substr(0, at) + (part == 0 ? "gate_proj" : "up_proj") + ".weight"];
      to.shape = shape;
      for (int64_t e = 0; e < count; ++e) {
        const auto from = matrix.values.begin() + (2 * e + part) * half;
        to.values.insert(to.values.end(), from, from + half);
      }
    }
  }
  *all = std::move(apart);
}

// The factor of queries becomes the weight of a norm, and so does 1 of keys.
inline void add_glimmer_norms(const ModelConfig& config, Matrices* all) {
  Matrices own;
  for (auto& [name, matrix] : *all) {
    if (name.starts_with("model.vision")) continue;
    std::string plain = name;
    if (const size_t at = plain.find("language_model."); at != std::string::npos) {
      plain.erase(at, 15);
    }
    own[plain] = std::move(matrix);
  }
  const float queries = config.attention_scale * std::sqrt(static_cast<float>(config.head_dim));
  for (int32_t i = 0; i < config.num_layers; ++i) {
    const std::string before = "model.layers." + std::to_string(i) + ".self_attn.";
    const auto size = static_cast<size_t>(config.head_dim);
    own[before + "q_norm.weight"] = {{config.head_dim}, std::vector<float>(size, queries)};
    own[before + "k_norm.weight"] = {{config.head_dim}, std::vector<float>(size, 1.0f)};
  }
  *all = std::move(own);
}

// What scores of earlier blocks are made of becomes one vector.
inline void join_scores(Matrices* all) {
  Matrices scores;
  rename_all(all, [&](const std::string& name, Matrix& matrix) -> std::string {
    const size_t at = name.find("_res_");
    if (at == std::string::npos) return name;
    Matrix& score = scores[name.substr(0, at) + "_res_score.weight"];
    const int64_t size = std::ssize(matrix.values);
    if (score.values.empty()) score = {{size}, std::vector<float>(matrix.values.size(), 1.0f)};
    for (size_t i = 0; i < score.values.size(); ++i) score.values[i] *= matrix.values[i];
    return "";
  });
  all->merge(scores);
}

// Kernels have four dimensions, rates are those of heads alone, gates of latent attention are apart
// from others, and what latents become is divided.
inline void put_kimi_in_order(const ModelConfig& config, Matrices* all) {
  rename_all(
      all, [](const std::string& name, Matrix&) { return replaced(name, "language_model.", ""); });
  divide_latents(config, all);
  join_scores(all);
  rename_all(all, [&](const std::string& name, Matrix& matrix) {
    if (name.find("_conv1d.") != std::string::npos) {
      matrix.shape = {1, matrix.shape.front(), 1, matrix.shape.back()};
    }
    if (name.ends_with(".A")) {
      matrix.shape = {config.recurrent.value_heads};
      matrix.values.resize(static_cast<size_t>(config.recurrent.value_heads));
    }
    for (int32_t i = 0; i < config.num_layers; ++i) {
      const std::string number = std::to_string(i);
      const bool attends = !config.layers[static_cast<size_t>(i)].recurrent;
      if (attends && name == "model.layers." + number + ".self_attn.g_proj.weight") {
        return "blk." + number + ".attn_gate.weight";
      }
    }
    return replaced(replaced(name, "embed_q", "k_b_proj"), "unembed_out", "v_b_proj");
  });
}

// Of DeepSeek V4: both projections are one matrix, and streams end as the model's do.
inline void put_module_in_order(const ModelConfig& config, Matrices* all) {
  const Matrix embedding = all->at("mtp.0.e_proj.weight"), state = all->at("mtp.0.h_proj.weight");
  const int64_t width = embedding.shape[1];
  Matrix& both = (*all)["mtp.0.eh_proj.weight"];
  both.shape = {embedding.shape[0], 2 * width};
  for (int64_t row = 0; row < embedding.shape[0]; ++row) {
    for (const Matrix* half : {&embedding, &state}) {
      const auto from = half->values.begin() + row * width;
      both.values.insert(both.values.end(), from, from + width);
    }
  }
  rename_all(all, [&](const std::string& name, Matrix&) {
    if (!name.starts_with("mtp.")) return name;
    return module_name_in_file(architecture_of("deepseek4"), name, config.num_layers);
  });
}

// Mixes of a layer become one tensor of four dimensions, and the first layer gets shares of values,
// which nothing reads.
inline void join_mixes(const ModelConfig& config, Matrices* all) {
  for (int32_t layer = 0; layer < config.num_layers; ++layer) {
    const std::string base = "model.layers." + std::to_string(layer) + ".attn.";
    Matrix joined{{6, 1, 1, config.hidden_size}, {}};
    for (const char* name : {"x_r", "x_w", "x_k", "x_v", "x_a", "x_g"}) {
      const auto one = all->extract(base + name);
      ASSERT_FALSE(one.empty()) << base + name;
      const std::vector<float>& values = one.mapped().values;
      joined.values.insert(joined.values.end(), values.begin(), values.end());
    }
    (*all)[base + "x_x"] = joined;
    (*all)[base + "r_k"].shape = {config.hidden_size};
    if (layer > 0) continue;
    for (const char* part : {"lora.0.weight", "lora.2.weight", "lora.2.bias"}) {
      (*all)[base + "v_lora." + part] = all->at(base + "a_lora." + part);
    }
  }
}

// Converters multiply the ends with what the model multiplies rows with.
inline void scale_ends(const ModelConfig& config, Matrices* all) {
  for (auto& [name, matrix] : *all) {
    const float factor = name.ends_with("wte.weight")       ? config.embedding_scale
                         : name.ends_with("lm_head.weight") ? config.logits_scale
                                                            : 1.0f;
    for (float& value : matrix.values) value *= factor;
  }
}

inline void put_in_order(const std::string& family, const ModelConfig& config, Matrices* all) {
  if (family == "gemma3n") {
    stack("model.altup_projections", 2, all);
    stack("model.altup_unembed_projections", 2, all);
  }
  Matrices renamed;
  for (auto& [name, matrix] : *all) {
    std::string own = name;
    const bool is_conv = matrix.shape.size() == 3 && matrix.shape[1] == 1;
    if (is_conv) matrix.shape = {matrix.shape[0], matrix.shape[2]};
    if (const size_t at = own.find("ln_mlp"); at != std::string::npos) {
      own.replace(at, 6, "input_layernorm");
    }
    const bool turned =
        (family == "gpt2" || family == "jais") && matrix.shape.size() == 2 &&
        (own.find(".attn.") != std::string::npos || own.find(".mlp.") != std::string::npos);
    const bool grouped = own.find("wqkv") != std::string::npos ||
                         (family != "chatglm" && !family.starts_with("bailingmoe") &&
                          own.find("query_key_value") != std::string::npos);
    renamed[own] = turned ? transposed(matrix) : grouped ? by_kind(matrix, config) : matrix;
  }
  *all = std::move(renamed);
  // Converters leave ERNIE's module out.
  std::erase_if(*all, [](const auto& entry) { return entry.first.starts_with("model.mtp_"); });
  if (family == "dbrx") stack_experts(config, all);
  // Of vision, which lies in a file of its own.
  std::erase_if(*all, [](const auto& entry) { return entry.first.starts_with("vi"); });
  if (family == "granitehybrid") {
    split_gates(config, "input_linear.weight", all);
    end_in_weight("block_sparse_moe.output_linear.weight", all);
  }
  if (family == "jais") scale_ends(config, all);
  if (family == "openelm") split_gates(config, "proj_1.weight", all);
  if (family == "muse-glimmer") add_glimmer_norms(config, all);
  if (family == "rwkv7") {
    join_mixes(config, all);
  } else if (family.starts_with("qwen3")) {
    put_linear_in_order(family, config, all);
  } else if (config.recurrent.key_heads > 0 || config.recurrent.step_rank > 0) {
    put_states_in_order(config, all);
  }
  if (family == "falcon-h1") multiply_falcon_h1(config, all);
  if (family.starts_with("kimi")) put_kimi_in_order(config, all);
  if (family == "mistral4" || family == "qwen35moe") end_in_weight("mlp.experts.down_proj", all);
  stack_each_expert(config, all);
  if (family == "deepseek4") put_module_in_order(config, all);
  if (family == "internlm2") take_apart("attention.wqkv.weight", "attention.", config, all);
  if (family == "bailingmoe") {
    take_apart("attention.query_key_value.weight", "attention.", config, all);
  }
  if (family == "baichuan") take_apart("self_attn.W_pack.weight", "self_attn.", config, all);
  if (family == "apertus") {
    std::erase_if(
        *all, [](const auto& entry) { return entry.first.find(".act_fn.") != std::string::npos; });
  }
}

// Queries, keys and values become one tensor.
inline void join_projections(Matrices* all) {
  Matrices joined;
  for (const auto& [name, matrix] : *all) {
    const size_t at = name.find("q_proj.weight");
    if (at == std::string::npos) continue;
    Matrix& to = joined[name.substr(0, at) + "qkv_proj.weight"];
    to.shape = {0, matrix.shape[1]};
    for (const char* part : {"q_proj.weight", "k_proj.weight", "v_proj.weight"}) {
      const Matrix& from = all->at(name.substr(0, at) + part);
      to.shape[0] += from.shape[0];
      to.values.insert(to.values.end(), from.values.begin(), from.values.end());
    }
  }
  std::erase_if(*all, [](const auto& entry) {
    const auto ends = [&](const char* part) { return entry.first.ends_with(part); };
    return ends("q_proj.weight") || ends("k_proj.weight") || ends("v_proj.weight");
  });
  all->merge(joined);
}

// Norms' weights, which folders of some families have less one.
inline void count_from_zero(const std::string& family, Matrices* all) {
  for (auto& [name, matrix] : *all) {
    if (!name.ends_with("norm.weight") || name.ends_with("linear_attn.norm.weight")) continue;
    // Of Muse Glimmer those of layers alone.
    if (family == "muse-glimmer" && !name.ends_with("layernorm.weight")) continue;
    for (float& value : matrix.values) ++value;
  }
}

// What Llama 3's scaling divides frequencies by, and ones for what turns with a window alone.
inline Matrix step_divisors(const ModelConfig& config) {
  RopeConfig plain = config.rope.full;
  plain.type = RopeType::kDefault;
  const std::vector<float> scaled = make_rope_table(config.rope.full, 512).inv_freq;
  const std::vector<float> own = make_rope_table(plain, 512).inv_freq;
  Matrix divisors{{config.head_dim / 2}, std::vector<float>(size_t(config.head_dim / 2), 1.0f)};
  for (size_t i = 0; i < own.size(); ++i) divisors.values[i] = own[i] / scaled[i];
  return divisors;
}

inline void write_gguf(const std::string& path, const std::string& family,
                       const std::string& folder,
                       const std::function<void(Matrices* all)>& change = {},
                       const std::function<void(std::map<std::string, Write>*)>& change_keys = {}) {
  const ModelConfig config = read_model_config(folder, {}).value();
  Matrices all = matrices_of(folder);
  std::map<std::string, std::vector<float>> numbers;  // of layers, by key
  for (const GgufName& number : architecture_of(family).numbers) {
    for (int32_t layer = 0; layer < config.num_layers; ++layer) {
      const Matrix& one =
          all.at("model.layers." + std::to_string(layer) + "." + std::string(number.hf));
      numbers[std::string(number.gguf)].push_back(one.values[0]);
    }
  }
  put_in_order(family, config, &all);
  if (architecture_of(family).interleaves_heads) interleave_heads(config, &all);
  if (architecture_of(family).whole_norms) count_from_zero(family, &all);
  if (change) change(&all);
  // Of layers without a window.
  if (family == "step35") all["rope_freqs"] = step_divisors(config);
  auto values = metadata(family, config);
  if (change_keys) change_keys(&values);
  GgufBytes file(all.size(), 1 + values.size() + numbers.size());
  file.text_value("general.architecture", family);
  for (const auto& [key, write] : values) write(file, family + "." + key);
  for (const auto& [key, each] : numbers) floats(each)(file, key);
  uint64_t offset = 0;
  for (const auto& [name, matrix] : all) {
    const auto own = name == "rope_freqs"       ? std::optional<std::string>("rope_freqs.weight")
                     : name.starts_with("blk.") ? std::optional<std::string>(name)
                                                : gguf_tensor_name(architecture_of(family), name);
    ASSERT_TRUE(own.has_value()) << name;
    file.text(*own).number(static_cast<uint32_t>(matrix.shape.size()));
    for (auto extent = matrix.shape.rbegin(); extent != matrix.shape.rend(); ++extent) {
      file.number(static_cast<uint64_t>(*extent));
    }
    file.number(matrix.whole ? uint32_t{26} : uint32_t{0}).number(offset);
    offset += (matrix.values.size() * 4 + 31) / 32 * 32;
  }
  file.align();
  for (const auto& [name, matrix] : all) {
    for (const float value : matrix.values) {
      matrix.whole ? file.number(static_cast<int32_t>(value)) : file.number(value);
    }
    file.align();
  }
  file.write(path);
}

}  // namespace foretoken::test
