#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "kernels/linear/causal_conv.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

GqaSpec lfm2_attention(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  attention.o = "out_proj";
  attention.q_norm = "q_layernorm";
  attention.k_norm = "k_layernorm";
  return attention;
}

GatedMlpSpec lfm2_mlp(const ModelConfig& config, const LayerConfig& layer) {
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.base = "feed_forward.";
  mlp.gate = "w1";
  mlp.up = "w3";
  mlp.down = "w2";
  return mlp;
}

LayerSpec lfm2_blocks(const MixerSpec& mixer, const FeedForwardSpec& feed_forward) {
  return {.mixer_norm = "operator_norm",
          .mixer = mixer,
          .feed_forward_norm = "ffn_norm",
          .feed_forward = feed_forward};
}

LayerSpec lfm2_layer(const ModelConfig& config, const LayerConfig& layer) {
  const GatedMlpSpec mlp = lfm2_mlp(config, layer);
  if (layer.recurrent) return lfm2_blocks(short_conv_of(config), mlp);
  return lfm2_blocks(lfm2_attention(config, layer), mlp);
}

LayerSpec lfm2_moe_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec = lfm2_layer(config, layer);
  if (!layer.experts) return spec;
  ExpertsSpec experts = experts_of(config);
  experts.base = "feed_forward.";
  experts.gate = "w1";
  experts.up = "w3";
  experts.down = "w2";
  experts.correction = config.experts.correction ? "expert_bias" : nullptr;
  spec.feed_forward = experts;
  return spec;
}

// Names of attention as Qwen 3 has them, a gate of each head, and norms behind both parts, too.
LayerSpec lfm3_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec = lfm2_layer(config, layer);
  spec.mixer_post_norm = "post_operator_norm";
  spec.feed_forward_post_norm = "post_ffn_norm";
  if (layer.recurrent) return spec;
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  if (config.head_gates) attention.gates = HeadGates::kEachHead;
  spec.mixer = attention;
  return spec;
}

// The MLPs' width: block_ff_dim, of which two thirds count, rounded up, unless the file says
// otherwise.
Status translate_width(const ConfigFields& fields, Json* json) {
  int32_t width = 0, multiple = 256;
  double factor = 1;
  bool adjusts = true;
  FT_RETURN_IF_ERROR(fields.need_count("intermediate_size", &width));
  FT_RETURN_IF_ERROR(fields.read_count("block_ff_dim", &width));
  FT_RETURN_IF_ERROR(fields.read_count("block_multiple_of", &multiple));
  FT_RETURN_IF_ERROR(fields.read_positive("block_ffn_dim_multiplier", &factor));
  FT_RETURN_IF_ERROR(fields.read_flag("block_auto_adjust_ff_dim", &adjusts));
  double adjusted = width;
  if (adjusts) {
    adjusted = std::floor(factor * (2 * int64_t{width} / 3));
    if (fields.find("block_ffn_dim_multiplier") != nullptr) {
      adjusted = std::ceil(adjusted / multiple) * multiple;
    }
  }
  if (adjusted < 1 || adjusted > 1 << 24) {
    return fields.wrong("block_ffn_dim_multiplier", "a number that leaves a width up to 2^24");
  }
  (*json)["intermediate_size"] = static_cast<int32_t>(adjusted);
  return {};
}

// Files may list the layers with attention alone.
Status translate_types(const ConfigFields& fields, Json* json) {
  const char* name = "full_attn_idxs";
  if (fields.find("layer_types") != nullptr || fields.find(name) == nullptr) return {};
  return write_attending_layers(fields, name, "conv", json);
}

Status translate_lfm2_moe(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"tie_embedding", "tie_word_embeddings"},
                                     {"num_dense_layers", "first_k_dense_replace"}};
  take_renamed(fields, kNames, json);
  return translate_types(fields, json);
}

Status translate_lfm2(const ConfigFields& fields, Json* json) {
  FT_RETURN_IF_ERROR(translate_width(fields, json));
  return translate_lfm2_moe(fields, json);
}

// Of four layers the first attends to a window, but for the very first, and the third to all.
Status translate_lfm3(const ConfigFields& fields, Json* json) {
  const auto type_of = [](int32_t i, int32_t) {
    return i % 4 == 2 ? "full_attention" : i % 4 == 0 && i > 0 ? "sliding_attention" : "conv";
  };
  return write_layer_types(fields, type_of, json);
}

Status read_lfm2(const ConfigFields& fields, ModelConfig* config) {
  RecurrentConfig& recurrent = config->recurrent;
  recurrent.channels = config->hidden_size;
  FT_RETURN_IF_ERROR(fields.need_count("conv_L_cache", &recurrent.conv_width));
  if (recurrent.conv_width < 2 || recurrent.conv_width > kMaxConvWidth) {
    return fields.wrong("conv_L_cache", "from 2 to " + std::to_string(kMaxConvWidth));
  }
  return fields.read_flag("conv_bias", &recurrent.bias);
}

Status read_lfm2_moe(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(read_lfm2(fields, config));
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoid;
  experts.correction = experts.normalised = true;
  FT_RETURN_IF_ERROR(fields.read_flag("use_expert_bias", &experts.correction));
  return read_mixture(fields, &experts, &config->layers);
}

Status read_lfm3(const ConfigFields& fields, ModelConfig* config) {
  config->head_gates = true;
  bool normed = true;
  FT_RETURN_IF_ERROR(fields.read_flag("use_attention_gate", &config->head_gates));
  FT_RETURN_IF_ERROR(fields.read_flag("use_sandwich_norm", &normed));
  if (!normed) {
    return unsupported(fields.where() +
                       ": use_sandwich_norm false is not supported; use a model like LFM 3, whose "
                       "parts are normed behind, too");
  }
  return read_lfm2(fields, config);
}

constexpr const char* kLfm2Defaults =
    R"({"max_position_embeddings": 128000, "intermediate_size": 12288, "num_key_value_heads": 8,
        "norm_eps": 1e-5, "rope_theta": 1000000.0, "tie_word_embeddings": true, "conv_L_cache": 3,
        "block_ffn_dim_multiplier": 1.0})";

constexpr const char* kLfm2Vision[] = {"model.vision_tower.", "vision_tower.",
                                       "model.multi_modal_projector.", "multi_modal_projector."};

}  // namespace

// Liquid AI 2025: gated short convolutions in most layers, and attention whose queries and keys are
// normed in the others.
constinit const Architecture kLfm2Architecture = {
    .name = "Lfm2ForCausalLM",
    .description = "LFM 2 and 2.5",
    .defaults = kLfm2Defaults,
    .decoder = {.last_norm = "embedding_norm", .layer = lfm2_layer},
    .recurrent_type = "conv",
    .translate = translate_lfm2,
    .read = read_lfm2,
};

// Liquid AI 2025: the same with vision, of which only the text part is read.
constinit const Architecture kLfm2VlArchitecture = {
    .name = "Lfm2VlForConditionalGeneration",
    .description = "LFM 2 VL; its text part",
    .defaults = kLfm2Defaults,
    .decoder = {.places = {{{"model.language_model.", "lm_head.weight"},
                            {"language_model.model.", "language_model.lm_head.weight"}}},
                .last_norm = "embedding_norm",
                .ignored = kLfm2Vision,
                .layer = lfm2_layer},
    .text_config = true,
    .recurrent_type = "conv",
    .translate = translate_lfm2,
    .read = read_lfm2,
};

// Liquid AI 2025: the same with mixtures behind the first layers.
constinit const Architecture kLfm2MoeArchitecture = {
    .name = "Lfm2MoeForCausalLM",
    .description = "LFM 2 and 2.5, mixtures",
    .defaults = R"({"max_position_embeddings": 128000, "intermediate_size": 7168,
                    "num_key_value_heads": 8, "norm_eps": 1e-5, "rope_theta": 1000000.0,
                    "tie_word_embeddings": true, "conv_L_cache": 3, "num_dense_layers": 2,
                    "num_experts": 32, "num_experts_per_tok": 4, "moe_intermediate_size": 1792})",
    .decoder = {.last_norm = "embedding_norm", .layer = lfm2_moe_layer},
    .recurrent_type = "conv",
    .translate = translate_lfm2_moe,
    .read = read_lfm2_moe,
};

// Liquid AI 2026: LFM 2 with windows, gates of heads, and norms behind both parts.
constinit const Architecture kLfm3Architecture = {
    .name = "Lfm3ForCausalLM",
    .description = "LFM 3",
    .defaults = R"({"max_position_embeddings": 128000, "intermediate_size": 7680,
                    "num_key_value_heads": 4, "head_dim": 128, "norm_eps": 1e-5,
                    "tie_word_embeddings": true, "conv_L_cache": 7, "sliding_window": 256,
                    "rope_parameters": {
                      "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
                      "full_attention": {"rope_type": "proportional", "rope_theta": 1000000.0,
                                         "partial_rotary_factor": 0.5}}})",
    .decoder = {.last_norm = "embedding_norm", .layer = lfm3_layer},
    .recurrent_type = "conv",
    .translate = translate_lfm3,
    .read = read_lfm3,
};

}  // namespace foretoken
