#include <nlohmann/json.hpp>

#include "model/config/state_space_config.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr StateSpaceNames kMamba2Names = {.heads = "num_heads",
                                          .head_dim = "head_dim",
                                          .groups = "n_groups",
                                          .state_size = "state_size",
                                          .conv_width = "conv_kernel",
                                          .conv_bias = "use_conv_bias",
                                          .bias = "use_bias"};

LayerSpec mamba2_layer(const ModelConfig& config, const LayerConfig&) {
  LinearSpec mixer = state_space_of(config);
  mixer.base = "mixer.";
  return {.mixer_norm = "norm", .mixer = mixer, .feed_forward = Absent{}};
}

// No layer attends or has an MLP; what asks for their sizes gets those of the heads.
Status translate_mamba2(const ConfigFields& fields, Json* json) {
  int32_t heads = 0, head_dim = 0, num_layers = 0;
  FT_RETURN_IF_ERROR(fields.need_count("num_heads", &heads));
  FT_RETURN_IF_ERROR(fields.need_count("head_dim", &head_dim));
  FT_RETURN_IF_ERROR(fields.need_count("num_hidden_layers", &num_layers));
  if (num_layers > 1 << 16) return fields.wrong("num_hidden_layers", "at most 2^16");
  (*json)["num_attention_heads"] = (*json)["num_key_value_heads"] = heads;
  (*json)["intermediate_size"] = heads;
  (*json)["layer_types"] = std::vector<std::string>(static_cast<size_t>(num_layers), "mamba");
  return {};
}

Status read_mamba2(const ConfigFields& fields, ModelConfig* config) {
  int32_t expand = 2;
  FT_RETURN_IF_ERROR(fields.read_count("expand", &expand));
  for (LayerConfig& layer : config->layers) layer.feed_forward = false;
  FT_RETURN_IF_ERROR(check_convolution_activation(fields, "hidden_act"));
  return read_state_space(fields, kMamba2Names, int64_t{expand} * config->hidden_size,
                          &config->recurrent);
}

}  // namespace

// Dao and Gu 2024: layers of state spaces alone, as Codestral Mamba and its like are published in
// transformers' form. Texts have no bound but that of memory; the field that other models have is
// one here.
constinit const Architecture kMamba2Architecture = {
    .name = "Mamba2ForCausalLM",
    .description = "Mamba 2",
    .defaults = R"({"max_position_embeddings": 262144, "layer_norm_epsilon": 1e-5,
                    "num_heads": 128, "head_dim": 64, "n_groups": 8, "state_size": 128,
                    "conv_kernel": 4})",
    .decoder = {.places = {{{"backbone.", "lm_head.weight"}, {"model.", "lm_head.weight"}}},
                .embedding = "embeddings",
                .last_norm = "norm_f",
                .layer = mamba2_layer},
    .recurrent_type = "mamba",
    .translate = translate_mamba2,
    .read = read_mamba2,
};

}  // namespace foretoken
