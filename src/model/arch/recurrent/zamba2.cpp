#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/config/state_space_config.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr float kGatedNormEps = 1e-5f;  // whatever the file says of the others

LayerSpec zamba2_layer(const ModelConfig& config, const LayerConfig& layer) {
  LinearSpec states = state_space_of(config);
  states.norm_eps = kGatedNormEps;
  LayerSpec spec;
  spec.feed_forward = Absent{};
  if (layer.recurrent) {
    spec.mixer_norm = "input_layernorm";
    spec.mixer = states;
    return spec;
  }
  states.base = "mamba_decoder.mamba.";
  GqaSpec attention = gqa_of(config, layer);
  attention.inputs = 2 * config.hidden_size;
  attention.base = "shared_transformer.self_attn.";
  spec.shared = {.from = layer.shared_from,
                 .use = layer.shared_use,
                 .rank = config.adapters.rank,
                 .adapts_attention = config.adapters.of_attention,
                 .num_heads = attention.num_heads,
                 .head_dim = attention.head_dim,
                 .inner = config.intermediate_size,
                 .activation = config.activation};
  spec.mixer = attention;
  spec.side = states;
  return spec;
}

// The kinds of layers, and heads as wide as twice the rows.
Status translate_zamba2(const ConfigFields& fields, Json* json) {
  const Json* types = fields.find("layers_block_type");
  if (types == nullptr) types = fields.find("layer_types");
  if (types == nullptr || !types->is_array()) {
    return fields.wrong("layers_block_type", "a list of \"mamba\" and \"hybrid\"");
  }
  const Json listed = *types;
  for (const char* name : {"layers_block_type", "layer_types"}) json->erase(name);
  for (const Json& type : listed) {
    (*json)["layer_types"].push_back(type == "hybrid" ? "full_attention" : "mamba");
  }
  int32_t hidden = 0, heads = 1;
  FT_RETURN_IF_ERROR(fields.need_count("hidden_size", &hidden));
  FT_RETURN_IF_ERROR(fields.need_count("num_attention_heads", &heads));
  (*json)["head_dim"] = json->value("attention_head_dim", Json(2 * hidden / heads));
  return {};
}

// Blocks take turns among the layers that have one; the first of each holds its weights.
Status read_shared_blocks(const ConfigFields& fields, ModelConfig* config) {
  int32_t blocks = 1;
  FT_RETURN_IF_ERROR(fields.read_count("num_mem_blocks", &blocks));
  FT_RETURN_IF_ERROR(fields.read_count("adapter_rank", &config->adapters.rank));
  FT_RETURN_IF_ERROR(
      fields.read_flag("use_shared_attention_adapter", &config->adapters.of_attention));
  std::vector<int32_t> first;
  int32_t uses = 0;
  for (int32_t i = 0; i < config->num_layers; ++i) {
    LayerConfig& layer = config->layers[static_cast<size_t>(i)];
    if (layer.recurrent) continue;
    if (uses < blocks) first.push_back(i);
    layer.shared_use = uses;
    layer.shared_from = first[static_cast<size_t>(uses % blocks)];
    ++uses;
  }
  if (!config->layers.front().recurrent) {
    return fields.wrong("layers_block_type", "a list that begins with \"mamba\"");
  }
  return {};
}

Status read_zamba2(const ConfigFields& fields, ModelConfig* config) {
  int32_t expand = 2;
  double least = 0.001;
  bool turns = false, is_long = false;
  FT_RETURN_IF_ERROR(fields.read_count("mamba_expand", &expand));
  FT_RETURN_IF_ERROR(read_state_space(fields,
                                      {.heads = "n_mamba_heads",
                                       .head_dim = "mamba_headdim",
                                       .groups = "mamba_ngroups",
                                       .conv_bias = "use_conv_bias",
                                       .bias = "add_bias_linear"},
                                      int64_t{expand} * config->hidden_size, &config->recurrent));
  FT_RETURN_IF_ERROR(fields.read_positive("time_step_min", &least));
  FT_RETURN_IF_ERROR(fields.read_flag("use_mem_rope", &turns));
  FT_RETURN_IF_ERROR(fields.read_flag("use_long_context", &is_long));
  if (is_long || config->recurrent.bias) {
    return unsupported(fields.where() +
                       ": use_long_context and add_bias_linear are not supported in Zamba 2; use a "
                       "model without them");
  }
  config->recurrent.min_step = static_cast<float>(least);
  config->attention_scale = 1 / std::sqrt(static_cast<float>(config->head_dim) / 2);
  for (LayerConfig& layer : config->layers) layer.rope = turns;
  return read_shared_blocks(fields, config);
}

}  // namespace

// Zyphra 2024: Mamba 2, before some of whose layers stand attention and an MLP that these have in
// common but for adapters, and that read the token's embedding beside the row.
constinit const Architecture kZamba2Architecture = {
    .name = "Zamba2ForCausalLM",
    .description = "Zamba 2",
    .defaults = R"({"max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
                    "hidden_act": "gelu", "n_mamba_heads": 8, "mamba_d_state": 64,
                    "mamba_d_conv": 4, "adapter_rank": 128, "tie_word_embeddings": true})",
    .decoder = {.last_norm = "final_layernorm", .layer = zamba2_layer},
    .recurrent_type = "mamba",
    .translate = translate_zamba2,
    .read = read_zamba2,
};

}  // namespace foretoken
