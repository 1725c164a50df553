#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

// Qwen 3's layer. Only rows of images get what the vision tower adds between layers.
LayerSpec qwen3_vl_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  return pre_norm_layer(attention, gated_mlp_of(config, layer));
}

constexpr const char* kQwen3VlVision[] = {"visual.", "model.visual."};

}  // namespace

// Qwen Team 2025, of which only the text part is read: prompts are text alone.
constinit const Architecture kQwen3VlArchitecture = {
    .name = "Qwen3VLForConditionalGeneration",
    .description = "Qwen 3 VL, dense; its text part",
    .defaults = R"({"max_position_embeddings": 128000, "num_key_value_heads": 32,
                    "head_dim": 128, "rope_theta": 5000000.0})",
    .decoder = {.places = {{{"model.language_model.", "lm_head.weight"},
                            {"model.", "lm_head.weight"}}},
                .ignored = kQwen3VlVision,
                .layer = qwen3_vl_layer},
    .text_config = true,
};

}  // namespace foretoken
