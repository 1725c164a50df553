#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec dots1_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.qk_norm = QkNorm::kHead;
  return pre_norm_layer(attention, experts_or_mlp(config, layer, experts_of(config)));
}

Status read_dots1(const ConfigFields& fields, ModelConfig* config) {
  ExpertConfig& experts = config->experts;
  experts.score = ExpertScore::kSigmoid;
  experts.groups = ExpertGroups::kBestTwo;
  experts.correction = true;
  return read_mixture(fields, &experts, &config->layers);
}

}  // namespace

// rednote-hilab 2025: Qwen 3's attention, DeepSeek V3's mixtures.
constinit const Architecture kDots1Architecture = {
    .name = "Dots1ForCausalLM",
    .description = "dots.llm1",
    .defaults = R"({"max_position_embeddings": 2048, "num_key_value_heads": 32,
                    "sliding_window": 4096, "max_window_layers": 62,
                    "use_sliding_window": true})",
    .window_rule = WindowRule::kFromLayer,
    .decoder = {.layer = dots1_layer},
    .read = read_dots1,
};

}  // namespace foretoken
