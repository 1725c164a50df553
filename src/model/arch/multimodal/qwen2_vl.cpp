#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

// Qwen 2's layer. Positions of text are the same in all sections of mrope, so that it turns as
// without them.
LayerSpec qwen2_vl_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qkv_bias = true;
  attention.o_bias = false;
  return pre_norm_layer(attention, gated_mlp_of(config, layer));
}

constexpr const char* kQwen2VlDefaults =
    R"({"max_position_embeddings": 32768, "num_key_value_heads": 8, "sliding_window": 4096,
        "max_window_layers": 80, "rms_norm_eps": 1e-5})";

constexpr const char* kQwen2VlVision[] = {"visual.", "model.visual."};

constexpr DecoderTraits kQwen2VlDecoder = {
    .places = {{{"model.", "lm_head.weight"}, {"model.language_model.", "lm_head.weight"}}},
    .ignored = kQwen2VlVision,
    .layer = qwen2_vl_layer};

}  // namespace

// Wang et al. 2024 and Bai et al. 2025, of which only the text part is read: prompts are text
// alone.
constinit const Architecture kQwen2VlArchitecture = {
    .name = "Qwen2VLForConditionalGeneration",
    .description = "Qwen 2 VL; its text part",
    .defaults = kQwen2VlDefaults,
    .window_rule = WindowRule::kFromLayer,
    .decoder = kQwen2VlDecoder,
    .text_config = true,
};

constinit const Architecture kQwen2_5VlArchitecture = {
    .name = "Qwen2_5_VLForConditionalGeneration",
    .description = "Qwen 2.5 VL; its text part",
    .defaults = kQwen2VlDefaults,
    .window_rule = WindowRule::kFromLayer,
    .decoder = kQwen2VlDecoder,
    .text_config = true,
};

}  // namespace foretoken
