#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

Status read_olmo(const ConfigFields& fields, ModelConfig* config) {
  double clip = 0;
  FT_RETURN_IF_ERROR(fields.read_positive("clip_qkv", &clip));
  config->qkv_clip = static_cast<float>(clip);
  return {};
}

}  // namespace

// Groeneveld et al. 2024: Llama's blocks with layer norms that have no weights.
constinit const Architecture kOlmoArchitecture = {
    .name = "OlmoForCausalLM",
    .description = "OLMo 1",
    .defaults = R"({"max_position_embeddings": 2048, "layer_norm_eps": 1e-5})",
    .decoder = {.norms = {.kind = NormKind::kLayer, .weighted = false}},
    .read = read_olmo,
};

}  // namespace foretoken
