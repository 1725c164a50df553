#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec dbrx_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = true;
  attention.base = "norm_attn_norm.attn.";
  attention.qkv = "Wqkv";
  attention.o = "out_proj";
  ExpertsSpec experts = experts_of(config);
  experts.files = ExpertFiles::kRows;
  experts.base = "ffn.";
  experts.router = "router.layer";
  experts.experts = "experts.mlp.";
  experts.gate = "w1";
  experts.up = "v1";
  experts.down = "w2";
  LayerSpec spec = pre_norm_layer(attention, experts_or_mlp(config, layer, experts));
  spec.mixer_norm = "norm_attn_norm.norm_1";
  spec.feed_forward_norm = "norm_attn_norm.norm_2";
  return spec;
}

// The object `name`; an empty one where there is none.
Json dbrx_part(const ConfigFields& fields, const char* name) {
  const Json* found = fields.find(name);
  return found != nullptr && found->is_object() ? *found : Json::object();
}

Status translate_dbrx(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"d_model", "hidden_size"},
                                     {"n_layers", "num_hidden_layers"},
                                     {"n_heads", "num_attention_heads"},
                                     {"max_seq_len", "max_position_embeddings"}};
  take_renamed(fields, kNames, json);
  const Json attention = dbrx_part(fields, "attn_config"),
             experts = dbrx_part(fields, "ffn_config");
  constexpr RenamedField kAttention[] = {{"kv_n_heads", "num_key_value_heads"},
                                         {"rope_theta", "rope_theta"},
                                         {"clip_qkv", "clip_qkv"}};
  take_renamed(ConfigFields(attention, fields.where() + " (attn_config)"), kAttention, json);
  constexpr RenamedField kExperts[] = {{"ffn_hidden_size", "intermediate_size"},
                                       {"moe_num_experts", "num_experts"},
                                       {"moe_top_k", "num_experts_per_tok"},
                                       {"moe_normalize_expert_weights", "expert_norm"}};
  take_renamed(ConfigFields(experts, fields.where() + " (ffn_config)"), kExperts, json);
  if (experts.contains("moe_normalize_expert_weights") &&
      experts["moe_normalize_expert_weights"].is_null()) {
    (*json)["expert_norm"] = nullptr;
  }
  const auto activation = experts.find("ffn_act_fn");
  if (activation != experts.end() && activation->is_object() && activation->contains("name")) {
    (*json)["hidden_act"] = (*activation)["name"];
  }
  return {};
}

Status read_dbrx(const ConfigFields& fields, ModelConfig* config) {
  double clip = 0;
  FT_RETURN_IF_ERROR(fields.read_positive("clip_qkv", &clip));
  config->qkv_clip = static_cast<float>(clip);
  const Json* power = fields.find("expert_norm");
  if (power != nullptr && *power != 1) {
    return unsupported(fields.where() + ": moe_normalize_expert_weights " +
                       power->dump().substr(0, 20) +
                       " is not supported; use a model that has 1 or null there");
  }
  config->experts.normalised = power != nullptr;
  return read_mixture(fields, &config->experts, &config->layers);
}

}  // namespace

// Mosaic Research 2024: layer norms without biases, clipped queries, keys and values, and the
// matrices of all experts below each other.
constinit const Architecture kDbrxArchitecture = {
    .name = "DbrxForCausalLM",
    .description = "DBRX",
    .defaults = R"({"vocab_size": 32000, "hidden_size": 2048, "num_attention_heads": 16,
                    "num_hidden_layers": 24, "max_position_embeddings": 2048,
                    "layer_norm_eps": 1e-5, "num_key_value_heads": 1, "intermediate_size": 3584,
                    "num_experts": 4, "num_experts_per_tok": 1, "expert_norm": 1})",
    .decoder = {.places = {{{"transformer.", "lm_head.weight"}, {nullptr, nullptr}}},
                .embedding = "wte",
                .layers = "blocks.",
                .last_norm = "norm_f",
                .layer = dbrx_layer,
                .norms = {.kind = NormKind::kLayer}},
    .translate = translate_dbrx,
    .read = read_dbrx,
};

}  // namespace foretoken
