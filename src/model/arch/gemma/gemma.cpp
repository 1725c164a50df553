#include <nlohmann/json.hpp>

#include "model/config/architecture.h"

namespace foretoken {
namespace {

// Early files name the exact GELU, but the models were trained with this one.
Status translate_gemma(const ConfigFields& fields, nlohmann::json* json) {
  if (fields.find("hidden_activation") == nullptr) {
    (*json)["hidden_activation"] = "gelu_pytorch_tanh";
  }
  return {};
}

}  // namespace

// Gemma Team 2024: Llama's blocks with norm weights 1 + w, embeddings times sqrt(hidden_size) and a
// tanh-GELU MLP.
constinit const Architecture kGemmaArchitecture = {
    .name = "GemmaForCausalLM",
    .description = "Gemma 1, CodeGemma",
    .defaults =
        R"({"max_position_embeddings": 8192, "head_dim": 256, "tie_word_embeddings": true})",
    .decoder = {.norms = {.offset = 1}, .scaled_embedding = true},
    .translate = translate_gemma,
};

}  // namespace foretoken
