#include <nlohmann/json.hpp>

#include "model/config/architecture.h"

namespace foretoken {
namespace {

Status translate_internlm3(const ConfigFields& fields, nlohmann::json* json) {
  if (const auto* bias = fields.find("qkv_bias")) (*json)["attention_bias"] = *bias;
  if (const auto* bias = fields.find("bias")) {
    (*json)["attention_out_bias"] = *bias;
    (*json)["mlp_bias"] = *bias;
  }
  return {};
}

}  // namespace

// Cai et al. 2024 and Shanghai AI Laboratory 2025: Llama's blocks, where qkv_bias and bias ask for
// biases.
constinit const Architecture kInternLm3Architecture = {
    .name = "InternLM3ForCausalLM",
    .description = "InternLM 3",
    .defaults = R"({"max_position_embeddings": 32768, "num_key_value_heads": 2,
                    "attention_bias": false, "attention_out_bias": false})",
    .translate = translate_internlm3,
};

}  // namespace foretoken
