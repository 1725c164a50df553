#include <nlohmann/json.hpp>

#include "model/arch/alibi.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec jais_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = true;
  attention.base = "attn.";
  attention.qkv = "c_attn";
  attention.o = "c_proj";
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.gate = "c_fc2";
  mlp.up = "c_fc";
  mlp.down = "c_proj";
  LayerSpec spec = pre_norm_layer(attention, mlp);
  spec.mixer_norm = "ln_1";
  spec.feed_forward_norm = "ln_2";
  return spec;
}

Status refuse_other_jais(const ConfigFields& fields, const char* name, const char* wanted) {
  const Json* value = fields.find(name);
  if (value == nullptr || *value == wanted) return {};
  return unsupported(fields.where() + ": " + name + " " + value->dump().substr(0, 80) +
                     " is not supported; use a model of " + wanted + " as Jais 13B");
}

Status translate_jais(const ConfigFields& fields, Json* json) {
  FT_RETURN_IF_ERROR(refuse_other_jais(fields, "position_embedding_type", "alibi"));
  FT_RETURN_IF_ERROR(refuse_other_jais(fields, "activation_function", "swiglu"));
  if (fields.find("alibi_scaling") != nullptr) {
    return unsupported(fields.where() +
                       ": alibi_scaling is not supported; set it to null for texts as long as the "
                       "model was trained with");
  }
  FT_RETURN_IF_ERROR(take_gpt2_names(fields, json));
  constexpr RenamedField kNames[] = {{"mup_embeddings_scale", "embeddings_scale"},
                                     {"mup_scale_qk_dot_by_d", "scale_qk_dot_by_d"}};
  take_renamed(fields, kNames, json);
  (*json)["hidden_act"] = "silu";
  (*json)["attention_bias"] = (*json)["mlp_bias"] = true;
  return {};
}

// Numbers by which models of other widths train alike.
Status read_jais(const ConfigFields& fields, ModelConfig* config) {
  double embedding = 1, output = 1, alpha = 1, width = 1;
  bool by_size = false;
  FT_RETURN_IF_ERROR(fields.read_positive("embeddings_scale", &embedding));
  FT_RETURN_IF_ERROR(fields.read_positive("mup_output_alpha", &alpha));
  FT_RETURN_IF_ERROR(fields.read_positive("mup_width_scale", &width));
  output = alpha * width;
  FT_RETURN_IF_ERROR(fields.read_positive("width_scale", &output));
  FT_RETURN_IF_ERROR(fields.read_flag("scale_qk_dot_by_d", &by_size));
  config->embedding_scale = static_cast<float>(embedding);
  config->logits_scale = static_cast<float>(output);
  if (by_size) config->attention_scale = 1.0F / static_cast<float>(config->head_dim);
  fall_with_distance(config, alibi_slopes(config->num_heads));
  return {};
}

// Slopes, which follow from the number of heads.
constexpr const char* kJaisSlopes[] = {"transformer.relative_pe."};

// MLX's tools turn matrices back.
void take_mlx_jais(Json* json) { (*json)["plain_matrices"] = true; }

}  // namespace

// Sengupta et al. 2023: GPT-2's blocks with gated MLPs, and scores that fall with distance.
constinit const Architecture kJaisArchitecture = {
    .name = "JAISLMHeadModel",
    .description = "Jais 13B, 30B and Jais family",
    .defaults = R"({"vocab_size": 84992, "n_positions": 2048, "layer_norm_epsilon": 1e-5,
                    "tie_word_embeddings": true})",
    .decoder = {.places = {{{"transformer.", "lm_head.weight"}, {nullptr, nullptr}}},
                .embedding = "wte",
                .layers = "h.",
                .last_norm = "ln_f",
                .transposed = true,
                .ignored = kJaisSlopes,
                .layer = jais_layer,
                .norms = {.kind = NormKind::kLayer, .bias = true}},
    .translate = translate_jais,
    .take_mlx = take_mlx_jais,
    .read = read_jais,
};

}  // namespace foretoken
