#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

// One field for q, k, v and what attention adds.
Status translate_bias(const ConfigFields& fields, nlohmann::json* json) {
  constexpr RenamedField kBias[] = {{"bias", "attention_bias"}};
  take_renamed(fields, kBias, json);
  return {};
}

}  // namespace

// InternLM Team 2023: Llama's blocks with biases around attention.
constinit const Architecture kInternLmArchitecture = {
    .name = "InternLMForCausalLM",
    .description = "InternLM 1",
    .defaults = R"({"max_position_embeddings": 2048, "bias": true})",
    .translate = translate_bias,
};

// Huawei 2025: the same.
constinit const Architecture kPanguEmbeddedArchitecture = {
    .name = "PanguEmbeddedForCausalLM",
    .description = "openPangu Embedded 1B and 7B",
    .defaults = R"({"max_position_embeddings": 32768})",
    .translate = translate_bias,
};

// OrionStar 2024: Llama's blocks with layer norms and their biases.
constinit const Architecture kOrionArchitecture = {
    .name = "OrionForCausalLM",
    .description = "Orion 14B",
    .defaults = R"({"max_position_embeddings": 4096, "rms_norm_eps": 1e-5})",
    .decoder = {.norms = {.kind = NormKind::kLayer, .bias = true}},
};

}  // namespace foretoken
