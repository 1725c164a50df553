#include <algorithm>
#include <string>
#include <vector>

#include "gguf/early_architectures.h"
#include "gguf/encoder_architectures.h"
#include "gguf/hf_names.h"
#include "gguf/latent_architectures.h"
#include "gguf/later_architectures.h"
#include "gguf/linear_architectures.h"
#include "gguf/mixture_architectures.h"
#include "gguf/own_keys.h"
#include "gguf/recurrent_architectures.h"
#include "gguf/sparse_architectures.h"

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

// Of rerankers: the rows of the output matrix that say yes and no.
constexpr GgufName kQwen3Model[] = {{"cls.output.weight", "score.weight"}};

Status read_qwen3_file(const GgufFile& file, Json& config) {
  if (!file.tensors().contains("cls.output.weight")) return {};
  config["architectures"] = Json::array({"Qwen3ForSequenceClassification"});
  config["id2label"] = {{"0", "yes"}, {"1", "no"}};
  return {};
}

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

// Latent attention and mixtures of experts.

// Sizes of heads: *_mla of what a head has, the others of what the cache holds, or both in files
// from before keys were absorbed.

// Mixtures, whose experts lie in one tensor.
constexpr GgufName kExpertTensors[] = {{"ffn_gate_inp", "mlp.gate"},
                                       {"ffn_gate_exps", "mlp.experts.gate_proj"},
                                       {"ffn_up_exps", "mlp.experts.up_proj"},
                                       {"ffn_down_exps", "mlp.experts.down_proj"},
                                       {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
                                       {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
                                       {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
                                       {"ffn_down_shexp", "mlp.shared_expert.down_proj"}};
constexpr GgufName kMixtralTensors[] = {{"ffn_gate_inp", "block_sparse_moe.gate"},
                                        {"ffn_gate_exps", "block_sparse_moe.experts.w1"},
                                        {"ffn_up_exps", "block_sparse_moe.experts.w3"},
                                        {"ffn_down_exps", "block_sparse_moe.experts.w2"}};

constexpr GgufName kGptOssTensors[] = {
    {"attn_sinks.weight", "self_attn.sinks"}, {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_gate_inp", "mlp.router"},           {"ffn_gate_exps", "mlp.experts.gate_proj"},
    {"ffn_up_exps", "mlp.experts.up_proj"},   {"ffn_down_exps", "mlp.experts.down_proj"}};

constexpr GgufKey kExpertKeys[] = {
    {"expert_count", "num_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}};
constexpr GgufKey kGptOssKeys[] = {{"expert_count", "num_local_experts"},
                                   {"expert_used_count", "num_experts_per_tok"},
                                   {"expert_feed_forward_length", "moe_intermediate_size"}};
constexpr GgufKey kMixtralKeys[] = {{"expert_count", "num_local_experts"},
                                    {"expert_used_count", "num_experts_per_tok"}};

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

// Mixtral has Llama's name, and so has Mistral, whose first model sees a window.
void complete_llama(Json& config) {
  const bool is_mixture = config.contains("num_local_experts");
  if (!is_mixture && !config.contains("sliding_window")) return;
  config["architectures"] = Json::array({is_mixture ? "MixtralForCausalLM" : "MistralForCausalLM"});
  config["model_type"] = is_mixture ? "mixtral" : "mistral";
}

constexpr GgufKey kMistral3Keys[] = {{"attention.temperature_scale", "llama_4_scaling_beta"}};

// Parameters of the activation stand among the metadata.
constexpr GgufName kApertusTensors[] = {{"attn_norm", "attention_layernorm"},
                                        {"ffn_norm", "feedforward_layernorm"}};
constexpr GgufName kApertusNumbers[] = {{"xielu.alpha_p", "mlp.act_fn.alpha_p"},
                                        {"xielu.alpha_n", "mlp.act_fn.alpha_n"},
                                        {"xielu.beta", "mlp.act_fn.beta"},
                                        {"xielu.eps", "mlp.act_fn.eps"}};

constexpr GgufName kGemma3nModel[] = {
    {"per_layer_token_embd.weight", "model.embed_tokens_per_layer.weight"},
    {"per_layer_model_proj.weight", "model.per_layer_model_projection.weight"},
    {"per_layer_proj_norm.weight", "model.per_layer_projection_norm.weight"},
    {"altup_proj.weight", "model.altup_projections.weight"},
    {"altup_unembd_proj.weight", "model.altup_unembed_projections.weight"}};
constexpr GgufName kGemma3nTensors[] = {
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
    {"inp_gate", "per_layer_input_gate"},
    {"proj", "per_layer_projection"},
    {"post_norm", "post_per_layer_input_norm"},
    {"altup_correct_coef", "altup.correction_coefs"},
    {"altup_correct_scale.weight", "altup.correct_output_scale"},
    {"altup_predict_coef", "altup.prediction_coefs"},
    {"altup_router", "altup.modality_router"},
    {"altup_router_norm", "altup.router_norm"},
    {"laurel_l", "laurel.linear_left"},
    {"laurel_r", "laurel.linear_right"},
    {"laurel_post_norm", "laurel.post_laurel_norm"}};
constexpr GgufKey kGemma3nKeys[] = {
    {"embedding_length_per_layer_input", "hidden_size_per_layer_input"},
    {"altup.num_inputs", "altup_num_inputs"},
    {"altup.active_idx", "altup_active_idx"}};

constexpr GgufName kGemma4Model[] = {
    {"per_layer_token_embd.weight", "model.embed_tokens_per_layer.weight"},
    {"per_layer_model_proj.weight", "model.per_layer_model_projection.weight"},
    {"per_layer_proj_norm.weight", "model.per_layer_projection_norm.weight"}};
// Experts stand beside the MLP, gates and ups of all in one tensor.
constexpr GgufName kGemma4Tensors[] = {{"post_attention_norm", "post_attention_layernorm"},
                                       {"ffn_norm", "pre_feedforward_layernorm"},
                                       {"post_ffw_norm", "post_feedforward_layernorm"},
                                       {"post_ffw_norm_1", "post_feedforward_layernorm_1"},
                                       {"pre_ffw_norm_2", "pre_feedforward_layernorm_2"},
                                       {"post_ffw_norm_2", "post_feedforward_layernorm_2"},
                                       {"layer_output_scale.weight", "layer_scalar"},
                                       {"inp_gate", "per_layer_input_gate"},
                                       {"proj", "per_layer_projection"},
                                       {"post_norm", "post_per_layer_input_norm"},
                                       {"ffn_gate_inp", "router.proj"},
                                       {"ffn_gate_inp.scale", "router.scale"},
                                       {"ffn_down_exps.scale", "router.per_expert_scale"},
                                       {"ffn_gate_up_exps.weight", "experts.gate_up_proj"},
                                       {"ffn_gate_exps", "experts.gate_proj"},
                                       {"ffn_up_exps", "experts.up_proj"},
                                       {"ffn_down_exps.weight", "experts.down_proj"}};
constexpr GgufKey kGemma4Keys[] = {{"expert_count", "num_experts"},
                                   {"expert_used_count", "top_k_experts"},
                                   {"expert_feed_forward_length", "moe_intermediate_size"},
                                   {"attention.value_length", "value_length"}};

// Latents as DeepSeek's, multipliers as MiniCPM's, which files do not say.
constexpr GgufKey kMiniCpm3Keys[] = {{"attention.q_lora_rank", "q_lora_rank"},
                                     {"attention.kv_lora_rank", "kv_lora_rank"},
                                     {"rope.dimension_count", "qk_rope_head_dim"}};

// Norms before the last matrix of each part.
constexpr GgufName kBitNetTensors[] = {{"attn_sub_norm", "self_attn.attn_sub_norm"},
                                       {"ffn_sub_norm", "mlp.ffn_sub_norm"}};

void complete_minicpm3(Json& config) {
  const auto number = [&](const char* name) { return config.value(name, int64_t{0}); };
  config["qk_nope_head_dim"] = number("head_dim") - number("qk_rope_head_dim");
  config["v_head_dim"] = number("hidden_size") / number("num_attention_heads");
}

constexpr GgufArchitecture kArchitectures[] = {
    {.name = "llama",
     .hf_class = "LlamaForCausalLM",
     .model_type = "llama",
     .interleaves_heads = true,
     .is_written = true,
     .tensors = kMixtralTensors,
     .keys = kMixtralKeys,
     .complete = complete_llama},
    {.name = "qwen2", .hf_class = "Qwen2ForCausalLM", .model_type = "qwen2", .is_written = true},
    {.name = "qwen3",
     .hf_class = "Qwen3ForCausalLM",
     .model_type = "qwen3",
     .is_written = true,
     .model_tensors = kQwen3Model,
     .read = read_qwen3_file},
    {.name = "qwen2vl", .hf_class = "Qwen2ForCausalLM", .model_type = "qwen2"},
    {.name = "qwen3vl", .hf_class = "Qwen3ForCausalLM", .model_type = "qwen3"},
    {.name = "mistral3",
     .hf_class = "Ministral3ForCausalLM",
     .model_type = "ministral3",
     .interleaves_heads = true,
     .keys = kMistral3Keys,
     .rope_scaling = R"({"attention_factor": 1.0})"},
    {.name = "apertus",
     .hf_class = "ApertusForCausalLM",
     .model_type = "apertus",
     .tensors = kApertusTensors,
     .fields = R"({"hidden_act": "xielu"})",
     .numbers = kApertusNumbers},
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
    {.name = "gemma4",
     .hf_class = "Gemma4ForCausalLM",
     .model_type = "gemma4_text",
     .tensors = kGemma4Tensors,
     .model_tensors = kGemma4Model,
     .keys = kGemma4Keys,
     .fields = kGemmaFields,
     .read = read_gemma4_file},
    {.name = "deci",
     .hf_class = "DeciLMForCausalLM",
     .model_type = "nemotron-nas",
     .interleaves_heads = true,
     .read = read_deci_file},
    {.name = "minicpm3",
     .hf_class = "MiniCPM3ForCausalLM",
     .model_type = "minicpm3",
     .tensors = kLatentTensors,
     .keys = kMiniCpm3Keys,
     .fields = R"({"scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256})",
     .complete = complete_minicpm3},
    // The models of 2024, whose gates are SiLU's, and Microsoft's of 2025.
    {.name = "bitnet",
     .hf_class = "BitNetForCausalLM",
     .model_type = "bitnet",
     .tensors = kBitNetTensors},
    {.name = "bitnet-b1.58",
     .hf_class = "BitNetForCausalLM",
     .model_type = "bitnet",
     .tensors = kBitNetTensors,
     .fields = R"({"hidden_act": "relu2"})"},
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
    {.name = "jais2",
     .hf_class = "Jais2ForCausalLM",
     .model_type = "jais2",
     .keys = kStableLmKeys,
     .fields = R"({"hidden_act": "relu2", "mlp_bias": true})"},
    {.name = "command-r",
     .hf_class = "CohereForCausalLM",
     .model_type = "cohere",
     .keys = kCohereKeys},
    {.name = "cohere2",
     .hf_class = "Cohere2ForCausalLM",
     .model_type = "cohere2",
     .keys = kCohereKeys},
    {.name = "starcoder2",
     .hf_class = "Starcoder2ForCausalLM",
     .model_type = "starcoder2",
     .tensors = kStarcoderTensors,
     .keys = kStarcoderKeys,
     .fields = R"({"hidden_act": "gelu_pytorch_tanh"})"},
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
    {.name = "qwen2moe",
     .hf_class = "Qwen2MoeForCausalLM",
     .model_type = "qwen2_moe",
     .tensors = kExpertTensors,
     .keys = kExpertKeys},
    {.name = "qwen3moe",
     .hf_class = "Qwen3MoeForCausalLM",
     .model_type = "qwen3_moe",
     .tensors = kExpertTensors,
     .keys = kExpertKeys,
     .fields = R"({"norm_topk_prob": true})"},
    {.name = "olmoe",
     .hf_class = "OlmoeForCausalLM",
     .model_type = "olmoe",
     .tensors = kExpertTensors,
     .keys = kExpertKeys},
    {.name = "gpt-oss",
     .hf_class = "GptOssForCausalLM",
     .model_type = "gpt_oss",
     .tensors = kGptOssTensors,
     .keys = kGptOssKeys,
     .rope_scaling = R"({"truncate": false})"},
    {.name = "gemma3n",
     .hf_class = "Gemma3nForCausalLM",
     .model_type = "gemma3n_text",
     .tensors = kGemma3nTensors,
     .model_tensors = kGemma3nModel,
     .keys = kGemma3nKeys,
     .fields = kGemmaFields,
     .read = read_gemma3n_file},
};

}  // namespace

std::span<const GgufArchitecture> gguf_architectures() {
  static const std::vector<GgufArchitecture> kAll = [] {
    std::vector<GgufArchitecture> all(std::begin(kArchitectures), std::end(kArchitectures));
    for (const auto part :
         {latent_gguf_architectures(), mixture_gguf_architectures(), early_gguf_architectures(),
          recurrent_gguf_architectures(), linear_gguf_architectures(), sparse_gguf_architectures(),
          later_gguf_architectures(), encoder_gguf_architectures()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return kAll;
}

}  // namespace foretoken
