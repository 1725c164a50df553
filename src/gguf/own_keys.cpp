#include "gguf/own_keys.h"

#include <cmath>
#include <string>
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
  if (const GgufValue* pattern = file.find("gemma3n.attention.sliding_window_pattern")) {
    const auto* windowed = std::get_if<std::vector<bool>>(pattern);
    nlohmann::json types = nlohmann::json::array();
    for (size_t i = 0; windowed != nullptr && i < windowed->size(); ++i) {
      types.push_back((*windowed)[i] ? "sliding_attention" : "full_attention");
    }
    if (!types.empty()) config["layer_types"] = std::move(types);
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

}  // namespace foretoken
