#include <cmath>
#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

Status check_minicpm(const ConfigFields& fields) {
  int32_t experts = 0;
  FT_RETURN_IF_ERROR(fields.read_count_or_none("num_experts", &experts));
  if (experts > 0) {
    return unsupported(fields.where() +
                       ": num_experts is not supported for MiniCPM; use one of its dense models");
  }
  if (fields.find("sparse_config") == nullptr) return {};
  return unsupported(fields.where() +
                     ": sparse_config asks for sparse attention, which is not supported; with "
                     "--hf-overrides '{\"sparse_config\": null}' the model runs with dense "
                     "attention");
}

Status read_minicpm(const ConfigFields& fields, ModelConfig* config) {
  double embedding = 1, depth = 1, logits = 1;
  int32_t base = config->hidden_size;
  FT_RETURN_IF_ERROR(fields.read_positive("scale_emb", &embedding));
  FT_RETURN_IF_ERROR(fields.read_positive("scale_depth", &depth));
  FT_RETURN_IF_ERROR(fields.read_count("dim_model_base", &base));
  FT_RETURN_IF_ERROR(fields.read_positive("logit_scale", &logits));
  config->embedding_scale = static_cast<float>(embedding);
  config->residual_scale = static_cast<float>(depth / std::sqrt(double(config->num_layers)));
  // Files of GGUF have both scales as they are multiplied with.
  FT_RETURN_IF_ERROR(fields.read_positive("residual_scale", &depth));
  if (fields.find("residual_scale") != nullptr) {
    config->residual_scale = static_cast<float>(depth);
  }
  config->logits_scale = static_cast<float>(double(base) / config->hidden_size * logits);
  return check_minicpm(fields);
}

LayerSpec minicpm3_layer(const ModelConfig& config, const LayerConfig& layer) {
  return pre_norm_layer(latent_of(config, layer), gated_mlp_of(config, layer));
}

// Files may leave out the size of values' heads.
Status translate_minicpm3(const ConfigFields& fields, nlohmann::json* json) {
  int32_t hidden = 0, heads = 0;
  FT_RETURN_IF_ERROR(fields.need_count("hidden_size", &hidden));
  FT_RETURN_IF_ERROR(fields.need_count("num_attention_heads", &heads));
  if (fields.find("v_head_dim") == nullptr) (*json)["v_head_dim"] = hidden / heads;
  return {};
}

}  // namespace

// Hu et al. 2024: Llama's blocks with scales of embeddings, of what blocks add, and of logits. Of
// MiniCPM 4 attention is dense.
constinit const Architecture kMiniCpmArchitecture = {
    .name = "MiniCPMForCausalLM",
    .description = "MiniCPM 1, 2 and 4, dense",
    .defaults = R"({"max_position_embeddings": 2048})",
    .read = read_minicpm,
};

// OpenBMB 2024: the same with latent attention.
constinit const Architecture kMiniCpm3Architecture = {
    .name = "MiniCPM3ForCausalLM",
    .description = "MiniCPM 3 4B",
    .defaults = R"({"max_position_embeddings": 32768, "rms_norm_eps": 1e-5, "scale_emb": 12,
                    "scale_depth": 1.4, "dim_model_base": 256, "q_lora_rank": 768,
                    "kv_lora_rank": 256, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32,
                    "rope_interleave": false, "tie_word_embeddings": true})",
    .decoder = {.layer = minicpm3_layer},
    .translate = translate_minicpm3,
    .read = read_minicpm,
};

}  // namespace foretoken
