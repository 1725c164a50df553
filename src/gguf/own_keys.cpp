#include "gguf/own_keys.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace foretoken {
namespace {

// Rows of a matrix; 0 where it is missing.
int64_t rows_of(const GgufFile& file, const std::string& name) {
  const auto found = file.tensors().find(name);
  return found == file.tensors().end() || found->second.shape.size() != 2 ? 0
                                                                          : found->second.shape[0];
}

// The share of a head that turns: that of divisors of 1, while the others leave nothing.
Result<double> turning_share(const GgufFile& file) {
  const auto found = file.tensors().find("rope_freqs.weight");
  if (found == file.tensors().end() || found->second.type->name != "F32") return 1.0;
  std::vector<float> divisors(static_cast<size_t>(found->second.num_bytes) / sizeof(float));
  FT_RETURN_IF_ERROR(file.read(found->second, divisors.data()));
  const auto turning = std::count(divisors.begin(), divisors.end(), 1.0f);
  return static_cast<double>(turning) / static_cast<double>(divisors.size());
}

// A list that has one entry for each layer, or one number of all: of the first layer of a kind.
nlohmann::json of_layer(const nlohmann::json& numbers, size_t layer) {
  return numbers.is_array() && layer < numbers.size() ? numbers[layer] : numbers;
}

// The numbers that differ between Gemma 4's layers with a window and its others.
void split_by_window(const GgufFile& file, nlohmann::json& config) {
  const nlohmann::json types = config.value("layer_types", nlohmann::json::array());
  const nlohmann::json heads = config["num_key_value_heads"];
  for (const auto& [type, field] : {std::pair("sliding_attention", "num_key_value_heads"),
                                    std::pair("full_attention", "num_global_key_value_heads")}) {
    const auto found = std::find(types.begin(), types.end(), type);
    if (found == types.end()) continue;
    const auto layer = static_cast<size_t>(found - types.begin());
    config[field] = of_layer(heads, layer);
    const std::string values = "blk." + std::to_string(layer) + ".attn_v.weight";
    config["attention_k_eq_v"] = !file.tensors().contains(values);
  }
  const nlohmann::json inner = config["intermediate_size"];
  config["use_double_wide_mlp"] = inner.is_array();
  config["intermediate_size"] = of_layer(inner, 0);
}

}  // namespace

Status read_falcon_file(const GgufFile& file, nlohmann::json& config) {
  const auto kv_heads = config["num_key_value_heads"].get<int64_t>();
  config["num_kv_heads"] = kv_heads;
  config["new_decoder_architecture"] = kv_heads > 1;
  config["multi_query"] = kv_heads == 1;
  config["ffn_hidden_size"] = config["intermediate_size"];
  config["bias"] = config["attention_bias"];
  config["num_ln_in_parallel_attn"] = file.tensors().contains("blk.0.attn_norm_2.weight") ? 2 : 1;
  return {};
}

Status read_gemma3n_file(const GgufFile& file, nlohmann::json& config) {
  FT_ASSIGN_OR_RETURN(const auto shared, file.integer("gemma3n.attention.shared_kv_layers"));
  config["num_kv_shared_layers"] = shared.value_or(0);
  for (const auto& [tensor, field] :
       {std::pair("per_layer_token_embd.weight", "vocab_size_per_layer_input"),
        std::pair("blk.0.laurel_l.weight", "laurel_rank")}) {
    const int64_t rows = rows_of(file, tensor);
    if (rows == 0) {
      return file.error(std::string("the tensor ") + tensor +
                        " is missing; convert the model again");
    }
    config[field] = rows;
  }
  const char* key = "gemma3n.activation_sparsity_scale";
  if (file.find(key) == nullptr) return {};
  FT_ASSIGN_OR_RETURN(const std::vector<double> deviations, file.numbers(key));
  nlohmann::json shares = nlohmann::json::array();
  // The file has standard deviations, minus infinity for none.
  for (const double value : deviations) shares.push_back(std::erfc(-value / std::sqrt(2.0)) / 2);
  config["activation_sparsity_pattern"] = std::move(shares);
  return {};
}

Status read_gemma4_file(const GgufFile& file, nlohmann::json& config) {
  const auto integer = [&](const char* key, int64_t otherwise) -> Result<int64_t> {
    FT_ASSIGN_OR_RETURN(const auto found, file.integer(std::string("gemma4.") + key));
    return found.value_or(otherwise);
  };
  const auto head_dim = config["head_dim"].get<int64_t>();
  config["global_head_dim"] = head_dim;
  FT_ASSIGN_OR_RETURN(config["head_dim"], integer("attention.key_length_swa", head_dim));
  FT_ASSIGN_OR_RETURN(config["num_kv_shared_layers"], integer("attention.shared_kv_layers", 0));
  FT_ASSIGN_OR_RETURN(config["hidden_size_per_layer_input"],
                      integer("embedding_length_per_layer_input", 0));
  if (const int64_t rows = rows_of(file, "per_layer_token_embd.weight"); rows > 0) {
    config["vocab_size_per_layer_input"] = rows;
  }
  split_by_window(file, config);
  config["enable_moe_block"] = config.contains("num_experts");
  config.erase("value_length");
  FT_ASSIGN_OR_RETURN(const double share, turning_share(file));
  FT_ASSIGN_OR_RETURN(const auto theta, file.number("gemma4.rope.freq_base"));
  FT_ASSIGN_OR_RETURN(const auto windowed, file.number("gemma4.rope.freq_base_swa"));
  config["rope_parameters"] = {
      {"full_attention",
       {{"rope_type", "proportional"},
        {"partial_rotary_factor", share},
        {"rope_theta", theta.value_or(1000000.0)}}},
      {"sliding_attention",
       {{"rope_type", "default"}, {"rope_theta", windowed.value_or(10000.0)}}}};
  return {};
}

Status read_deci_file(const GgufFile& file, nlohmann::json& config) {
  const auto num_layers = config["num_hidden_layers"].get<size_t>();
  const auto hidden = config["hidden_size"].get<double>();
  const auto heads = file.integers("deci.attention.head_count");
  nlohmann::json blocks = nlohmann::json::array();
  for (size_t i = 0; i < num_layers; ++i) {
    const auto kv_heads = of_layer(config["num_key_value_heads"], i).get<int64_t>();
    const auto inner = of_layer(config["intermediate_size"], i).get<int64_t>();
    const bool is_listed = heads.ok() && i < heads.value().size();
    const int64_t own = is_listed ? heads.value()[i] : config["num_attention_heads"].get<int64_t>();
    // Readers cut the product off.
    const double mult = (static_cast<double>(inner) + 0.25) * 3 / (2 * hidden);
    blocks.push_back({{"attention",
                       {{"no_op", kv_heads == 0 && own == 0},
                        {"replace_with_linear", kv_heads == 0 && own > 0},
                        {"n_heads_in_group", kv_heads > 0 ? own / kv_heads : 0}}},
                      {"ffn", {{"no_op", inner == 0}, {"ffn_mult", mult}}}});
  }
  config["block_configs"] = std::move(blocks);
  config["num_key_value_heads"] = config["num_attention_heads"];
  config["intermediate_size"] = 1;
  return {};
}

Status read_mimo2_file(const GgufFile& file, nlohmann::json& config) {
  const auto modules = config.value("num_nextn_predict_layers", int64_t{0});
  const auto num_layers = config["num_hidden_layers"].get<int64_t>() - modules;
  config["num_hidden_layers"] = num_layers;
  const nlohmann::json types = config.value("layer_types", nlohmann::json::array());
  const nlohmann::json heads = config["num_key_value_heads"];
  nlohmann::json own_types = nlohmann::json::array(), parts = nlohmann::json::array();
  config["add_swa_attention_sink_bias"] = config["add_full_attention_sink_bias"] = false;
  for (int64_t i = 0; i < num_layers; ++i) {
    const auto layer = static_cast<size_t>(i);
    const std::string before = "blk." + std::to_string(i) + ".";
    const bool windowed = layer < types.size() && types[layer] == "sliding_attention";
    own_types.push_back(windowed ? "sliding_attention" : "full_attention");
    config[windowed ? "swa_num_key_value_heads" : "num_key_value_heads"] = of_layer(heads, layer);
    if (file.tensors().contains(before + "attn_sinks.weight")) {
      config[windowed ? "add_swa_attention_sink_bias" : "add_full_attention_sink_bias"] = true;
    }
    const bool sparse = file.tensors().contains(before + "ffn_gate_inp.weight");
    parts.push_back(sparse ? "sparse" : "dense");
  }
  // A file of modules alone, which have a window, has no other layers.
  for (int64_t i = num_layers; i < num_layers + modules; ++i) {
    const std::string sinks = "blk." + std::to_string(i) + ".attn_sinks.weight";
    if (file.tensors().contains(sinks)) config["add_swa_attention_sink_bias"] = true;
  }
  if (config["num_key_value_heads"].is_array()) config["num_key_value_heads"] = of_layer(heads, 0);
  config["layer_types"] = std::move(own_types);
  config["mlp_layer_types"] = std::move(parts);
  // Readers cut the product with head_dim off.
  const auto head_dim = config["head_dim"].get<double>();
  FT_ASSIGN_OR_RETURN(const auto turning, file.number("mimo2.rope.dimension_count"));
  FT_ASSIGN_OR_RETURN(const auto theta, file.number("mimo2.rope.freq_base"));
  FT_ASSIGN_OR_RETURN(const auto windowed, file.number("mimo2.rope.freq_base_swa"));
  const double share = std::min((turning.value_or(head_dim) + 0.25) / head_dim, 1.0);
  const auto rope = [&](double own) {
    return nlohmann::json{
        {"rope_type", "default"}, {"rope_theta", own}, {"partial_rotary_factor", share}};
  };
  config["rope_parameters"] = {{"full_attention", rope(theta.value_or(10000.0))},
                               {"sliding_attention", rope(windowed.value_or(10000.0))}};
  return {};
}

void read_layer_types(const GgufFile& file, const std::string& architecture,
                      nlohmann::json& config) {
  const std::string key = architecture + ".attention.sliding_window_pattern";
  const GgufValue* pattern = file.find(key);
  if (pattern == nullptr) return;
  std::vector<bool> windowed;
  if (const auto* flags = std::get_if<std::vector<bool>>(pattern)) {
    windowed = *flags;
  } else if (const auto numbers = file.integers(key); numbers.ok()) {
    for (const int64_t number : numbers.value()) windowed.push_back(number != 0);
  }
  if (windowed.empty()) return;
  nlohmann::json types = nlohmann::json::array();
  for (const bool is_windowed : windowed) {
    types.push_back(is_windowed ? "sliding_attention" : "full_attention");
  }
  config["layer_types"] = std::move(types);
}

}  // namespace foretoken
