#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec aria_layer(const ModelConfig& config, const LayerConfig& layer) {
  ExpertsSpec experts = experts_of(config);
  experts.files = ExpertFiles::kFusedTurned;
  experts.router = "router";
  experts.gate_up = "fc1.weight";
  experts.down = "fc2.weight";
  experts.shared_bias = config.mlp_bias;
  return pre_norm_layer(gqa_of(config, layer), experts);
}

// The published code gives experts SiLU whatever hidden_act says of the shared one.
Status read_aria(const ConfigFields& fields, ModelConfig* config) {
  if (config->activation != Activation::kSilu) {
    return unsupported(fields.where() + ": hidden_act must be \"silu\", as in all published " +
                       "models of this family; correct the file");
  }
  config->experts.score = ExpertScore::kSoftmaxOfChosen;
  return read_mixture(fields, &config->experts, &config->layers);
}

constexpr const char* kAriaDefaults =
    R"({"max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "moe_num_experts": 8,
        "moe_topk": 2, "moe_num_shared_experts": 2})";

constexpr const char* kAriaVision[] = {"vision_tower.", "multi_modal_projector.",
                                       "model.vision_tower.", "model.multi_modal_projector."};

}  // namespace

// Li et al. 2024: Llama's attention, and in each layer a mixture of small experts beside some that
// all rows share.
constinit const Architecture kAriaArchitecture = {
    .name = "AriaForConditionalGeneration",
    .description = "Aria; its text part",
    .defaults = kAriaDefaults,
    .default_end = 2,
    .decoder = {.places = {{{"language_model.model.", "language_model.lm_head.weight"},
                            {"model.language_model.", "lm_head.weight"}}},
                .ignored = kAriaVision,
                .layer = aria_layer},
    .text_config = true,
    .read = read_aria,
};

constinit const Architecture kAriaTextArchitecture = {
    .name = "AriaTextForCausalLM",
    .description = "Aria, text",
    .defaults = kAriaDefaults,
    .default_end = 2,
    .decoder = {.layer = aria_layer},
    .read = read_aria,
};

}  // namespace foretoken
