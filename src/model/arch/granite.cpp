#include "model/config/architecture.h"
#include "model/config/config.h"

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

}  // namespace

// IBM 2024: Llama's blocks with multipliers of embeddings, scores, what blocks add, and logits.
constinit const Architecture kGraniteArchitecture = {
    .name = "GraniteForCausalLM",
    .description = "Granite 3, dense",
    .defaults = R"({"max_position_embeddings": 2048})",
    .read = read_granite,
};

}  // namespace foretoken
