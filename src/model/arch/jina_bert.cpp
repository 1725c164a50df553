#include <nlohmann/json.hpp>

#include "model/arch/alibi.h"
#include "model/arch/encoders.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec jina_layer(const ModelConfig& config, const LayerConfig& layer) {
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.fused = true;
  mlp.down_bias = true;
  return summed_layer(gqa_of(config, layer), mlp);
}

Status translate_jina_bert(const ConfigFields& fields, Json* json) {
  const Json* positions = fields.find("position_embedding_type");
  if (positions != nullptr && *positions != "alibi") {
    return fields.wrong("position_embedding_type", "\"alibi\"");
  }
  const Json* gates = fields.find("feed_forward_type");
  if (gates != nullptr && *gates != "geglu") {
    return fields.wrong("feed_forward_type", "\"geglu\"");
  }
  (*json)["attention_bias"] = true;
  see_whole_texts(json);
  return {};
}

Status read_jina_bert(const ConfigFields&, ModelConfig* config) {
  config->last_norm = false;
  fall_with_distance(config, alibi_slopes(config->num_heads));
  return {};
}

}  // namespace

// Günther et al. 2023.
constinit const Architecture kJinaBertArchitecture = {
    .name = "JinaBertModel",
    .description = "Jina Embeddings 2",
    .defaults = R"({"hidden_act": "gelu", "layer_norm_eps": 1e-12,
                    "max_position_embeddings": 8192})",
    .decoder = encoder(jina_layer),
    .translate = translate_jina_bert,
    .read = read_jina_bert,
};

}  // namespace foretoken
