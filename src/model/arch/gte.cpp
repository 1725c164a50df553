#include <cmath>
#include <nlohmann/json.hpp>

#include "model/arch/encoders.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec gte_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = true;
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.fused = true;
  mlp.ups_first = true;
  mlp.down_bias = true;
  return summed_layer(attention, mlp);
}

// Frequencies of a base that is so many times as large, over factor^(2 / head_dim), whatever the
// length of a text.
Status take_stretched_base(const ConfigFields& fields, const Json& scaling, Json* json) {
  const ConfigFields rope(scaling, fields.where() + " (rope_scaling)");
  if (rope.find("mixed_b") != nullptr) return not_built(rope, "mixed_b", "null there");
  double factor = 1, theta = 10000;
  int32_t hidden = 0, heads = 0;
  FT_RETURN_IF_ERROR(rope.need_positive("factor", &factor));
  FT_RETURN_IF_ERROR(fields.read_positive("rope_theta", &theta));
  FT_RETURN_IF_ERROR(fields.need_count("hidden_size", &hidden));
  FT_RETURN_IF_ERROR(fields.need_count("num_attention_heads", &heads));
  (*json)["rope_theta"] = theta * factor;
  (*json)["rope_scaling"] = {{"rope_type", "linear"},
                             {"factor", std::pow(factor, 2.0 * heads / hidden)}};
  return {};
}

bool is_stretched(const Json* scaling) {
  if (scaling == nullptr || !scaling->is_object()) return false;
  return scaling->value("type", scaling->value("rope_type", Json())) == "ntk";
}

Status translate_gte(const ConfigFields& fields, Json* json) {
  const Json* positions = fields.find("position_embedding_type");
  if (positions != nullptr && *positions != "rope") {
    return not_built(fields, "position_embedding_type", "rotary positions");
  }
  const Json* norms = fields.find("layer_norm_type");
  if (norms != nullptr && *norms != "layer_norm") {
    return not_built(fields, "layer_norm_type", "layer norms");
  }
  const Json* scaled = fields.find("logn_attention_scale");
  if (scaled != nullptr && *scaled != false)
    return not_built(fields, "logn_attention_scale", "false there");
  const Json* packed = fields.find("pack_qkv");
  if (packed != nullptr && *packed != true) return not_built(fields, "pack_qkv", "true there");
  const Json* scaling = fields.find("rope_scaling");
  if (is_stretched(scaling)) FT_RETURN_IF_ERROR(take_stretched_base(fields, *scaling, json));
  (*json)["attention_bias"] = true;
  see_whole_texts(json);
  return {};
}

Status read_gte(const ConfigFields&, ModelConfig* config) {
  config->last_norm = false;
  config->rope.max_context = config->max_position_embeddings;
  return {};
}

}  // namespace

// Zhang et al. 2024.
constinit const Architecture kGteArchitecture = {
    .name = "GteModel",
    .description = "GTE, multilingual and v1.5, and Snowflake's Arctic Embed 2: to embed or judge",
    .defaults = R"({"hidden_act": "gelu", "layer_norm_eps": 1e-12, "rope_theta": 160000,
                    "max_position_embeddings": 8192})",
    .decoder = encoder(gte_layer),
    .translate = translate_gte,
    .read = read_gte,
};

}  // namespace foretoken
