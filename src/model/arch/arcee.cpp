#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

LayerSpec arcee_layer(const ModelConfig& config, const LayerConfig& layer) {
  return pre_norm_layer(gqa_of(config, layer), plain_mlp_of(config, layer));
}

// The default end of text lies outside the default vocabulary and cannot come.
Status translate_arcee(const ConfigFields& fields, nlohmann::json* json) {
  constexpr int kDefaultEnd = 128001;
  int32_t vocab = kDefaultEnd + 1;
  FT_RETURN_IF_ERROR(fields.read_count("vocab_size", &vocab));
  const nlohmann::json* end = fields.find("eos_token_id");
  if (end != nullptr && *end == kDefaultEnd && vocab <= kDefaultEnd) json->erase("eos_token_id");
  return {};
}

}  // namespace

// Arcee AI 2025: Llama's blocks with an MLP without a gate.
constinit const Architecture kArceeArchitecture = {
    .name = "ArceeForCausalLM",
    .description = "AFM 4.5B",
    .defaults = R"({"max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
                    "hidden_act": "relu2"})",
    .decoder = {.layer = arcee_layer},
    .translate = translate_arcee,
};

}  // namespace foretoken
