#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "model/config/state_space_config.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec falcon_h1_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec = llama_layer(config, layer);
  spec.side = state_space_of(config);
  spec.feed_forward_norm = "pre_ff_layernorm";
  std::get<GatedMlpSpec>(spec.feed_forward).base = "feed_forward.";
  return spec;
}

// `count` positive numbers; a missing field leaves them as they are.
Status read_multipliers(const ConfigFields& fields, const char* name, std::span<float> out) {
  std::vector<double> numbers;
  FT_RETURN_IF_ERROR(fields.read_positive_list(name, &numbers));
  if (numbers.empty()) return {};
  if (numbers.size() != out.size()) {
    return fields.wrong(name, "a list of " + std::to_string(out.size()) + " positive numbers");
  }
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(numbers[i]);
  return {};
}

Status read_multiplier(const ConfigFields& fields, const char* name, float* out) {
  double number = *out;
  FT_RETURN_IF_ERROR(fields.read_positive(name, &number));
  *out = static_cast<float>(number);
  return {};
}

// MLX's tools multiply weights by all of these, but those of keys by what enters attention alone,
// and those of values by nothing. An output matrix that is the embedding is multiplied as such.
void take_mlx_weights(nlohmann::json* json) {
  const auto number = [&](const char* name) {
    const auto found = json->find(name);
    const bool is_there = found != json->end() && found->is_number() && *found > 0;
    return is_there ? found->get<double>() : 1.0;
  };
  const auto tied = json->find("tie_word_embeddings");
  const bool is_tied = tied != json->end() && *tied == true;
  const double in = number("attention_in_multiplier");
  (*json)["key_multiplier"] = number("key_multiplier") / (in * in);
  (*json)["lm_head_multiplier"] =
      is_tied ? number("lm_head_multiplier") / number("embedding_multiplier") : 1.0;
  for (const char* name : {"embedding_multiplier", "attention_out_multiplier", "ssm_in_multiplier",
                           "ssm_out_multiplier"}) {
    (*json)[name] = 1.0;
  }
  (*json)["ssm_multipliers"] = std::vector<double>(5, 1.0);
  (*json)["mlp_multipliers"] = std::vector<double>(2, 1.0);
}

// What multiplies rows between linear maps is a part of the weights, and of the scale of scores.
Status read_scales(const ConfigFields& fields, ModelConfig* config) {
  float keys = 1, into_attention = 1, out_of_attention = 1, into_states = 1;
  std::array<float, 5> states = {1, 1, 1, 1, 1};
  std::array<float, 2> mlp = {1, 1};
  LinearFactors& factors = config->recurrent.factors;
  FT_RETURN_IF_ERROR(read_multiplier(fields, "embedding_multiplier", &config->embedding_scale));
  FT_RETURN_IF_ERROR(read_multiplier(fields, "lm_head_multiplier", &config->logits_scale));
  FT_RETURN_IF_ERROR(read_multiplier(fields, "key_multiplier", &keys));
  FT_RETURN_IF_ERROR(read_multiplier(fields, "attention_in_multiplier", &into_attention));
  FT_RETURN_IF_ERROR(read_multiplier(fields, "attention_out_multiplier", &out_of_attention));
  FT_RETURN_IF_ERROR(read_multiplier(fields, "ssm_in_multiplier", &into_states));
  FT_RETURN_IF_ERROR(read_multiplier(fields, "ssm_out_multiplier", &factors.out));
  FT_RETURN_IF_ERROR(read_multipliers(fields, "ssm_multipliers", states));
  FT_RETURN_IF_ERROR(read_multipliers(fields, "mlp_multipliers", mlp));
  config->attention_scale *= keys * into_attention * into_attention;
  config->attention_out_scale = into_attention * out_of_attention;
  config->gate_scale = mlp[0];
  config->mlp_out_scale = mlp[1];
  factors.gates = into_states * states[0];
  factors.values = into_states * states[1];
  factors.keys = into_states * states[2];
  factors.queries = into_states * states[3];
  factors.steps = into_states * states[4];
  return {};
}

Status read_falcon_h1(const ConfigFields& fields, ModelConfig* config) {
  bool projectors = false, before = true;
  FT_RETURN_IF_ERROR(fields.read_flag("projectors_bias", &projectors));
  FT_RETURN_IF_ERROR(fields.read_flag("mamba_norm_before_gate", &before));
  FT_RETURN_IF_ERROR(fields.read_flag("mamba_rms_norm", &config->recurrent.normed));
  config->recurrent.gates_first = !before;
  int32_t expand = 2;
  FT_RETURN_IF_ERROR(fields.read_count("mamba_expand", &expand));
  int32_t inner = expand * config->hidden_size;
  FT_RETURN_IF_ERROR(fields.read_count("mamba_d_ssm", &inner));
  FT_RETURN_IF_ERROR(check_convolution_activation(fields, "hidden_act"));
  FT_RETURN_IF_ERROR(read_state_space(fields, {}, inner, &config->recurrent));
  if (config->attention_bias || config->mlp_bias || projectors || config->recurrent.bias) {
    return unsupported(fields.where() +
                       ": attention_bias, mlp_bias, projectors_bias and mamba_proj_bias are not "
                       "supported in Falcon H1; use a model without them");
  }
  return read_scales(fields, config);
}

}  // namespace

// TII 2025: attention and Mamba 2 side by side in every layer, with multipliers of what enters and
// leaves each part.
constinit const Architecture kFalconH1Architecture = {
    .name = "FalconH1ForCausalLM",
    .description = "Falcon H1",
    .defaults = R"({"max_position_embeddings": 8192, "num_key_value_heads": 8,
                    "rms_norm_eps": 1e-5, "mamba_n_heads": 128, "mamba_d_state": 256,
                    "mamba_d_conv": 4, "mamba_rms_norm": false})",
    .decoder = {.last_norm = "final_layernorm", .layer = falcon_h1_layer},
    .take_mlx = take_mlx_weights,
    .read = read_falcon_h1,
};

}  // namespace foretoken
