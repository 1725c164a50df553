#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/config/state_space_config.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec bamba_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec = llama_layer(config, layer);
  if (layer.recurrent) spec.mixer = state_space_of(config);
  spec.feed_forward_norm = "pre_ff_layernorm";
  std::get<GatedMlpSpec>(spec.feed_forward).base = "feed_forward.";
  return spec;
}

// Layers with attention are listed.
Status translate_bamba(const ConfigFields& fields, Json* json) {
  return write_attending_layers(fields, "attn_layer_indices", "mamba", json);
}

Status read_bamba(const ConfigFields& fields, ModelConfig* config) {
  int32_t expand = 2;
  FT_RETURN_IF_ERROR(fields.read_count("mamba_expand", &expand));
  FT_RETURN_IF_ERROR(check_convolution_activation(fields, "hidden_act"));
  return read_state_space(fields, {}, int64_t{expand} * config->hidden_size, &config->recurrent);
}

}  // namespace

// IBM, Princeton, CMU and UIUC 2024: Llama's blocks with Mamba 2 instead of attention in most
// layers; half of each head turns.
constinit const Architecture kBambaArchitecture = {
    .name = "BambaForCausalLM",
    .description = "Bamba",
    .defaults = R"({"max_position_embeddings": 262144, "num_key_value_heads": 8,
                    "rms_norm_eps": 1e-5, "partial_rotary_factor": 0.5, "mamba_n_heads": 128,
                    "mamba_d_state": 256, "mamba_d_conv": 4})",
    .decoder = {.last_norm = "final_layernorm", .layer = bamba_layer},
    .recurrent_type = "mamba",
    .translate = translate_bamba,
    .read = read_bamba,
};

}  // namespace foretoken
