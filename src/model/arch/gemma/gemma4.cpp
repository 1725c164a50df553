#include <nlohmann/json.hpp>

#include "model/config/families.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr int32_t kGlobalHeadDim = 512;
constexpr int32_t kGemma4Pattern = 6;

// A mixture beside the MLP, whose router reads the residual through a norm of its own.
BesideSpec experts_beside(const ModelConfig& config) {
  ExpertsSpec experts = experts_of(config);
  experts.files = ExpertFiles::kFused;
  experts.base = "";
  experts.router = "router.proj";
  experts.router_scale = "router.scale";
  experts.weight_scales = "router.per_expert_scale";
  return {.experts = experts,
          .norm = "pre_feedforward_layernorm_2",
          .post_norm = "post_feedforward_layernorm_2",
          .other_post_norm = "post_feedforward_layernorm_1"};
}

LayerSpec gemma4_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  attention.values_normed = true;
  attention.keys_are_values = config.keys_are_values && layer.window == 0;
  LayerSpec spec = sandwich_layer(attention, gated_mlp_of(config, layer));
  spec.input_size = config.layer_input_size;
  spec.scaled = true;
  if (layer.experts) spec.beside = experts_beside(config);
  return spec;
}

// Newer exports list what single layers have: those without a window, all the same.
const Json* own_field(const ConfigFields& fields, const char* name) {
  const Json* layers = fields.find("per_layer_config");
  if (layers == nullptr || !layers->is_object() || layers->empty()) return nullptr;
  const Json& first = *layers->begin();
  const auto found = first.is_object() ? first.find(name) : first.end();
  return found == first.end() || found->is_null() ? nullptr : &*found;
}

// The last layer never has a window.
Status translate_gemma4(const ConfigFields& fields, Json* json) {
  if (const Json* chosen = fields.find("top_k_experts")) (*json)["num_experts_per_tok"] = *chosen;
  if (const Json* dim = own_field(fields, "head_dim")) (*json)["global_head_dim"] = *dim;
  if (const Json* heads = own_field(fields, "num_key_value_heads")) {
    (*json)["num_global_key_value_heads"] = *heads;
  }
  if (fields.find("global_head_dim") == nullptr && own_field(fields, "head_dim") == nullptr) {
    (*json)["global_head_dim"] = kGlobalHeadDim;
  }
  int32_t num_layers = 0;
  FT_RETURN_IF_ERROR(fields.need_count("num_hidden_layers", &num_layers));
  Json& types = (*json)["layer_types"];
  if (types.is_null()) {
    types = Json::array();
    for (int32_t i = 1; i <= num_layers; ++i) {
      types.push_back(i % kGemma4Pattern == 0 ? "full_attention" : "sliding_attention");
    }
  }
  if (types.is_array() && !types.empty()) types.back() = "full_attention";
  return {};
}

// In the small models those that share keys and values have wider MLPs.
Status share_kv_of_gemma4(const ConfigFields& fields, ModelConfig* config) {
  bool wide = false;
  FT_RETURN_IF_ERROR(fields.read_flag("use_double_wide_mlp", &wide));
  FT_RETURN_IF_ERROR(share_kv(fields, &config->layers));
  for (LayerConfig& layer : config->layers) {
    if (wide && layer.kv_of >= 0) layer.intermediate_size = 2 * config->intermediate_size;
  }
  return {};
}

Status read_experts_beside(const ConfigFields& fields, ModelConfig* config) {
  bool exist = false;
  FT_RETURN_IF_ERROR(fields.read_flag("enable_moe_block", &exist));
  if (!exist) return {};
  config->experts.normalised = true;
  return read_mixture(fields, &config->experts, &config->layers);
}

Status read_gemma4(const ConfigFields& fields, ModelConfig* config) {
  config->attention_scale = 1;
  int32_t head_dim = kGlobalHeadDim, kv_heads = config->num_kv_heads;
  FT_RETURN_IF_ERROR(fields.read_flag("attention_k_eq_v", &config->keys_are_values));
  FT_RETURN_IF_ERROR(fields.read_count("global_head_dim", &head_dim));
  if (config->keys_are_values) {
    FT_RETURN_IF_ERROR(fields.read_count("num_global_key_value_heads", &kv_heads));
  }
  for (LayerConfig& layer : config->layers) {
    if (layer.window > 0) continue;
    layer.head_dim = head_dim;
    layer.num_kv_heads = kv_heads;
  }
  FT_RETURN_IF_ERROR(
      fields.read_count_or_none("hidden_size_per_layer_input", &config->layer_input_size));
  config->layer_input_vocab = config->vocab_size;
  FT_RETURN_IF_ERROR(fields.read_count("vocab_size_per_layer_input", &config->layer_input_vocab));
  FT_RETURN_IF_ERROR(read_experts_beside(fields, config));
  return share_kv_of_gemma4(fields, config);
}

constexpr const char* kGemma4Defaults =
    R"({"vocab_size": 262144, "hidden_size": 2304, "intermediate_size": 9216,
        "num_hidden_layers": 30, "num_attention_heads": 8, "num_key_value_heads": 4,
        "head_dim": 256, "max_position_embeddings": 131072, "sliding_window": 512,
        "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": true,
        "hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 262144,
        "rope_parameters": {
          "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
          "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
                             "rope_theta": 1000000.0}}})";

// Without an embedding of each layer.
constexpr const char* kGemma4UnifiedDefaults =
    R"({"vocab_size": 262144, "hidden_size": 2304, "intermediate_size": 9216,
        "num_hidden_layers": 30, "num_attention_heads": 8, "num_key_value_heads": 4,
        "head_dim": 256, "max_position_embeddings": 262144, "sliding_window": 1024,
        "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": true,
        "rope_parameters": {
          "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
          "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
                             "rope_theta": 1000000.0}}})";

// Tensors of the parts that read images and sounds.
constexpr const char* kGemma4Media[] = {
    "model.vision_tower.", "model.audio_tower.",    "model.embed_vision.", "model.embed_audio.",
    "vision_tower.",       "audio_tower.",          "embed_vision.",       "embed_audio.",
    "vision_embedder.",    "model.vision_embedder."};

}  // namespace

// Google 2026: Gemma 3's blocks with normed values; layers without a window have
// larger heads, of which a quarter turns; in the small models the last layers read the keys and
// values of earlier ones, and each layer mixes in an embedding of its own; the mixture has experts
// beside each MLP.
constinit const Architecture kGemma4Architecture = {
    .name = "Gemma4ForCausalLM",
    .description = "Gemma 4, text",
    .defaults = kGemma4Defaults,
    .window_rule = WindowRule::kPattern,
    .decoder = {.layer = gemma4_layer, .scaled_embedding = true},
    .translate = translate_gemma4,
    .read = read_gemma4,
};

constinit const Architecture kGemma4ConditionalArchitecture = {
    .name = "Gemma4ForConditionalGeneration",
    .description = "Gemma 4; its text part",
    .defaults = kGemma4Defaults,
    .window_rule = WindowRule::kPattern,
    .decoder = {.places = {{{"model.language_model.", "lm_head.weight"},
                            {"language_model.model.", "language_model.lm_head.weight"}}},
                .ignored = kGemma4Media,
                .layer = gemma4_layer,
                .scaled_embedding = true},
    .text_config = true,
    .translate = translate_gemma4,
    .read = read_gemma4,
};

// Google 2026: the same blocks, none of them with an embedding of its own.
constinit const Architecture kGemma4UnifiedArchitecture = {
    .name = "Gemma4UnifiedForCausalLM",
    .description = "Gemma 4 12B, text",
    .defaults = kGemma4UnifiedDefaults,
    .window_rule = WindowRule::kPattern,
    .decoder = {.layer = gemma4_layer, .scaled_embedding = true},
    .translate = translate_gemma4,
    .read = read_gemma4,
};

constinit const Architecture kGemma4UnifiedConditionalArchitecture = {
    .name = "Gemma4UnifiedForConditionalGeneration",
    .description = "Gemma 4 12B; its text part",
    .defaults = kGemma4UnifiedDefaults,
    .window_rule = WindowRule::kPattern,
    .decoder = {.places = {{{"model.language_model.", "lm_head.weight"},
                            {"language_model.model.", "language_model.lm_head.weight"}}},
                .ignored = kGemma4Media,
                .layer = gemma4_layer,
                .scaled_embedding = true},
    .text_config = true,
    .translate = translate_gemma4,
    .read = read_gemma4,
};

}  // namespace foretoken
