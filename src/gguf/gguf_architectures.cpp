#include "gguf/hf_names.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Norms around each block.
constexpr GgufName kGemmaTensors[] = {{"post_attention_norm", "post_attention_layernorm"},
                                      {"ffn_norm", "pre_feedforward_layernorm"},
                                      {"post_ffw_norm", "post_feedforward_layernorm"}};

constexpr GgufName kPhi3Tensors[] = {{"attn_qkv", "self_attn.qkv_proj"},
                                     {"ffn_up", "mlp.gate_up_proj"}};

// Norms behind each block alone.
constexpr GgufName kPostNormTensors[] = {{"post_attention_norm", "post_attention_layernorm"},
                                         {"post_ffw_norm", "post_feedforward_layernorm"}};

constexpr GgufName kGlm4Tensors[] = {{"post_attention_norm", "post_self_attn_layernorm"},
                                     {"post_ffw_norm", "post_mlp_layernorm"},
                                     {"ffn_up", "mlp.gate_up_proj"}};

constexpr GgufName kSeedTensors[] = {{"post_attention_norm", "post_attention_layernorm"}};

constexpr GgufName kHunyuanTensors[] = {{"attn_q_norm", "self_attn.query_layernorm"},
                                        {"attn_k_norm", "self_attn.key_layernorm"}};

constexpr GgufName kStarcoderTensors[] = {{"ffn_up", "mlp.c_fc"}, {"ffn_down", "mlp.c_proj"}};

constexpr GgufKey kGraniteKeys[] = {{"attention.scale", "attention_multiplier"},
                                    {"embedding_scale", "embedding_multiplier"},
                                    {"residual_scale", "residual_multiplier"},
                                    {"logit_scale", "logits_scaling"}};

constexpr GgufKey kCohereKeys[] = {{"logit_scale", "logit_scale"},
                                   {"attention.layer_norm_epsilon", "layer_norm_eps"}};

constexpr GgufKey kStarcoderKeys[] = {{"attention.layer_norm_epsilon", "norm_epsilon"}};

constexpr GgufKey kStableLmKeys[] = {{"attention.layer_norm_epsilon", "layer_norm_eps"}};

constexpr GgufKey kNemotronKeys[] = {{"attention.layer_norm_epsilon", "norm_eps"}};

constexpr std::string_view kGemmaFields = R"({"hidden_activation": "gelu_pytorch_tanh"})";

// Scores are scaled by the size of a head, but in the largest model of each generation, which has
// `layers` layers, by the hidden size for each head.
void scale_scores(Json& config, int64_t layers) {
  const bool largest = config["num_hidden_layers"] == layers;
  config["query_pre_attn_scalar"] =
      largest ? config["hidden_size"].get<int64_t>() / config["num_attention_heads"].get<int64_t>()
              : config["head_dim"].get<int64_t>();
}

void complete_gemma2(Json& config) { scale_scores(config, 46); }
void complete_gemma3(Json& config) { scale_scores(config, 62); }

// OLMo 3 is OLMo 2 with windows.
void complete_olmo2(Json& config) {
  if (!config.contains("sliding_window")) return;
  config["architectures"] = Json::array({"Olmo3ForCausalLM"});
  config["model_type"] = "olmo3";
}

void complete_stablelm(Json& config) { config["use_qkv_bias"] = config["attention_bias"]; }

constexpr GgufArchitecture kArchitectures[] = {
    {.name = "llama",
     .hf_class = "LlamaForCausalLM",
     .model_type = "llama",
     .interleaves_heads = true,
     .is_written = true},
    {.name = "qwen2", .hf_class = "Qwen2ForCausalLM", .model_type = "qwen2", .is_written = true},
    {.name = "qwen3", .hf_class = "Qwen3ForCausalLM", .model_type = "qwen3", .is_written = true},
    {.name = "gemma2",
     .hf_class = "Gemma2ForCausalLM",
     .model_type = "gemma2",
     .whole_norms = true,
     .tensors = kGemmaTensors,
     .fields = kGemmaFields,
     .complete = complete_gemma2},
    {.name = "gemma3",
     .hf_class = "Gemma3ForCausalLM",
     .model_type = "gemma3_text",
     .whole_norms = true,
     .tensors = kGemmaTensors,
     .fields = kGemmaFields,
     .complete = complete_gemma3},
    {.name = "phi3", .hf_class = "Phi3ForCausalLM", .model_type = "phi3", .tensors = kPhi3Tensors},
    {.name = "smollm3",
     .hf_class = "SmolLM3ForCausalLM",
     .model_type = "smollm3",
     .interleaves_heads = true},
    {.name = "gemma",
     .hf_class = "GemmaForCausalLM",
     .model_type = "gemma",
     .whole_norms = true,
     .fields = kGemmaFields},
    {.name = "granite",
     .hf_class = "GraniteForCausalLM",
     .model_type = "granite",
     .interleaves_heads = true,
     .keys = kGraniteKeys},
    {.name = "olmo2",
     .hf_class = "Olmo2ForCausalLM",
     .model_type = "olmo2",
     .tensors = kPostNormTensors,
     .complete = complete_olmo2},
    {.name = "exaone4",
     .hf_class = "Exaone4ForCausalLM",
     .model_type = "exaone4",
     .tensors = kPostNormTensors},
    {.name = "glm4", .hf_class = "Glm4ForCausalLM", .model_type = "glm4", .tensors = kGlm4Tensors},
    {.name = "seed_oss",
     .hf_class = "SeedOssForCausalLM",
     .model_type = "seed_oss",
     .tensors = kSeedTensors},
    {.name = "ernie4_5", .hf_class = "Ernie4_5ForCausalLM", .model_type = "ernie4_5"},
    {.name = "hunyuan-dense",
     .hf_class = "HunYuanDenseV1ForCausalLM",
     .model_type = "hunyuan_v1_dense",
     .tensors = kHunyuanTensors},
    {.name = "arcee",
     .hf_class = "ArceeForCausalLM",
     .model_type = "arcee",
     .interleaves_heads = true,
     .fields = R"({"hidden_act": "relu2"})"},
    {.name = "cohere2",
     .hf_class = "Cohere2ForCausalLM",
     .model_type = "cohere2",
     .keys = kCohereKeys},
    {.name = "starcoder2",
     .hf_class = "Starcoder2ForCausalLM",
     .model_type = "starcoder2",
     .tensors = kStarcoderTensors,
     .keys = kStarcoderKeys,
     .fields = R"({"hidden_act": "gelu_pytorch_tanh", "use_bias": true})"},
    {.name = "stablelm",
     .hf_class = "StableLmForCausalLM",
     .model_type = "stablelm",
     .keys = kStableLmKeys,
     .complete = complete_stablelm},
    {.name = "nemotron",
     .hf_class = "NemotronForCausalLM",
     .model_type = "nemotron",
     .whole_norms = true,
     .keys = kNemotronKeys,
     .fields = R"({"hidden_act": "relu2"})"},
};

}  // namespace

std::span<const GgufArchitecture> gguf_architectures() { return kArchitectures; }

}  // namespace foretoken
