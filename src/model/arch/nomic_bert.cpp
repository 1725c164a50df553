#include <nlohmann/json.hpp>
#include <string>

#include "model/arch/encoders.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Each expert is down(gelu(up x)): with its ups as gates, of which the share is taken that passes.
ExpertsSpec nomic_experts(const ModelConfig& config) {
  ExpertsSpec experts = experts_of(config);
  experts.activation = Activation::kGeluShare;
  experts.files = ExpertFiles::kRows;
  experts.router = "router.layer";
  experts.experts = "experts.mlp.";
  experts.gate = experts.up = "w1";
  experts.down = "w2";
  experts.sum_bias = "experts.bias";
  return experts;
}

// The second version has MLPs without gates and, in every second layer, experts.
LayerSpec nomic_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = true;
  if (layer.experts) return summed_layer(attention, nomic_experts(config));
  if (config.mlp_bias) return summed_layer(attention, plain_mlp_of(config, layer));
  return summed_layer(attention, gated_mlp_of(config, layer));
}

// The file's own name of its activation, in GPT-2's words, decides whether MLPs have gates.
Status translate_nomic_mlp(const ConfigFields& fields, Json* json) {
  const Json* activation = fields.find("activation_function");
  const bool has_gates = activation == nullptr || *activation == "swiglu";
  if (!has_gates && *activation != "gelu") {
    return not_built(fields, "activation_function", "swiglu or gelu");
  }
  for (const char* bias : {"mlp_fc1_bias", "mlp_fc2_bias"}) {
    const Json* given = fields.find(bias);
    if (given != nullptr && *given != !has_gates) {
      return fields.wrong(bias, has_gates ? "false beside swiglu" : "true beside gelu");
    }
  }
  if (!has_gates) (*json)["hidden_act"] = "gelu";
  (*json)["mlp_bias"] = !has_gates;
  return {};
}

Status translate_nomic_experts(const ConfigFields& fields, Json* json) {
  int32_t period = 0, layers = 0;
  FT_RETURN_IF_ERROR(fields.read_count_or_none("moe_every_n_layers", &period));
  if (period == 0) {
    json->erase("num_experts");
    return {};
  }
  if ((*json)["mlp_bias"] != true) {
    return not_built(fields, "moe_every_n_layers", "MLPs, or with gelu beside experts");
  }
  for (const char* part : {"expert_choice_router", "num_shared_experts"}) {
    const Json* given = fields.find(part);
    if (given != nullptr && *given != false && *given != 0) {
      return not_built(fields, part, "experts that tokens choose");
    }
  }
  constexpr RenamedField kNames[] = {{"moe_top_k", "num_experts_per_tok"}};
  take_renamed(fields, kNames, json);
  const Json* normalised = fields.find("moe_normalize_expert_weights");
  (*json)["norm_topk_prob"] = normalised != nullptr && *normalised != false && *normalised != 0;
  const ConfigFields renamed = fields.of(*json);
  FT_RETURN_IF_ERROR(renamed.need_count("num_experts", &layers));
  FT_RETURN_IF_ERROR(renamed.need_count("num_hidden_layers", &layers));
  if (layers > 1 << 16) return renamed.wrong("num_hidden_layers", "at most 2^16");
  Json numbers = Json::array();
  for (int32_t layer = 1; layer < layers; layer += period) numbers.push_back(layer);
  (*json)["moe_layers"] = std::move(numbers);
  return {};
}

// As published, in GPT-2's names, and as transformers names it.
Status translate_nomic(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"n_embd", "hidden_size"},
                                     {"n_layer", "num_hidden_layers"},
                                     {"n_head", "num_attention_heads"},
                                     {"n_inner", "intermediate_size"},
                                     {"n_positions", "max_position_embeddings"},
                                     {"rotary_emb_base", "rope_theta"},
                                     {"layer_norm_epsilon", "layer_norm_eps"}};
  take_renamed(fields, kNames, json);
  for (const char* part : {"prenorm", "parallel_block", "use_rms_norm", "rotary_emb_interleaved"}) {
    const Json* given = fields.find(part);
    if (given != nullptr && *given != false) return fields.wrong(part, "false");
  }
  FT_RETURN_IF_ERROR(translate_nomic_mlp(fields, json));
  FT_RETURN_IF_ERROR(translate_nomic_experts(fields, json));
  bool biased = false;
  FT_RETURN_IF_ERROR(fields.read_flag("qkv_proj_bias", &biased));
  (*json)["attention_bias"] = biased;
  const Json* turned = fields.find("rotary_emb_fraction");
  if (turned != nullptr && *turned != 1) return fields.wrong("rotary_emb_fraction", "1");
  // Longer texts turn by other angles, which are not built.
  const Json* scaling = fields.find("rotary_scaling_factor");
  if (scaling != nullptr && !scaling->is_null()) {
    (*json)["max_position_embeddings"] = json->value("max_trained_positions", Json(2048));
  }
  see_whole_texts(json);
  return {};
}

Status read_nomic(const ConfigFields& fields, ModelConfig* config) {
  config->last_norm = false;
  return read_mixture(fields, &config->experts, &config->layers);
}

}  // namespace

// Nussbaum et al. 2024, Nussbaum and Duderstadt 2025.
constinit const Architecture kNomicBertArchitecture = {
    .name = "NomicBertModel",
    .description = "Nomic Embed Text 1, 1.5 and 2 (a mixture)",
    .defaults = R"({"max_position_embeddings": 2048, "rope_theta": 1000,
                    "layer_norm_eps": 1e-12})",
    .decoder = encoder(nomic_layer),
    .translate = translate_nomic,
    .read = read_nomic,
};

}  // namespace foretoken
