#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/arch/encoders.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Norms stand before parts, or behind them.
LayerSpec molmo_layer_of(const GqaSpec& attention, const ModelConfig& config,
                         const LayerConfig& layer, const char* mlp_base) {
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.fused = mlp.ups_first = true;
  mlp.base = mlp_base;
  mlp.gate_up = "ff_proj";
  mlp.down = "ff_out";
  LayerSpec spec = {.mixer = attention, .feed_forward = mlp};
  (config.norms_behind ? spec.mixer_post_norm : spec.mixer_norm) = "attn_norm";
  (config.norms_behind ? spec.feed_forward_post_norm : spec.feed_forward_norm) = "ff_norm";
  return spec;
}

GqaSpec molmo_attention(const ModelConfig& config, const LayerConfig& layer, const char* base) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = true;
  attention.base = base;
  attention.qkv = "att_proj";
  attention.o = "attn_out";
  return attention;
}

LayerSpec molmo_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = molmo_attention(config, layer, "");
  if (config.qk_norm) attention.qk_norm = QkNorm::kWidth;
  return molmo_layer_of(attention, config, layer, "");
}

LayerSpec molmo2_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = molmo_attention(config, layer, "self_attn.");
  if (config.qk_norm) attention.qk_norm = QkNorm::kHead;
  if (config.qk_norm_is_wide) attention.qk_norm = QkNorm::kWidth;
  return molmo_layer_of(attention, config, layer, "mlp.");
}

Status read_molmo(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(fields.read_flag("norm_after", &config->norms_behind));
  return fields.read_flag("attention_layer_norm", &config->qk_norm);
}

// intermediate_size is that of gates and ups together, and embedding_size that of the vocabulary
// with the ids that fill it up.
Status translate_molmo(const ConfigFields& fields, Json* json) {
  const Json* kind = fields.find("layer_norm_type");
  if (kind != nullptr && *kind != "rms") return not_built(fields, "layer_norm_type", "\"rms\"");
  if (fields.find("clip_qkv") != nullptr) return not_built(fields, "clip_qkv", "null");
  constexpr RenamedField kNames[] = {{"layer_norm_eps", "rms_norm_eps"},
                                     {"qkv_bias", "attention_bias"},
                                     {"weight_tying", "tie_word_embeddings"},
                                     {"embedding_size", "vocab_size"}};
  (*json)["tie_word_embeddings"] = false;
  take_renamed(fields, kNames, json);
  (*json)["attention_out_bias"] = false;
  int32_t inner = 0;
  FT_RETURN_IF_ERROR(fields.need_count("intermediate_size", &inner));
  if (inner % 2 != 0) return fields.wrong("intermediate_size", "an even number");
  (*json)["intermediate_size"] = inner / 2;
  return {};
}

Status read_molmo2(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(fields.read_flag("norm_after", &config->norms_behind));
  config->qk_norm = true;
  FT_RETURN_IF_ERROR(fields.read_flag("use_qk_norm", &config->qk_norm));
  const Json* kind = fields.find("qk_norm_type");
  if (kind != nullptr && *kind != "qwen3" && *kind != "olmo") {
    return fields.wrong("qk_norm_type", "\"qwen3\" or \"olmo\"");
  }
  config->qk_norm_is_wide = config->qk_norm && kind != nullptr && *kind == "olmo";
  return {};
}

// Angles of the layers that rope_scaling_layers leaves out are as without a scaling: those of
// layers with a window, which is so wide here that these see everything.
Status write_scaled_layers(const ConfigFields& fields, Json* json) {
  const Json* list = fields.find("rope_scaling_layers");
  const Json* scaling = fields.find("rope_parameters");
  if (scaling == nullptr) scaling = fields.find("rope_scaling");
  if (list == nullptr || scaling == nullptr) return {};
  int32_t layers = 0;
  FT_RETURN_IF_ERROR(fields.need_count("num_hidden_layers", &layers));
  const bool fits = list->is_array() && std::ranges::all_of(*list, [](const Json& number) {
                      return number.is_number_integer() && number >= 0 && number <= 1 << 24;
                    });
  if (!fits) return fields.wrong("rope_scaling_layers", "a list of the numbers of layers");
  Json types = Json::array(), plain = {{"rope_type", "default"}}, scaled = *scaling;
  for (int32_t i = 0; i < layers; ++i) {
    const bool is_scaled = std::find(list->begin(), list->end(), i) != list->end();
    types.push_back(is_scaled ? "full_attention" : "sliding_attention");
  }
  if (std::find(types.begin(), types.end(), "sliding_attention") == types.end()) return {};
  const Json* theta = fields.find("rope_theta");
  if (scaling->is_object() && scaling->contains("rope_theta")) theta = &scaling->at("rope_theta");
  if (theta != nullptr) plain["rope_theta"] = scaled["rope_theta"] = *theta;
  json->erase("rope_scaling");
  (*json)["layer_types"] = types;
  (*json)["sliding_window"] = 1 << 24;
  (*json)["rope_parameters"] = {{"full_attention", scaled}, {"sliding_attention", plain}};
  return {};
}

Status translate_molmo2(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"layer_norm_eps", "rms_norm_eps"},
                                     {"qkv_bias", "attention_bias"}};
  take_renamed(fields, kNames, json);
  (*json)["attention_out_bias"] = false;
  return write_scaled_layers(fields.of(*json), json);
}

// Rows of ids that only images have, and the tower.
constexpr const char* kMolmoVision[] = {"model.transformer.wte.new_embedding",
                                        "model.vision_backbone."};

constexpr DecoderTraits molmo_traits(const char* head,
                                     LayerSpec (*layer)(const ModelConfig&, const LayerConfig&)) {
  return {.places = {{{"model.transformer.", head}, {nullptr, nullptr}}},
          .embedding = "wte",
          .layers = "blocks.",
          .last_norm = "ln_f",
          .ignored = kMolmoVision,
          .layer = layer};
}

}  // namespace

// Deitke et al. 2024, around Qwen 2 and OLMo.
constinit const Architecture kMolmoArchitecture = {
    .name = "MolmoForCausalLM",
    .description = "Molmo 7B-D, 7B-O and 72B; their text part",
    .defaults =
        R"({"max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "attention_bias": false})",
    .decoder = molmo_traits("model.transformer.ff_out.weight", molmo_layer),
    .translate = translate_molmo,
    .read = read_molmo,
};

// Ai2 2025, around Qwen 3 and OLMo 3.
constinit const Architecture kMolmo2Architecture = {
    .name = "Molmo2ForConditionalGeneration",
    .description = "Molmo 2; its text part",
    .defaults = R"({"max_position_embeddings": 36864, "rms_norm_eps": 1e-6, "head_dim": 128,
                    "num_key_value_heads": 8, "attention_bias": false})",
    .window_rule = WindowRule::kNever,
    .decoder = molmo_traits("lm_head.weight", molmo2_layer),
    .text_config = true,
    .translate = translate_molmo2,
    .read = read_molmo2,
};

}  // namespace foretoken
