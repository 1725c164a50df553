#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec ouro_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec = llama_layer(config, layer);
  spec.mixer_post_norm = "input_layernorm_2";
  spec.feed_forward_post_norm = "post_attention_layernorm_2";
  return spec;
}

// The layers stand once in the files and run `total_ut_steps` times, with the last norm behind
// each.
Status read_ouro(const ConfigFields& fields, ModelConfig* config) {
  int32_t loops = 4;
  FT_RETURN_IF_ERROR(read_loops(fields, "total_ut_steps", &loops));
  config->repeat_layers(loops, true);
  return {};
}

// What would end a token's loops early, at a threshold that published files do not reach.
constexpr const char* kOuroGate[] = {"model.early_exit_gate."};

}  // namespace

// Zhu et al. 2025: Llama's blocks with norms behind both parts, too, whose layers run several
// times.
constinit const Architecture kOuroArchitecture = {
    .name = "OuroForCausalLM",
    .description = "Ouro 1.4B and 2.6B",
    .defaults = R"({"max_position_embeddings": 65536, "rope_theta": 1000000.0})",
    .decoder = {.ignored = kOuroGate, .layer = ouro_layer},
    .read = read_ouro,
};

}  // namespace foretoken
