#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "kernels/attention/attend_disentangled.h"
#include "model/arch/encoders.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec deberta_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.distances = config.distances;
  return summed_layer(attention, plain_mlp_of(config, layer));
}

struct WantedPart {
  const char* name;
  Json wanted;
  const char* instead;
};

// What the first two versions of the model leave open; published models of the third have these.
Status check_deberta_parts(const ConfigFields& fields) {
  const WantedPart parts[] = {
      {"relative_attention", true, "attention to distances"},
      {"share_att_key", true, "matrices that distances and words have in common"},
      {"position_biased_input", false, "embeddings without positions"},
      {"conv_kernel_size", 0, "layers without convolutions"},
      {"type_vocab_size", 0, "texts of one kind"}};
  for (const WantedPart& part : parts) {
    const Json* given = fields.find(part.name);
    if (given == nullptr && part.wanted.is_boolean()) return fields.missing(part.name);
    if (given != nullptr && *given != part.wanted) {
      return not_built(fields, part.name, part.instead);
    }
  }
  if (fields.find("pos_att_type") == nullptr) return fields.missing("pos_att_type");
  const std::string terms = fields.find("pos_att_type")->dump();
  const auto has = [&](const char* term) { return terms.find(term) != std::string::npos; };
  if (!has("c2p") || !has("p2c") || has("p2p")) {
    return not_built(fields, "pos_att_type", "the terms c2p and p2c");
  }
  const Json* norm = fields.find("norm_rel_ebd");
  if (norm != nullptr && *norm != "layer_norm" && *norm != "none") {
    return not_built(fields, "norm_rel_ebd", "layer_norm or none");
  }
  return {};
}

Status translate_deberta(const ConfigFields& fields, Json* json) {
  FT_RETURN_IF_ERROR(check_deberta_parts(fields));
  int32_t hidden = 0, words = 0;
  FT_RETURN_IF_ERROR(fields.need_count("hidden_size", &hidden));
  words = hidden;
  FT_RETURN_IF_ERROR(fields.read_count("embedding_size", &words));
  if (words != hidden) {
    return not_built(fields, "embedding_size", "embeddings as wide as its layers");
  }
  (*json)["attention_bias"] = true;
  (*json)["mlp_bias"] = true;
  see_whole_texts(json);
  return {};
}

// Negative numbers stand for what they are by themselves.
Status read_if_positive(const ConfigFields& fields, const char* name, int32_t* out) {
  const Json* given = fields.find(name);
  const bool is_none = given != nullptr && given->is_number_integer() && *given < 1;
  return is_none ? Status() : fields.read_count(name, out);
}

Status read_deberta(const ConfigFields& fields, ModelConfig* config) {
  DistanceConfig& distances = config->distances;
  distances.reach = config->max_position_embeddings;
  FT_RETURN_IF_ERROR(read_if_positive(fields, "max_relative_positions", &distances.reach));
  FT_RETURN_IF_ERROR(read_if_positive(fields, "position_buckets", &distances.buckets));
  distances.side = distances.buckets > 0 ? distances.buckets : distances.reach;
  const Json* norm = fields.find("norm_rel_ebd");
  distances.normed = norm != nullptr && *norm == "layer_norm";
  const int32_t dim = config->head_dim;
  if (distances.buckets > 0 && (distances.buckets < 4 || distances.reach < distances.buckets)) {
    return fields.wrong("position_buckets", "at least 4 and at most the longest distance");
  }
  if (distances.reach > 1 << 16) return fields.wrong("max_relative_positions", "at most 2^16");
  if (dim % 8 != 0 || kDisentangledDim % dim != 0) {
    return fields.wrong("num_attention_heads",
                        "such that heads have 8, 16, 32, 64 or 128 elements");
  }
  config->attention_scale = 1 / std::sqrt(3 * static_cast<float>(dim));
  config->last_norm = false;
  for (LayerConfig& layer : config->layers) layer.rope = false;
  return {};
}

}  // namespace

// He et al. 2021.
constinit const Architecture kDebertaV2Architecture = {
    .name = "DebertaV2Model",
    .description = "DeBERTa V2 and V3: guards, rerankers and others that embed or judge",
    .defaults = R"({"vocab_size": 128100, "hidden_size": 1536, "intermediate_size": 6144,
                    "num_hidden_layers": 24, "num_attention_heads": 24,
                    "max_position_embeddings": 512, "hidden_act": "gelu",
                    "layer_norm_eps": 1e-7, "relative_attention": false,
                    "share_att_key": false, "position_biased_input": true,
                    "pos_att_type": "none", "norm_rel_ebd": "none"})",
    .decoder = encoder(deberta_layer),
    .translate = translate_deberta,
    .read = read_deberta,
};

}  // namespace foretoken
