#include <nlohmann/json.hpp>

#include "model/arch/alibi.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Of Baichuan 2, whose output matrix has rows of length 1 once it is normed. Some converters norm
// it, which changes nothing then, and llama.cpp's does not.
constexpr int32_t kBaichuan2Vocabulary = 125696;

// GGUF files have q, k and v apart.
LayerSpec baichuan_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = !config.plain_matrices;
  attention.qkv = "W_pack";
  return pre_norm_layer(attention, gated_mlp_of(config, layer));
}

// The models of 13B, whose scores fall with distance, have no max_position_embeddings.
Status translate_baichuan(const ConfigFields& fields, Json* json) {
  const bool turns = fields.find("max_position_embeddings") != nullptr;
  if (!turns) {
    const Json* length = fields.find("model_max_length");
    (*json)["max_position_embeddings"] = length != nullptr ? *length : Json(4096);
  }
  if (fields.find("alibi") == nullptr) (*json)["alibi"] = !turns;
  return {};
}

Status read_baichuan(const ConfigFields& fields, ModelConfig* config) {
  bool alibi = false;
  FT_RETURN_IF_ERROR(fields.read_flag("alibi", &alibi));
  if (alibi) fall_with_distance(config, alibi_slopes(config->num_heads));
  config->normed_head = config->vocab_size == kBaichuan2Vocabulary;
  return fields.read_flag("norm_head", &config->normed_head);
}

constexpr Architecture baichuan_architecture(const char* name, const char* description) {
  return {
      .name = name,
      .description = description,
      .decoder = {.layer = baichuan_layer},
      .translate = translate_baichuan,
      .read = read_baichuan,
  };
}

}  // namespace

// Baichuan 2023: Llama's blocks with q, k and v in one tensor.
constinit const Architecture kBaiChuanArchitecture =
    baichuan_architecture("BaiChuanForCausalLM", "Baichuan 7B");

// Yang et al. 2023: the same; in the larger models scores fall with distance instead of positions.
constinit const Architecture kBaichuanArchitecture =
    baichuan_architecture("BaichuanForCausalLM", "Baichuan 13B, Baichuan 2 7B and 13B");

}  // namespace foretoken
