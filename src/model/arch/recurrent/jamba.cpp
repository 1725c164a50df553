#include <nlohmann/json.hpp>
#include <string>

#include "model/config/state_space_config.h"
#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec jamba_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec = llama_layer(config, layer);
  spec.feed_forward_norm = "pre_ff_layernorm";
  if (layer.recurrent) {
    SelectiveSpec mixer = selective_of(config);
    mixer.norms = SelectiveNorms::kWeighted;
    mixer.base = "mamba.";
    spec.mixer = mixer;
  }
  if (layer.experts) {
    ExpertsSpec experts = experts_of(config);
    experts.base = "feed_forward.";
    experts.router = "router";
    spec.feed_forward = experts;
  } else {
    std::get<GatedMlpSpec>(spec.feed_forward).base = "feed_forward.";
  }
  return spec;
}

// Every so many layers, from an offset on, have attention, or experts.
struct JambaPeriod {
  int32_t period;
  int32_t offset;

  bool has(int32_t layer) const { return layer % period == offset; }
};

Status read_period(const ConfigFields& fields, const char* period, const char* offset,
                   JambaPeriod* out) {
  FT_RETURN_IF_ERROR(fields.read_count(period, &out->period));
  if (const Json* value = fields.find(offset); value != nullptr && *value == 0) out->offset = 0;
  FT_RETURN_IF_ERROR(fields.read_count_or_none(offset, &out->offset));
  if (out->offset < out->period) return {};
  return fields.wrong(offset, "smaller than '" + std::string(period) + "'");
}

Status translate_jamba(const ConfigFields& fields, Json* json) {
  JambaPeriod attends = {8, 4};
  int32_t num_layers = 0;
  FT_RETURN_IF_ERROR(read_period(fields, "attn_layer_period", "attn_layer_offset", &attends));
  FT_RETURN_IF_ERROR(fields.need_count("num_hidden_layers", &num_layers));
  if (num_layers > 1 << 16) return fields.wrong("num_hidden_layers", "at most 2^16");
  Json types = Json::array();
  for (int32_t i = 0; i < num_layers; ++i) {
    types.push_back(attends.has(i) ? "full_attention" : "mamba");
  }
  (*json)["layer_types"] = std::move(types);
  return {};
}

Status read_jamba_mixture(const ConfigFields& fields, ModelConfig* config) {
  JambaPeriod mixes = {2, 1};
  int32_t count = 16;
  FT_RETURN_IF_ERROR(fields.read_count("num_experts", &count));
  FT_RETURN_IF_ERROR(read_period(fields, "expert_layer_period", "expert_layer_offset", &mixes));
  if (count == 1) return {};
  FT_RETURN_IF_ERROR(read_expert_config(fields, &config->experts));
  for (size_t i = 0; i < config->layers.size(); ++i) {
    config->layers[i].experts = mixes.has(static_cast<int32_t>(i));
  }
  return {};
}

Status read_jamba(const ConfigFields& fields, ModelConfig* config) {
  int32_t expand = 2;
  FT_RETURN_IF_ERROR(fields.read_count("mamba_expand", &expand));
  for (LayerConfig& layer : config->layers) layer.rope = false;
  FT_RETURN_IF_ERROR(read_jamba_mixture(fields, config));
  return read_selective(fields, {}, expand * config->hidden_size, config->hidden_size,
                        &config->recurrent);
}

}  // namespace

// AI21 2024: Mamba 1 in seven of eight layers, attention without positions in the others, and
// mixtures in every second one.
constinit const Architecture kJambaArchitecture = {
    .name = "JambaForCausalLM",
    .description = "Jamba 1, 1.5, 1.6 and 1.7",
    .defaults = R"({"max_position_embeddings": 262144, "num_key_value_heads": 8,
                    "num_experts": 16, "num_experts_per_tok": 2})",
    .decoder = {.last_norm = "final_layernorm", .layer = jamba_layer},
    .recurrent_type = "mamba",
    .translate = translate_jamba,
    .read = read_jamba,
};

}  // namespace foretoken
