#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf/own_keys.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// The rotary embedding of layers with or without a window, as an entry of rope_parameters.
struct RopeKeys {
  const char* theta;
  const char* turning;  // elements of a head
};
constexpr RopeKeys kFullRope = {"rope.freq_base", "rope.dimension_count"};
constexpr RopeKeys kWindowedRope = {"rope.freq_base_swa", "rope.dimension_count_swa"};

// `turning` elements of a head of `head_dim`. Readers cut the product off.
double share_of(double turning, double head_dim) {
  return std::min((turning + 0.25) / head_dim, 1.0);
}

Result<Json> plain_rope(const GgufFile& file, const std::string& prefix, const RopeKeys& keys,
                        double head_dim) {
  FT_ASSIGN_OR_RETURN(const auto theta, file.number(prefix + keys.theta));
  FT_ASSIGN_OR_RETURN(const auto turning, file.number(prefix + keys.turning));
  return Json{{"rope_type", "default"},
              {"rope_theta", theta.value_or(10000.0)},
              {"partial_rotary_factor", share_of(turning.value_or(head_dim), head_dim)}};
}

Status add_yarn(const GgufFile& file, const std::string& prefix, Json& rope) {
  FT_ASSIGN_OR_RETURN(const auto type, file.text(prefix + "rope.scaling.type"));
  if (!type || *type == "none") return {};
  if (*type != "yarn") {
    return unsupported(file.path() + ": '" + prefix + "rope.scaling.type' is '" + *type +
                       "'; yarn is read here; use the model's Hugging Face folder instead");
  }
  rope["rope_type"] = "yarn";
  for (const auto& [key, field] :
       {std::pair("factor", "factor"),
        std::pair("original_context_length", "original_max_position_embeddings"),
        std::pair("yarn_attn_factor", "attention_factor"), std::pair("yarn_beta_fast", "beta_fast"),
        std::pair("yarn_beta_slow", "beta_slow")}) {
    FT_ASSIGN_OR_RETURN(const auto value, file.number(prefix + "rope.scaling." + key));
    if (!value) continue;
    const bool counts = std::string_view(key).ends_with("length");
    rope[field] = counts ? Json(static_cast<int64_t>(*value)) : Json(*value);
  }
  return {};
}

// Every which layer, from the first on, has no window; files of one kind of layers have none.
Status add_laguna_types(const GgufFile& file, Json& config) {
  if (!config.contains("sliding_window") || config.contains("layer_types")) return {};
  FT_ASSIGN_OR_RETURN(const auto period, file.integer("laguna.attention.sliding_window_pattern"));
  const int64_t every = std::max(period.value_or(4), int64_t{1});
  const auto num_layers = config["num_hidden_layers"].get<int64_t>();
  Json types = Json::array();
  for (int64_t i = 0; i < num_layers; ++i) {
    types.push_back(i % every == 0 ? "full_attention" : "sliding_attention");
  }
  config["layer_types"] = std::move(types);
  return {};
}

// The entry of a layer in a list of one for each, or the number of all; 0: the list is too short.
int64_t entry_of(const Json& numbers, size_t layer) {
  if (!numbers.is_array()) return numbers.get<int64_t>();
  return layer < numbers.size() ? numbers[layer].get<int64_t>() : 0;
}

// A list, or the number of all layers.
Result<Json> by_layer(const GgufFile& file, const std::string& key, const Json& otherwise) {
  if (file.find(key) == nullptr) return otherwise;
  const auto list = file.integers(key);
  return list.ok() && !list.value().empty() ? Json(list.value()) : otherwise;
}

// Heads of layers with a window may be others.
Status add_step_heads(const GgufFile& file, size_t num_layers, Json& config) {
  const Json types = config.value("layer_types", Json::array());
  FT_ASSIGN_OR_RETURN(const Json heads,
                      by_layer(file, "step35.attention.head_count", config["num_attention_heads"]));
  const Json kv_heads = config["num_key_value_heads"];
  Json other = {{"attention_type", "sliding_attention"}};
  for (size_t i = 0; i < num_layers; ++i) {
    const bool windowed = i < types.size() && types[i] == "sliding_attention";
    (windowed ? other : config)["num_attention_heads"] = entry_of(heads, i);
    (windowed ? other : config)[windowed ? "num_attention_groups" : "num_key_value_heads"] =
        entry_of(kv_heads, i);
  }
  if (config["num_key_value_heads"].is_array()) config["num_key_value_heads"] = kv_heads[0];
  config["attention_other_setting"] = std::move(other);
  return {};
}

Status add_limits(const GgufFile& file, const char* key, const char* field, Json& config) {
  const std::string name = std::string("step35.") + key;
  if (file.find(name) == nullptr) return {};
  FT_ASSIGN_OR_RETURN(const std::vector<double> limits, file.numbers(name));
  config[field] = limits;
  return {};
}

// Divisors of the frequencies are those of layers without a window, of which half of a head turns
// unless the file says more.
Status add_step_rope(const GgufFile& file, Json& config) {
  const auto head_dim = config["head_dim"].get<double>();
  FT_ASSIGN_OR_RETURN(Json full, plain_rope(file, "step35.", kFullRope, head_dim));
  FT_ASSIGN_OR_RETURN(const auto turning, file.number("step35.rope.dimension_count"));
  const double half = turning.value_or(head_dim) / 2;
  full["partial_rotary_factor"] = share_of(half, head_dim);
  FT_ASSIGN_OR_RETURN(Json windowed, plain_rope(file, "step35.", kWindowedRope, head_dim));
  const auto found = file.tensors().find("rope_freqs.weight");
  if (found != file.tensors().end() && found->second.type->name == "F32") {
    std::vector<float> divisors(static_cast<size_t>(found->second.num_bytes) / sizeof(float));
    FT_RETURN_IF_ERROR(file.read(found->second, divisors.data()));
    divisors.resize(std::min(divisors.size(), static_cast<size_t>(half / 2)));
    full["rope_type"] = "longrope";
    full["short_factor"] = full["long_factor"] = divisors;
    full["attention_factor"] = 1.0;
    full["original_max_position_embeddings"] = config["max_position_embeddings"];
  }
  config["rope_parameters"] = {{"full_attention", std::move(full)},
                               {"sliding_attention", std::move(windowed)}};
  return {};
}

// Sets the names of layers whose tensor `part` is in the file, with commas between them.
std::string layers_with(const GgufFile& file, int64_t num_layers, const char* part) {
  std::string numbers;
  for (int64_t i = 0; i < num_layers; ++i) {
    const std::string number = std::to_string(i);
    if (!file.tensors().contains("blk." + number + "." + part)) continue;
    numbers += (numbers.empty() ? "" : ",") + number;
  }
  return numbers;
}

}  // namespace

Status read_laguna_file(const GgufFile& file, Json& config) {
  const Json heads = config["num_attention_heads"];
  FT_ASSIGN_OR_RETURN(const Json each, by_layer(file, "laguna.attention.head_count", heads));
  if (each.is_array()) config["num_attention_heads_per_layer"] = each;
  const auto gates = file.tensors().find("blk.0.attn_gate.weight");
  const bool of_heads = gates == file.tensors().end() || gates->second.shape.empty() ||
                        gates->second.shape[0] == entry_of(each, 0);
  config["gating"] = of_heads ? "per-head" : "per-element";
  FT_ASSIGN_OR_RETURN(const auto dense, file.integer("laguna.leading_dense_block_count"));
  Json numbers = Json::array();
  const auto num_layers = config["num_hidden_layers"].get<int64_t>();
  for (int64_t i = 0; i < std::min(dense.value_or(0), num_layers); ++i) numbers.push_back(i);
  config["mlp_only_layers"] = std::move(numbers);
  FT_RETURN_IF_ERROR(add_laguna_types(file, config));
  const auto head_dim = config["head_dim"].get<double>();
  FT_ASSIGN_OR_RETURN(Json full, plain_rope(file, "laguna.", kFullRope, head_dim));
  FT_RETURN_IF_ERROR(add_yarn(file, "laguna.", full));
  FT_ASSIGN_OR_RETURN(Json windowed, plain_rope(file, "laguna.", kWindowedRope, head_dim));
  config["rope_parameters"] = {{"full_attention", std::move(full)},
                               {"sliding_attention", std::move(windowed)}};
  return {};
}

Status read_step35_file(const GgufFile& file, Json& config) {
  FT_ASSIGN_OR_RETURN(const auto modules, file.integer("step35.nextn_predict_layers"));
  const int64_t num_layers = config["num_hidden_layers"].get<int64_t>() - modules.value_or(0);
  if (num_layers < 1) {
    return file.error("'step35.nextn_predict_layers' leaves no layers; fetch the file again");
  }
  config["num_hidden_layers"] = num_layers;
  if (modules) config["num_nextn_predict_layers"] = *modules;
  FT_RETURN_IF_ERROR(add_step_heads(file, static_cast<size_t>(num_layers), config));
  config["moe_layers_enum"] = layers_with(file, num_layers, "ffn_gate_inp.weight");
  config["use_moe_router_bias"] = !layers_with(file, num_layers, "exp_probs_b.bias").empty();
  // A file of modules alone has no other layers.
  const int64_t all_layers = num_layers + modules.value_or(0);
  config["use_head_wise_attn_gate"] = !layers_with(file, all_layers, "attn_gate.weight").empty();
  FT_RETURN_IF_ERROR(add_limits(file, "swiglu_clamp_exp", "swiglu_limits", config));
  FT_RETURN_IF_ERROR(add_limits(file, "swiglu_clamp_shexp", "swiglu_limits_shared", config));
  return add_step_rope(file, config);
}

Status read_spark_file(const GgufFile& file, Json& config) {
  const auto head_dim = config["head_dim"].get<double>();
  FT_ASSIGN_OR_RETURN(Json full, plain_rope(file, "spark2_5.", kFullRope, head_dim));
  FT_ASSIGN_OR_RETURN(Json windowed, plain_rope(file, "spark2_5.", kWindowedRope, head_dim));
  config["rope_parameters"] = {{"full_attention", std::move(full)},
                               {"sliding_attention", std::move(windowed)}};
  return {};
}

}  // namespace foretoken
