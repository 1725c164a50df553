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
    return not_built(fields, "position_embedding_type", "alibi");
  }
  const Json* gates = fields.find("feed_forward_type");
  if (gates != nullptr && *gates != "geglu") {
    return not_built(fields, "feed_forward_type", "geglu");
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

LayerSpec jina3_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = true;
  return summed_layer(attention, plain_mlp_of(config, layer));
}

// As published with adapters of tasks, and as transformers names it.
Status translate_jina3(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"rotary_emb_base", "rope_theta"}};
  take_renamed(fields, kNames, json);
  (*json)["attention_bias"] = true;
  (*json)["mlp_bias"] = true;
  see_whole_texts(json);
  return {};
}

Status read_jina3(const ConfigFields&, ModelConfig* config) {
  config->last_norm = false;
  return {};
}

}  // namespace

// Sturua et al. 2024.
constinit const Architecture kJina3Architecture = {
    .name = "JinaEmbeddingsV3Model",
    .description = "Jina Embeddings 3, without the adapters of its tasks",
    .defaults = R"({"hidden_act": "gelu", "layer_norm_eps": 1e-5, "rope_theta": 20000,
                    "max_position_embeddings": 8194})",
    .decoder = encoder(jina3_layer),
    .translate = translate_jina3,
    .read = read_jina3,
};

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
