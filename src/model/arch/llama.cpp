#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Parts that configurations of Nanbeige can ask for and published models leave out.
Status check_nanbeige_parts(const ConfigFields& fields) {
  for (const char* name :
       {"qk_layernorm", "emb_neighbor_num", "insert_ngram_layer_idx", "ngram_insert_all_layers",
        "enable_double_loop_split", "loop_middle_layers", "loop_share_kv",
        "enable_hyper_connection", "enable_mhc", "enable_depth_attention"}) {
    const Json* value = fields.find(name);
    if (value == nullptr || *value == false || *value == 0 || value->empty()) continue;
    return unsupported(fields.where() + ": '" + name +
                       "' is not supported; use a model like Nanbeige 4.2 3B");
  }
  return {};
}

// The layers stand once in the files and run `num_loops` times.
Status read_nanbeige(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(check_nanbeige_parts(fields));
  int32_t loops = 1;
  bool skips = false;
  FT_RETURN_IF_ERROR(read_loops(fields, "num_loops", &loops));
  FT_RETURN_IF_ERROR(fields.read_flag("skip_loop_final_norm", &skips));
  config->repeat_layers(loops, !skips);
  return {};
}

LayerSpec kormo_layer(const ModelConfig& config, const LayerConfig& layer) {
  LayerSpec spec = llama_layer(config, layer);
  spec.mixer_norm = "pre_attention_layernorm";
  spec.feed_forward_norm = "pre_mlp_layernorm";
  return spec;
}

}  // namespace

// Touvron et al. 2023, Grattafiori et al. 2024; also SmolLM 1 and 2, TinyLlama, Yi and many others
// that are published under this name. Pre-norm blocks of grouped-query attention with rotary
// positions and a gated SiLU MLP; biases where attention_bias and mlp_bias ask for them.
LayerSpec llama_layer(const ModelConfig& config, const LayerConfig& layer) {
  return pre_norm_layer(gqa_of(config, layer), gated_mlp_of(config, layer));
}

constinit const Architecture kLlamaArchitecture = {
    .name = "LlamaForCausalLM",
    .description = "Llama 2, 3, 3.1 and 3.2; SmolLM; TinyLlama",
    .defaults = R"({"max_position_embeddings": 2048})",
};

// Nanbeige Lab 2026: the same, whose layers run twice, with the last norm between.
constinit const Architecture kNanbeigeArchitecture = {
    .name = "NanbeigeForCausalLM",
    .description = "Nanbeige 4, 4.1 and 4.2",
    .defaults = R"({"max_position_embeddings": 32768, "rms_norm_eps": 1e-5})",
    .read = read_nanbeige,
};

// IQuest Lab 2025: the same.
constinit const Architecture kIQuestCoderArchitecture = {
    .name = "IQuestCoderForCausalLM",
    .description = "IQuest Coder V1",
    .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "head_dim": 128,
                    "rms_norm_eps": 1e-5})",
};

// Kim et al. 2025: the same, whose norms have other names.
constinit const Architecture kKormoArchitecture = {
    .name = "KORMoForCausalLM",
    .description = "KORMo 10B",
    .defaults = R"({"max_position_embeddings": 131072})",
    .decoder = {.layer = kormo_layer},
};

}  // namespace foretoken
