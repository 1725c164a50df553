#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

Status read_granite(const ConfigFields& fields, ModelConfig* config) {
  double embedding = 1, residual = 1, logits = 1, attention = 1;
  FT_RETURN_IF_ERROR(fields.read_positive("embedding_multiplier", &embedding));
  FT_RETURN_IF_ERROR(fields.read_positive("residual_multiplier", &residual));
  FT_RETURN_IF_ERROR(fields.read_positive("logits_scaling", &logits));
  FT_RETURN_IF_ERROR(fields.read_positive("attention_multiplier", &attention));
  config->embedding_scale = static_cast<float>(embedding);
  config->residual_scale = static_cast<float>(residual);
  config->logits_scale = static_cast<float>(1 / logits);
  config->attention_scale = static_cast<float>(attention);
  return {};
}

// Gates and ups of all experts are one tensor, and so are those of the shared one.
LayerSpec granite_moe_layer(const ModelConfig& config, const LayerConfig& layer) {
  ExpertsSpec experts = experts_of(config);
  experts.files = ExpertFiles::kFused;
  experts.base = "";
  experts.router = "block_sparse_moe.router.layer";
  experts.experts = "block_sparse_moe.";
  experts.gate_up = "input_linear.weight";
  experts.down = "output_linear.weight";
  experts.shared = "shared_mlp.";
  experts.shared_fused = true;
  experts.shared_gate_up = "input_linear";
  experts.shared_down = "output_linear";
  return pre_norm_layer(gqa_of(config, layer), experts_or_mlp(config, layer, experts));
}

Status read_granite_moe(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(read_granite(fields, config));
  config->experts.score = ExpertScore::kSoftmaxOfChosen;
  return read_mixture(fields, &config->experts, &config->layers);
}

constexpr const char* kGraniteMoeDefaults =
    R"({"max_position_embeddings": 2048, "num_local_experts": 8, "num_experts_per_tok": 2})";

}  // namespace

// IBM 2024: Llama's blocks with multipliers of embeddings, scores, what blocks add, and logits.
constinit const Architecture kGraniteArchitecture = {
    .name = "GraniteForCausalLM",
    .description = "Granite 3, dense",
    .defaults = R"({"max_position_embeddings": 2048})",
    .read = read_granite,
};

// IBM 2024: the same with mixtures.
constinit const Architecture kGraniteMoeArchitecture = {
    .name = "GraniteMoeForCausalLM",
    .description = "Granite 3, mixtures",
    .defaults = kGraniteMoeDefaults,
    .decoder = {.layer = granite_moe_layer},
    .read = read_granite_moe,
};

// IBM 2025: and with an expert that all tokens share.
constinit const Architecture kGraniteMoeSharedArchitecture = {
    .name = "GraniteMoeSharedForCausalLM",
    .description = "Granite, mixtures with a shared expert",
    .defaults = kGraniteMoeDefaults,
    .decoder = {.layer = granite_moe_layer},
    .read = read_granite_moe,
};

}  // namespace foretoken
