#include <cctype>

#include "dialled/dialled_parts.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

// One dense layer before mixtures, where there are several.
int32_t num_dense(const DialledShape& shape) { return shape.num_layers > 1 ? 1 : 0; }

Json mixture_fields(const DialledShape& shape) {
  const std::string& name = shape.architecture;
  if (name == "MixtralForCausalLM") {
    return {{"num_local_experts", shape.num_experts},
            {"num_experts_per_tok", shape.experts_per_token}};
  }
  if (name == "Qwen3MoeForCausalLM") {
    return {{"num_experts", shape.num_experts},
            {"num_experts_per_tok", shape.experts_per_token},
            {"moe_intermediate_size", shape.expert_inner},
            {"norm_topk_prob", true},
            {"decoder_sparse_step", 1},
            {"mlp_only_layers", num_dense(shape) > 0 ? Json::array({0}) : Json::array()}};
  }
  if (name == kGptOssArchitecture.name) {
    return {{"num_local_experts", shape.num_experts},
            {"num_experts_per_tok", shape.experts_per_token},
            {"sliding_window", kDialledWindow},
            {"swiglu_limit", 1.0},
            {"attention_bias", true},
            {"rope_scaling", nullptr}};
  }
  // Sigmoids with corrections, and a shared expert.
  Json fields = {{"n_routed_experts", shape.num_experts},
                 {"num_experts_per_tok", shape.experts_per_token},
                 {"moe_intermediate_size", shape.expert_inner},
                 {"n_shared_experts", 1},
                 {"norm_topk_prob", true},
                 {"routed_scaling_factor", 1.5},
                 {"first_k_dense_replace", num_dense(shape)}};
  if (name == "Glm4MoeForCausalLM") {
    fields.update({{"partial_rotary_factor", 0.5}, {"use_qk_norm", true}});
    return fields;
  }
  // DeepSeek V3: latents, and experts of half of the groups.
  fields.update({{"q_lora_rank", shape.q_rank},
                 {"kv_lora_rank", shape.kv_rank},
                 {"qk_nope_head_dim", shape.head_dim},
                 {"qk_rope_head_dim", shape.rope_dim},
                 {"v_head_dim", shape.head_dim},
                 {"num_key_value_heads", shape.num_heads},
                 {"n_group", shape.num_experts / 2},
                 {"topk_group", shape.num_experts / 4},
                 {"scoring_func", "sigmoid"},
                 {"topk_method", "noaux_tc"},
                 {"moe_layer_freq", 1}});
  return fields;
}

// What each architecture adds to the common fields. Layers alternate where that is possible, so
// that two of them show everything.
Json special_fields(const DialledShape& shape) {
  const std::string& name = shape.architecture;
  if (name == kMistralArchitecture.name) return {{"sliding_window", kDialledWindow}};
  if (name == kQwen2Architecture.name) {
    return {{"use_sliding_window", true},
            {"sliding_window", kDialledWindow},
            {"max_window_layers", shape.num_layers / 2}};
  }
  if (name == kGemma2Architecture.name) return {{"sliding_window", kDialledWindow}};
  if (name == kGemma3Architecture.name || name == kGemma3ConditionalArchitecture.name ||
      name == kVaultGemmaArchitecture.name || name == kExaone4Architecture.name) {
    return {{"sliding_window", kDialledWindow}, {"sliding_window_pattern", 2}};
  }
  if (name == kPhi3Architecture.name) return {{"partial_rotary_factor", 0.5}};
  if (name == kSmolLm3Architecture.name) {
    return {{"no_rope_layer_interval", 2}, {"attention_bias", true}, {"mlp_bias", true}};
  }
  return is_dialled_mixture(shape) ? mixture_fields(shape) : Json::object();
}

// As Hugging Face names what the architecture's decoder is: "LlamaForCausalLM" is of type "llama".
std::string model_type(const std::string& architecture) {
  std::string type = architecture.substr(0, architecture.find("For"));
  for (char& letter : type) letter = static_cast<char>(std::tolower(letter));
  if (type == "gemma3") return "gemma3_text";
  if (type == "qwen3moe") return "qwen3_moe";
  if (type == "glm4moe") return "glm4_moe";
  if (type == "gptoss") return "gpt_oss";
  return type == "deepseekv3" ? "deepseek_v3" : type;
}

}  // namespace

bool is_dialled_mixture(const DialledShape& shape) {
  const std::string& name = shape.architecture;
  return name == "MixtralForCausalLM" || name == "Qwen3MoeForCausalLM" ||
         name == "Glm4MoeForCausalLM" || name == "DeepseekV3ForCausalLM" ||
         name == kGptOssArchitecture.name;
}

Json dialled_config(const DialledShape& shape) {
  Json decoder = {{"model_type", model_type(shape.architecture)},
                  {"vocab_size", shape.vocab_size},
                  {"hidden_size", shape.hidden_size},
                  {"intermediate_size", shape.intermediate_size},
                  {"num_hidden_layers", shape.num_layers},
                  {"num_attention_heads", shape.num_heads},
                  {"num_key_value_heads", shape.num_kv_heads},
                  {"head_dim", shape.head_dim},
                  {"max_position_embeddings", shape.max_position_embeddings},
                  {"rms_norm_eps", 1e-5},
                  {"rope_theta", 10000.0},
                  {"hidden_act", "silu"},
                  {"attention_bias", false},
                  {"mlp_bias", false},
                  {"tie_word_embeddings", false},
                  {"bos_token_id", nullptr},
                  {"eos_token_id", 1},
                  {"torch_dtype", dtype_name(shape.dtype)}};
  decoder.update(special_fields(shape));
  if (shape.num_mtp_modules > 0) decoder["num_nextn_predict_layers"] = shape.num_mtp_modules;
  Json config = {{"architectures", {shape.architecture}}};
  if (find_architecture(shape.architecture)->text_config) {
    config["model_type"] = shape.architecture == kGemma3ConditionalArchitecture.name
                               ? "gemma3"
                               : model_type(shape.architecture);
    config["text_config"] = decoder;
  } else {
    config.update(decoder);
  }
  if (shape.mask_id >= 0) config["pard_token"] = shape.mask_id;
  return config;
}

}  // namespace foretoken
