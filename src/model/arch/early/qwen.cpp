#include <nlohmann/json.hpp>
#include <string>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

LayerSpec qwen_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = true;
  attention.base = "attn.";
  attention.qkv = "c_attn";
  attention.o = "c_proj";
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.gate = "w2";
  mlp.up = "w1";
  mlp.down = "c_proj";
  LayerSpec spec = pre_norm_layer(attention, mlp);
  spec.mixer_norm = "ln_1";
  spec.feed_forward_norm = "ln_2";
  return spec;
}

// Beyond seq_length the published code turns by other angles and scales queries, each by the length
// of the text; such texts are not run.
Status limit_length(const ConfigFields& fields, Json* json) {
  bool grows = false, scales = false;
  int32_t trained = 0;
  FT_RETURN_IF_ERROR(fields.read_flag("use_dynamic_ntk", &grows));
  FT_RETURN_IF_ERROR(fields.read_flag("use_logn_attn", &scales));
  FT_RETURN_IF_ERROR(fields.read_count("seq_length", &trained));
  if (trained > 0 && (grows || scales)) (*json)["max_position_embeddings"] = trained;
  return {};
}

// An MLP is half as wide as the file says, for gates and ups. The first files have names of
// GPT-2's.
Status translate_qwen(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {
      {"n_embd", "hidden_size"},         {"n_layer", "num_hidden_layers"},
      {"n_head", "num_attention_heads"}, {"ffn_hidden_size", "intermediate_size"},
      {"rotary_emb_base", "rope_theta"}, {"rotary_pct", "partial_rotary_factor"},
      {"kv_channels", "head_dim"}};
  take_renamed(fields, kNames, json);
  const Json named = *json;
  int32_t both = 0;
  FT_RETURN_IF_ERROR(ConfigFields(named, fields.where()).need_count("intermediate_size", &both));
  if (both % 2 != 0) {
    return invalid_argument(fields.where() + ": the width of MLPs, " + std::to_string(both) +
                            ", must be even; correct the file");
  }
  (*json)["intermediate_size"] = both / 2;
  bool plain = true;
  FT_RETURN_IF_ERROR(fields.read_flag("no_bias", &plain));
  (*json)["attention_bias"] = true;
  (*json)["attention_out_bias"] = (*json)["mlp_bias"] = !plain;
  return limit_length(fields, json);
}

// Of Qwen VL, of which only the text part is read.
constexpr const char* kQwenVision[] = {"transformer.visual."};

}  // namespace

// Bai et al. 2023: Llama's blocks with one matrix for queries, keys and values, which have biases.
constinit const Architecture kQwenArchitecture = {
    .name = "QWenLMHeadModel",
    .description = "Qwen 1; Qwen VL 1's text part",
    .defaults = R"({"max_position_embeddings": 8192, "layer_norm_epsilon": 1e-6})",
    .decoder = {.places = {{{"transformer.", "lm_head.weight"}, {nullptr, nullptr}}},
                .embedding = "wte",
                .layers = "h.",
                .last_norm = "ln_f",
                .ignored = kQwenVision,
                .layer = qwen_layer},
    .translate = translate_qwen,
};

}  // namespace foretoken
