#include <nlohmann/json.hpp>

#include "model/arch/encoders.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr int32_t kMpnetBuckets = 32;

LayerSpec mpnet_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.distance_bias = "model.relative_attention_bias.weight";
  return summed_layer(attention, plain_mlp_of(config, layer));
}

Status translate_mpnet(const ConfigFields& fields, Json* json) {
  const Json* buckets = fields.find("relative_attention_num_buckets");
  if (buckets != nullptr && *buckets != kMpnetBuckets) {
    return not_built(fields, "relative_attention_num_buckets",
                     std::to_string(kMpnetBuckets) + " of them");
  }
  return translate_roberta(fields, json);
}

Status read_mpnet(const ConfigFields& fields, ModelConfig* config) {
  config->distance_buckets = kMpnetBuckets;
  return read_placed(fields, config);
}

}  // namespace

// Song et al. 2020.
constinit const Architecture kMpnetArchitecture = {
    .name = "MPNetModel",
    .description = "MPNet: all-mpnet-base-v2 and others that embed",
    .defaults = R"({"vocab_size": 30527, "hidden_size": 768, "intermediate_size": 3072,
                    "num_hidden_layers": 12, "num_attention_heads": 12,
                    "max_position_embeddings": 512, "hidden_act": "gelu",
                    "layer_norm_eps": 1e-12, "pad_token_id": 1})",
    .decoder = encoder(mpnet_layer),
    .translate = translate_mpnet,
    .read = read_mpnet,
};

}  // namespace foretoken
