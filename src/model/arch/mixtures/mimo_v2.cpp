#include <nlohmann/json.hpp>

#include "model/config/families.h"
#include "model/config/missing_parts.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

GqaSpec mimo_v2_attention(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.value_dim = config.value_head_dim;
  attention.value_scale = config.value_scale;
  const bool has_sinks = layer.window > 0 ? config.windowed_sinks : config.full_sinks;
  if (has_sinks) attention.sinks = "attention_sink_bias";
  return attention;
}

LayerSpec mimo_v2_layer(const ModelConfig& config, const LayerConfig& layer) {
  return pre_norm_layer(mimo_v2_attention(config, layer),
                        experts_or_mlp(config, layer, experts_of(config)));
}

LayerSpec mimo_v2_module(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec = pre_norm_layer(mimo_v2_attention(config, layer), gated_mlp_of(config, layer));
  spec.feed_forward_norm = "pre_mlp_layernorm";
  return spec;
}

// The list of numbers says which layers have a window; rotary embeddings of both kinds have fields
// of their own.
Status translate_mimo_v2(const ConfigFields& fields, Json* json) {
  const Json* layout = fields.find("attention_projection_layout");
  if (layout != nullptr && *layout != "split") {
    return refuse_parts(kShardedProjections, fields.where());
  }
  if (const Json* pattern = fields.find("hybrid_layer_pattern")) {
    if (!pattern->is_array()) return fields.wrong("hybrid_layer_pattern", "a list of 0 and 1");
    Json types = Json::array();
    for (const Json& entry : *pattern) {
      types.push_back(entry == 0 ? "full_attention" : "sliding_attention");
    }
    (*json)["layer_types"] = std::move(types);
  }
  // Beside the row itself.
  int32_t before = 0;
  FT_RETURN_IF_ERROR(fields.read_count("sliding_window_size", &before));
  if (before > 0) (*json)["sliding_window"] = before + 1;
  if (fields.find("rope_parameters") != nullptr) return {};
  double part = 1, theta = 5000000, windowed = 10000;
  FT_RETURN_IF_ERROR(fields.read_positive("partial_rotary_factor", &part));
  FT_RETURN_IF_ERROR(fields.read_positive("rope_theta", &theta));
  FT_RETURN_IF_ERROR(fields.read_positive("swa_rope_theta", &windowed));
  const auto rope = [&](double own) {
    return Json{{"rope_type", "default"}, {"rope_theta", own}, {"partial_rotary_factor", part}};
  };
  (*json)["rope_parameters"] = {{"full_attention", rope(theta)},
                                {"sliding_attention", rope(windowed)}};
  return {};
}

// Layers with a window have heads of the same sizes here, as the published models have.
Status read_windowed_heads(const ConfigFields& fields, ModelConfig* config) {
  int32_t kv_heads = 2 * config->num_kv_heads, heads = config->num_heads;
  int32_t dim = config->head_dim, value_dim = config->value_head_dim;
  FT_RETURN_IF_ERROR(fields.read_count("swa_num_key_value_heads", &kv_heads));
  FT_RETURN_IF_ERROR(fields.read_count("swa_num_attention_heads", &heads));
  FT_RETURN_IF_ERROR(fields.read_count("swa_head_dim", &dim));
  FT_RETURN_IF_ERROR(fields.read_count("swa_v_head_dim", &value_dim));
  if (dim != config->head_dim || value_dim != config->value_head_dim) {
    return unsupported(fields.where() +
                       ": swa_head_dim or swa_v_head_dim other than head_dim and v_head_dim is "
                       "not supported; use a model like MiMo V2 Flash");
  }
  for (LayerConfig& layer : config->layers) {
    if (layer.window == 0) continue;
    layer.num_kv_heads = kv_heads;
    layer.num_heads = heads;
  }
  return {};
}

Status read_mimo_v2(const ConfigFields& fields, ModelConfig* config) {
  config->value_head_dim = config->head_dim;
  double scale = 1;
  FT_RETURN_IF_ERROR(fields.read_count("v_head_dim", &config->value_head_dim));
  FT_RETURN_IF_ERROR(fields.read_positive("attention_value_scale", &scale));
  config->value_scale = static_cast<float>(scale);
  if (config->attention_bias || config->value_head_dim > config->head_dim) {
    return unsupported(fields.where() +
                       ": attention_bias, or a v_head_dim above head_dim, is not supported; use a "
                       "model like MiMo V2 Flash");
  }
  config->windowed_sinks = true;
  FT_RETURN_IF_ERROR(fields.read_flag("add_swa_attention_sink_bias", &config->windowed_sinks));
  FT_RETURN_IF_ERROR(fields.read_flag("add_full_attention_sink_bias", &config->full_sinks));
  FT_RETURN_IF_ERROR(read_windowed_heads(fields, config));
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoid;
  experts.groups = ExpertGroups::kBestTwo;
  experts.correction = true;
  experts.normalised = true;
  return read_mixture(fields, &experts, &config->layers);
}

// The draft modules in the same files, which draft_head.h reads, and towers.
constexpr const char* kMimoV2Others[] = {"model.mtp.", "visual.", "audio_encoder.",
                                         "speech_embeddings."};

constexpr Architecture mimo_v2(const char* name, const char* description) {
  return {
      .name = name,
      .description = description,
      .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 4, "head_dim": 192,
                      "v_head_dim": 128, "rms_norm_eps": 1e-5, "n_routed_experts": 256,
                      "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
                      "partial_rotary_factor": 0.334})",
      .window_rule = WindowRule::kPattern,
      .decoder = {.ignored = kMimoV2Others, .layer = mimo_v2_layer},
      .mtp = {.layers = "mtp.layers.",
              .counts_on = false,
              .output_norm = "final_layernorm",
              .chains_normed = true,
              .passes_states = true,
              .count = 3,
              .layer = mimo_v2_module,
              .windowed = true},
      .translate = translate_mimo_v2,
      .read = read_mimo_v2,
  };
}

}  // namespace

// Xiaomi 2025: five layers with a window for each without, more key heads and sinks in these,
// scaled values of smaller heads, DeepSeek V3's mixtures without a shared expert. Its modules,
// three in published files, have a window and no mixture; all pair with the target's states, as in
// SGLang (multi_layer_eagle_worker_v2).
constinit const Architecture kMimoV2Architecture =
    mimo_v2("MiMoV2FlashForCausalLM", "MiMo V2 Flash, with its MTP modules as drafters");
// Newer exports, whose queries, keys and values lie apart or in one matrix of several ranks'
// pieces, of which the first are read.
constinit const Architecture kMimoV2_5Architecture =
    mimo_v2("MiMoV2ForCausalLM", "MiMo V2.5 and later, with projections apart; their text part");

}  // namespace foretoken
