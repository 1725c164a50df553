#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/config/state_space_config.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr SelectiveNames kMambaNames = {.state_size = "state_size",
                                        .conv_width = "conv_kernel",
                                        .conv_bias = "use_conv_bias",
                                        .bias = "use_bias",
                                        .step_rank = "time_step_rank"};

LayerSpec mamba_layer(const ModelConfig& config, const LayerConfig&) {
  return {.mixer_norm = "norm", .mixer = selective_of(config), .feed_forward = Absent{}};
}

LayerSpec falcon_mamba_layer(const ModelConfig& config, const LayerConfig&) {
  SelectiveSpec mixer = selective_of(config);
  mixer.norms = SelectiveNorms::kPlain;
  mixer.norm_eps = config.recurrent.norm_eps;
  return {.mixer_norm = "norm", .mixer = mixer, .feed_forward = Absent{}};
}

// No layer attends or has an MLP; what asks how ranks divide them goes by the channels.
Status translate_mamba(const ConfigFields& fields, Json* json) {
  int32_t num_layers = 0, hidden = 0, inner = 0, expand = 2;
  FT_RETURN_IF_ERROR(fields.need_count("num_hidden_layers", &num_layers));
  if (num_layers > 1 << 16) return fields.wrong("num_hidden_layers", "at most 2^16");
  FT_RETURN_IF_ERROR(fields.need_count("hidden_size", &hidden));
  FT_RETURN_IF_ERROR(fields.read_count("expand", &expand));
  inner = expand * hidden;
  FT_RETURN_IF_ERROR(fields.read_count("intermediate_size", &inner));
  (*json)["intermediate_size"] = inner;
  (*json)["num_attention_heads"] = (*json)["num_key_value_heads"] = inner;
  (*json)["head_dim"] = 64;
  (*json)["layer_types"] = std::vector<std::string>(static_cast<size_t>(num_layers), "mamba");
  return {};
}

Status read_mamba(const ConfigFields& fields, ModelConfig* config) {
  for (LayerConfig& layer : config->layers) layer.feed_forward = false;
  double eps = 1e-6;
  FT_RETURN_IF_ERROR(fields.read_positive("mixer_rms_eps", &eps));
  config->recurrent.norm_eps = static_cast<float>(eps);
  return read_selective(fields, kMambaNames, config->intermediate_size, config->hidden_size,
                        &config->recurrent);
}

constexpr DecoderTraits mamba_decoder(LayerSpec (*layer)(const ModelConfig&, const LayerConfig&)) {
  return {.places = {{{"backbone.", "lm_head.weight"}, {"model.", "lm_head.weight"}}},
          .embedding = "embeddings",
          .last_norm = "norm_f",
          .layer = layer};
}

constexpr const char* kMambaDefaults =
    R"({"max_position_embeddings": 262144, "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": true})";

}  // namespace

// Gu and Dao 2023: layers of selective state spaces alone. Texts have no bound but that of memory;
// the field that other models have is one here.
constinit const Architecture kMambaArchitecture = {
    .name = "MambaForCausalLM",
    .description = "Mamba",
    .defaults = kMambaDefaults,
    .decoder = mamba_decoder(mamba_layer),
    .recurrent_type = "mamba",
    .translate = translate_mamba,
    .read = read_mamba,
};

// TII 2024: the same with norms of what states are made of.
constinit const Architecture kFalconMambaArchitecture = {
    .name = "FalconMambaForCausalLM",
    .description = "Falcon Mamba",
    .defaults = kMambaDefaults,
    .decoder = mamba_decoder(falcon_mamba_layer),
    .recurrent_type = "mamba",
    .translate = translate_mamba,
    .read = read_mamba,
};

}  // namespace foretoken
