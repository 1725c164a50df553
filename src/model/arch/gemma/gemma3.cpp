#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// As Gemma 2, with norms of q and k instead of soft caps; five layers with a window, which turn by
// rope_local_base_freq, to one without.
constexpr const char* kDefaults =
    R"({"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216,
        "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
        "head_dim": 256, "max_position_embeddings": 131072,
        "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 256,
        "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
        "sliding_window": 4096, "sliding_window_pattern": 6, "tie_word_embeddings": true})";

// Tensors of the parts that read images.
constexpr const char* kVision[] = {"vision_tower.", "multi_modal_projector.", "model.vision_tower.",
                                   "model.multi_modal_projector."};

// EmbeddingGemma's modules Dense, which llama.cpp keeps in the same file.
constexpr const char* kDense[] = {"dense_2.", "dense_3."};

LayerSpec gemma3_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  return sandwich_layer(attention, gated_mlp_of(config, layer));
}

// EmbeddingGemma, whose sliding_window counts both sides of a row.
Status translate_both_ways(const ConfigFields& fields, Json* json) {
  const Json* both = fields.find("use_bidirectional_attention");
  if (both == nullptr || *both == false || *both == "vision") return {};
  if (*both != true) return fields.wrong("use_bidirectional_attention", "true or false");
  int32_t positions = 0;
  FT_RETURN_IF_ERROR(fields.need_count("sliding_window", &positions));
  (*json)["sliding_window"] = positions / 2 + 1;
  return {};
}

Status read_both_ways(const ConfigFields&, ModelConfig* config) {
  config->both_ways_windows = true;
  return {};
}

}  // namespace

// Gemma Team 2025, the models without vision.
constinit const Architecture kGemma3Architecture = {
    .name = "Gemma3ForCausalLM",
    .description = "Gemma 3, text",
    .defaults = kDefaults,
    .window_rule = WindowRule::kPattern,
    .decoder = {.ignored = kDense,
                .layer = gemma3_layer,
                .norms = {.offset = 1},
                .scaled_embedding = true},
    .translate = translate_both_ways,
    .read = read_both_ways,
};

// The models with vision, of which only the text part is read: prompts are text alone.
constinit const Architecture kGemma3ConditionalArchitecture = {
    .name = "Gemma3ForConditionalGeneration",
    .description = "Gemma 3 with vision; its text part",
    .defaults = kDefaults,
    .window_rule = WindowRule::kPattern,
    .decoder = {.places = {{{"language_model.model.", "language_model.lm_head.weight"},
                            {"model.language_model.", "lm_head.weight"}}},
                .ignored = kVision,
                .layer = gemma3_layer,
                .norms = {.offset = 1},
                .scaled_embedding = true},
    .text_config = true,
};

}  // namespace foretoken
