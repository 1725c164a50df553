#include "gguf/mistral_params.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/files/json_object.h"
#include "base/files/text_file.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;
using MistralNames = std::pair<std::string_view, std::string_view>;

constexpr MistralNames kMistralFields[] = {{"dim", "hidden_size"},
                                           {"n_layers", "num_hidden_layers"},
                                           {"head_dim", "head_dim"},
                                           {"hidden_dim", "intermediate_size"},
                                           {"n_heads", "num_attention_heads"},
                                           {"n_kv_heads", "num_key_value_heads"},
                                           {"norm_eps", "rms_norm_eps"},
                                           {"vocab_size", "vocab_size"},
                                           {"rope_theta", "rope_theta"},
                                           {"sliding_window", "sliding_window"},
                                           {"max_seq_len", "max_position_embeddings"},
                                           {"max_position_embeddings", "max_position_embeddings"},
                                           {"tied_embeddings", "tie_word_embeddings"},
                                           {"q_lora_rank", "q_lora_rank"},
                                           {"kv_lora_rank", "kv_lora_rank"},
                                           {"qk_rope_head_dim", "qk_rope_head_dim"},
                                           {"qk_nope_head_dim", "qk_nope_head_dim"},
                                           {"v_head_dim", "v_head_dim"}};
constexpr MistralNames kMixtureFields[] = {{"num_experts", "n_routed_experts"},
                                           {"num_experts_per_tok", "num_experts_per_tok"},
                                           {"expert_hidden_dim", "moe_intermediate_size"},
                                           {"routed_scale", "routed_scaling_factor"},
                                           {"num_shared_experts", "n_shared_experts"},
                                           {"first_k_dense_replace", "first_k_dense_replace"},
                                           {"num_expert_groups", "n_group"},
                                           {"num_expert_groups_per_tok", "topk_group"}};
constexpr MistralNames kYarnFields[] = {
    {"factor", "factor"},
    {"original_max_position_embeddings", "original_max_position_embeddings"},
    {"beta", "beta_fast"},
    {"alpha", "beta_slow"}};
// Of a mixture, how its trainer spread the experts over devices.
constexpr std::string_view kRunSettings[] = {"expert_parallel", "expert_model_parallel"};
// Of which a model may say that it has none.
constexpr std::string_view kNothing[] = {
    "use_biases",          "moe",  "multimodal",     "quantization",
    "quantization_config", "yarn", "llama_4_scaling"};
constexpr std::string_view kQuantization[] = {"quantization", "quantization_config"};

// Puts a field under the name that it has in a config.json; false: the table has it not.
bool translate(std::span<const MistralNames> table, const std::string& name, const Json& value,
               Json* config) {
  const auto known = std::ranges::find(table, std::string_view(name),
                                       [](const MistralNames& field) { return field.first; });
  if (known == table.end()) return false;
  (*config)[std::string(known->second)] = value;
  return true;
}

Status not_read(const std::string& path, const std::string& name) {
  return unsupported(path + ": '" + name +
                     "' is not read in Mistral's own layout; fetch config.json and "
                     "model*.safetensors of the same repository, or a GGUF file");
}

class MistralParams {
 public:
  MistralParams(std::string path, const Json& params) : path_(std::move(path)), params_(params) {}

  Result<Json> config() {
    for (const auto& [name, value] : params_.items()) FT_RETURN_IF_ERROR(read(name, value));
    return std::move(config_);
  }

 private:
  bool has(const char* name) const {
    const auto found = params_.find(name);
    return found != params_.end() && found->is_object() && !found->empty();
  }
  bool is_latent() const { return params_.contains("qk_nope_head_dim"); }

  Status read(const std::string& name, const Json& value) {
    if (name == "vision_encoder" || name == "dtype") return {};
    if (name == "max_seq_len" && params_.contains("max_position_embeddings")) return {};
    if (translate(kMistralFields, name, value, &config_)) return {};
    if (name == "moe" && has("moe")) return read_mixture(value);
    if (name == "yarn" && has("yarn")) return read_yarn(value);
    if (name == "llama_4_scaling" && has("llama_4_scaling")) return read_growth(value);
    const bool codes = std::ranges::find(kQuantization, name) != std::end(kQuantization);
    if (codes && has(name.c_str())) return read_quantization(name, value);
    return says_nothing(name, value) ? Status() : not_read(path_, name);
  }

  // That the model is as all others are.
  static bool says_nothing(const std::string& name, const Json& value) {
    if (name == "causal") return value == true || value.is_null();
    if (name == "model_type") return value == "transformer";
    if (name == "activation") return value == "silu";
    const bool may_be_none = std::ranges::find(kNothing, name) != std::end(kNothing);
    return may_be_none && (value.is_null() || value == false);
  }

  // That a mixture is as all others are.
  static bool is_usual(const std::string& name, const Json& value) {
    if (value.is_null()) return true;
    if (std::ranges::find(kRunSettings, name) != std::end(kRunSettings)) return value.is_number();
    if (name == "route_every_n") return value == 1;
    if (name == "renorm_strategy") return value == "WEIGHTS";
    return name == "use_load_balancing_bias" && value == false;
  }

  // With shared experts Mistral's routers are those of Mistral 4, else those of Mixtral.
  Status read_mixture(const Json& moe) {
    const bool shares = moe.value("num_shared_experts", Json(0)) != 0;
    if (shares != is_latent()) return not_read(path_, "moe");
    for (const auto& [name, value] : moe.items()) {
      if (translate(kMixtureFields, name, value, &config_)) continue;
      if (!is_usual(name, value)) return not_read(path_, "moe." + name);
    }
    if (shares) {
      config_["norm_topk_prob"] = true;
      return {};
    }
    for (const auto& [own, usual] : kMixtureFields) {
      if (own != "num_experts" && own != "num_experts_per_tok" && moe.contains(own)) {
        return not_read(path_, "moe." + std::string(own));
      }
    }
    config_["num_local_experts"] = config_["n_routed_experts"];
    config_.erase("n_routed_experts");
    return {};
  }

  Json& rope() {
    Json& rope = config_["rope_parameters"];
    if (rope.is_null()) {
      rope = {{"rope_type", "yarn"}, {"mscale", 1.0}, {"mscale_all_dim", 1.0}};
      rope["rope_theta"] = params_.value("rope_theta", Json(10000.0));
    }
    return rope;
  }

  // Angles alone are stretched: what is scaled is the query, by `llama_4_scaling`.
  Status read_yarn(const Json& yarn) {
    for (const auto& [name, value] : yarn.items()) {
      if (name == "apply_scale" && value == false) continue;
      if (!translate(kYarnFields, name, value, &rope())) return not_read(path_, "yarn." + name);
    }
    return {};
  }

  Status read_growth(const Json& growth) {
    const Json context = growth.value("original_max_position_embeddings", Json());
    if (!has("yarn") || !growth.contains("beta") ||
        context != params_["yarn"].value("original_max_position_embeddings", Json())) {
      return not_read(path_, "llama_4_scaling");
    }
    rope()["llama_4_scaling_beta"] = growth["beta"];
    return {};
  }

  // Mistral's own FP8, or what compressed-tensors says in a config.json, too.
  Status read_quantization(const std::string& name, const Json& quantization) {
    const Json method = quantization.value("quant_method", Json());
    if (method == "compressed-tensors" || method == "compressed_tensors") {
      config_["quantization_config"] = quantization;
      config_["quantization_config"]["quant_method"] = "compressed-tensors";
      return {};
    }
    const Json activations = quantization.value("qscheme_act", Json("TENSOR"));
    if (quantization.value("qformat_weight", Json()) != "fp8_e4m3" ||
        (activations != "TENSOR" && activations != "NO_SCALES" && !activations.is_null())) {
      return not_read(path_, name);
    }
    config_["quantization_config"] = {
        {"quant_method", "fp8"},
        {"activation_scheme", activations == "NO_SCALES" ? "dynamic" : "static"}};
    return {};
  }

  const std::string path_;
  const Json& params_;
  Json config_ = {{"rope_theta", 10000.0},
                  {"sliding_window", nullptr},
                  {"max_position_embeddings", 32768},
                  {"hidden_act", "silu"},
                  {"torch_dtype", "bfloat16"}};
};

// The class of transformers that is the model.
MistralNames class_of(const Json& config) {
  if (config.contains("qk_nope_head_dim")) return {"Mistral4ForCausalLM", "mistral4"};
  if (config.contains("num_local_experts")) return {"MixtralForCausalLM", "mixtral"};
  if (config.contains("rope_parameters")) return {"Ministral3ForCausalLM", "ministral3"};
  return {"MistralForCausalLM", "mistral"};
}

}  // namespace

bool has_mistral_params(const std::filesystem::path& folder) {
  std::error_code ignored;
  const auto has = [&](const char* name) {
    return std::filesystem::exists(folder / name, ignored);
  };
  return has("params.json") && !has("config.json") &&
         (has("consolidated.safetensors") || has("consolidated.safetensors.index.json"));
}

Result<Json> mistral_config(const std::filesystem::path& folder) {
  const std::string path = (folder / "params.json").string();
  FT_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  FT_ASSIGN_OR_RETURN(const Json params, parse_json_object(text, path));
  FT_ASSIGN_OR_RETURN(Json config, MistralParams(path, params).config());
  const auto [name, type] = class_of(config);
  const bool has_experts = config.contains("n_routed_experts");
  if (type == "mistral4" && !has_experts) return not_read(path, "qk_nope_head_dim");
  if (type == "mixtral" && config.contains("rope_parameters")) return not_read(path, "yarn");
  config["architectures"] = Json::array({std::string(name)});
  config["model_type"] = std::string(type);
  return config;
}

}  // namespace foretoken
