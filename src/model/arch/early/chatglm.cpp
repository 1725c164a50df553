#include <nlohmann/json.hpp>

#include "model/layer/layer_spec.h"

namespace foretoken {
namespace {

// The first half of a head turns, its pairs side by side; gate and up are one tensor, and so are q,
// k and v but in some GGUF files.
LayerSpec chatglm_layer(const ModelConfig& config, const LayerConfig& layer) {
  GqaSpec attention = gqa_of(config, layer);
  attention.fused = !config.plain_matrices;
  attention.paired = config.rope.full.rotary_dim;
  attention.base = "self_attention.";
  attention.qkv = "query_key_value";
  attention.o = "dense";
  GatedMlpSpec mlp = gated_mlp_of(config, layer);
  mlp.fused = true;
  mlp.gate_up = "dense_h_to_4h";
  mlp.down = "dense_4h_to_h";
  return pre_norm_layer(attention, mlp);
}

// What no published model of generation 2 to 4 has.
Status check_chatglm(const ConfigFields& fields) {
  bool squares = true, last_norm = true, original = true, normed = false;
  FT_RETURN_IF_ERROR(fields.read_flag("rmsnorm", &squares));
  FT_RETURN_IF_ERROR(fields.read_flag("post_layer_norm", &last_norm));
  FT_RETURN_IF_ERROR(fields.read_flag("original_rope", &original));
  FT_RETURN_IF_ERROR(fields.read_flag("apply_residual_connection_post_layernorm", &normed));
  const char* field = !squares     ? "rmsnorm false"
                      : !last_norm ? "post_layer_norm false"
                      : !original  ? "original_rope false"
                      : normed     ? "apply_residual_connection_post_layernorm"
                                   : nullptr;
  if (field == nullptr) return {};
  return unsupported(fields.where() + ": " + field +
                     " is not supported; use a model like ChatGLM 3 or GLM 4");
}

Status translate_chatglm(const ConfigFields& fields, nlohmann::json* json) {
  FT_RETURN_IF_ERROR(check_chatglm(fields));
  constexpr RenamedField kNames[] = {
      {"num_layers", "num_hidden_layers"},       {"ffn_hidden_size", "intermediate_size"},
      {"padded_vocab_size", "vocab_size"},       {"kv_channels", "head_dim"},
      {"seq_length", "max_position_embeddings"}, {"layernorm_epsilon", "rms_norm_eps"},
      {"add_qkv_bias", "attention_bias"},        {"add_bias_linear", "attention_out_bias"}};
  take_renamed(fields, kNames, json);
  (*json)["mlp_bias"] = (*json)["attention_out_bias"];
  bool shares_keys = false;
  double ratio = 1;
  FT_RETURN_IF_ERROR(fields.read_flag("multi_query_attention", &shares_keys));
  FT_RETURN_IF_ERROR(fields.read_positive("rope_ratio", &ratio));
  const auto* groups = fields.find("multi_query_group_num");
  if (shares_keys && groups != nullptr) (*json)["num_key_value_heads"] = *groups;
  if (fields.find("rope_ratio") != nullptr) (*json)["rope_theta"] = 10000 * ratio;
  return {};
}

// Positions follow from the config, and images are not read.
constexpr const char* kUnreadParts[] = {"transformer.rotary_pos_emb.", "transformer.vision."};

// `name`: of the class.
constexpr Architecture chatglm_architecture(const char* name, const char* description) {
  return {
      .name = name,
      .description = description,
      .defaults = R"({"max_position_embeddings": 8192, "rms_norm_eps": 1e-5,
                      "attention_bias": true, "attention_out_bias": false,
                      "partial_rotary_factor": 0.5})",
      .decoder = {.places = {{{"transformer.", "transformer.output_layer.weight"},
                              {nullptr, nullptr}}},
                  .embedding = "embedding.word_embeddings",
                  .layers = "encoder.layers.",
                  .last_norm = "encoder.final_layernorm",
                  .ignored = kUnreadParts,
                  .layer = chatglm_layer},
      .translate = translate_chatglm,
  };
}

}  // namespace

// Zeng et al. 2024, under the names of the models' own code: Llama's blocks, of whose heads half
// turns.
constinit const Architecture kChatGlmArchitecture =
    chatglm_architecture("ChatGLMModel", "ChatGLM 2 and 3, GLM 4 9B");

constinit const Architecture kChatGlmConditionalArchitecture = chatglm_architecture(
    "ChatGLMForConditionalGeneration", "ChatGLM 3 and GLM 4 9B, newer exports");

}  // namespace foretoken
