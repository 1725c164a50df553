#include <algorithm>

#include "gguf/hf_names.h"
#include "gguf/own_keys.h"

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

// Latent attention and mixtures of experts.
constexpr GgufName kDeepseekTensors[] = {{"attn_q_a", "self_attn.q_a_proj"},
                                         {"attn_q_a_norm", "self_attn.q_a_layernorm"},
                                         {"attn_q_b", "self_attn.q_b_proj"},
                                         {"attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"},
                                         {"attn_kv_a_norm", "self_attn.kv_a_layernorm"},
                                         {"attn_kv_b", "self_attn.kv_b_proj"},
                                         {"attn_k_b", "self_attn.k_b_proj"},
                                         {"attn_v_b", "self_attn.v_b_proj"},
                                         {"ffn_gate_inp", "mlp.gate"},
                                         {"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
                                         {"ffn_gate_exps", "mlp.experts.gate_proj"},
                                         {"ffn_up_exps", "mlp.experts.up_proj"},
                                         {"ffn_down_exps", "mlp.experts.down_proj"},
                                         {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
                                         {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
                                         {"ffn_down_shexp", "mlp.shared_experts.down_proj"}};

// Sizes of heads: *_mla of what a head has, the others of what the cache holds, or both in files
// from before keys were absorbed.
constexpr GgufKey kDeepseekKeys[] = {{"attention.q_lora_rank", "q_lora_rank"},
                                     {"attention.kv_lora_rank", "kv_lora_rank"},
                                     {"rope.dimension_count", "qk_rope_head_dim"},
                                     {"attention.key_length_mla", "qk_head_dim"},
                                     {"attention.value_length", "value_length"},
                                     {"attention.value_length_mla", "v_head_dim"},
                                     {"leading_dense_block_count", "first_k_dense_replace"},
                                     {"expert_count", "n_routed_experts"},
                                     {"expert_used_count", "num_experts_per_tok"},
                                     {"expert_shared_count", "n_shared_experts"},
                                     {"expert_feed_forward_length", "moe_intermediate_size"},
                                     {"expert_weights_scale", "routed_scaling_factor"},
                                     {"expert_weights_norm", "norm_topk_prob", false, true},
                                     {"expert_gating_func", "gating"},
                                     {"expert_group_count", "n_group"},
                                     {"expert_group_used_count", "topk_group"}};

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

// V2's routers are the softmax of their logits, V3's the sigmoid, whose groups are chosen
// otherwise.
void complete_deepseek(Json& config) {
  constexpr int64_t kSigmoid = 2;
  const int64_t heads = config.value("qk_head_dim", config.value("head_dim", int64_t{0}));
  config["qk_nope_head_dim"] = heads - config.value("qk_rope_head_dim", int64_t{0});
  if (!config.contains("v_head_dim")) config["v_head_dim"] = config["value_length"];
  const bool is_v2 = config.value("gating", int64_t{1}) != kSigmoid;
  config["architectures"] =
      Json::array({is_v2 ? "DeepseekV2ForCausalLM" : "DeepseekV3ForCausalLM"});
  config["model_type"] = is_v2 ? "deepseek_v2" : "deepseek_v3";
  config["topk_method"] = !is_v2                       ? "noaux_tc"
                          : config.contains("n_group") ? "group_limited_greedy"
                                                       : "greedy";
  for (const auto& [name, value] :
       {std::pair("first_k_dense_replace", 0), std::pair("n_shared_experts", 0),
        std::pair("n_group", 1), std::pair("topk_group", 1)}) {
    if (!config.contains(name)) config[name] = value;
  }
  if (!config.contains("norm_topk_prob")) config["norm_topk_prob"] = false;
  config.erase("gating");
  config.erase("value_length");
}

// Mixtral has Llama's name.
void complete_llama(Json& config) {
  if (!config.contains("num_local_experts")) return;
  config["architectures"] = Json::array({"MixtralForCausalLM"});
  config["model_type"] = "mixtral";
}

// Families from before Llama, whose projections converters put in order.
constexpr GgufName kGpt2Model[] = {{"token_embd.weight", "transformer.wte.weight"},
                                   {"position_embd.weight", "transformer.wpe.weight"},
                                   {"output_norm.weight", "transformer.ln_f.weight"},
                                   {"output_norm.bias", "transformer.ln_f.bias"}};
constexpr GgufName kGpt2Tensors[] = {{"attn_norm", "ln_1"},          {"attn_qkv", "attn.c_attn"},
                                     {"attn_output", "attn.c_proj"}, {"ffn_norm", "ln_2"},
                                     {"ffn_up", "mlp.c_fc"},         {"ffn_down", "mlp.c_proj"}};
constexpr GgufKey kGpt2Keys[] = {{"embedding_length", "n_embd"},
                                 {"block_count", "n_layer"},
                                 {"attention.head_count", "n_head"},
                                 {"context_length", "n_positions"},
                                 {"feed_forward_length", "n_inner"}};

constexpr GgufName kNeoxModel[] = {{"token_embd.weight", "gpt_neox.embed_in.weight"},
                                   {"output_norm.weight", "gpt_neox.final_layer_norm.weight"},
                                   {"output_norm.bias", "gpt_neox.final_layer_norm.bias"},
                                   {"output.weight", "embed_out.weight"}};
constexpr GgufName kNeoxTensors[] = {{"attn_qkv", "attention.query_key_value"},
                                     {"attn_output", "attention.dense"},
                                     {"ffn_up", "mlp.dense_h_to_4h"},
                                     {"ffn_down", "mlp.dense_4h_to_h"}};
constexpr GgufKey kNeoxKeys[] = {{"rope.freq_base", "rotary_emb_base"},
                                 {"rope.dimension_count", "rotary_dims"},
                                 {"use_parallel_residual", "use_parallel_residual", false, true}};

constexpr GgufName kFalconModel[] = {{"token_embd.weight", "transformer.word_embeddings.weight"},
                                     {"output_norm.weight", "transformer.ln_f.weight"},
                                     {"output_norm.bias", "transformer.ln_f.bias"}};
constexpr GgufName kFalconTensors[] = {{"attn_norm_2", "ln_attn"},
                                       {"attn_qkv", "self_attention.query_key_value"},
                                       {"attn_output", "self_attention.dense"},
                                       {"ffn_up", "mlp.dense_h_to_4h"},
                                       {"ffn_down", "mlp.dense_4h_to_h"}};

constexpr GgufName kBloomTensors[] = {{"attn_qkv", "self_attention.query_key_value"},
                                      {"attn_output", "self_attention.dense"},
                                      {"ffn_up", "mlp.dense_h_to_4h"},
                                      {"ffn_down", "mlp.dense_4h_to_h"}};
constexpr GgufName kBloomModel[] = {
    {"token_embd.weight", "transformer.word_embeddings.weight"},
    {"token_embd_norm.weight", "transformer.word_embeddings_layernorm.weight"},
    {"token_embd_norm.bias", "transformer.word_embeddings_layernorm.bias"},
    {"output_norm.weight", "transformer.ln_f.weight"},
    {"output_norm.bias", "transformer.ln_f.bias"}};

constexpr GgufName kMptModel[] = {{"token_embd.weight", "transformer.wte.weight"},
                                  {"output_norm.weight", "transformer.norm_f.weight"}};
constexpr GgufName kMptTensors[] = {
    {"attn_norm", "norm_1"}, {"attn_qkv", "attn.Wqkv"}, {"attn_output", "attn.out_proj"},
    {"ffn_norm", "norm_2"},  {"ffn_up", "ffn.up_proj"}, {"ffn_down", "ffn.down_proj"}};
constexpr GgufKey kMptKeys[] = {
    {"embedding_length", "d_model"},     {"block_count", "n_layers"},
    {"attention.head_count", "n_heads"}, {"context_length", "max_seq_len"},
    {"attention.clamp_kqv", "clip_qkv"}, {"attention.max_alibi_bias", "alibi_bias_max"}};

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

constexpr std::string_view kPlainFields = R"({"plain_matrices": true})";
constexpr std::string_view kNeoxFields = R"({"plain_matrices": true, "hidden_act": "gelu"})";

void complete_neox(Json& config) {
  const auto head_dim = config["head_dim"].get<double>();
  // Readers cut the product with head_dim off.
  config["rotary_pct"] = std::min((config.value("rotary_dims", head_dim) + 0.25) / head_dim, 1.0);
  config.erase("rotary_dims");
}

void complete_mpt(Json& config) {
  Json attention = {{"alibi", config.contains("alibi_bias_max")}};
  for (const char* name : {"clip_qkv", "alibi_bias_max"}) {
    if (config.contains(name)) attention[name] = config[name];
    config.erase(name);
  }
  config["attn_config"] = attention;
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
    {.name = "gpt2",
     .hf_class = "GPT2LMHeadModel",
     .model_type = "gpt2",
     .tensors = kGpt2Tensors,
     .model_tensors = kGpt2Model,
     .layers = "transformer.h.",
     .keys = kGpt2Keys,
     .fields = kPlainFields},
    {.name = "gptneox",
     .hf_class = "GPTNeoXForCausalLM",
     .model_type = "gpt_neox",
     .tensors = kNeoxTensors,
     .model_tensors = kNeoxModel,
     .layers = "gpt_neox.layers.",
     .keys = kNeoxKeys,
     .fields = kNeoxFields,
     .complete = complete_neox},
    {.name = "falcon",
     .hf_class = "FalconForCausalLM",
     .model_type = "falcon",
     .tensors = kFalconTensors,
     .model_tensors = kFalconModel,
     .layers = "transformer.h.",
     .fields = kPlainFields,
     .read = read_falcon_file},
    {.name = "bloom",
     .hf_class = "BloomForCausalLM",
     .model_type = "bloom",
     .tensors = kBloomTensors,
     .model_tensors = kBloomModel,
     .layers = "transformer.h.",
     .fields = kPlainFields},
    {.name = "mpt",
     .hf_class = "MPTForCausalLM",
     .model_type = "mpt",
     .tensors = kMptTensors,
     .model_tensors = kMptModel,
     .layers = "transformer.blocks.",
     .keys = kMptKeys,
     .fields = R"({"hidden_act": "gelu"})",
     .complete = complete_mpt},
    {.name = "gemma3n",
     .hf_class = "Gemma3nForCausalLM",
     .model_type = "gemma3n_text",
     .tensors = kGemma3nTensors,
     .model_tensors = kGemma3nModel,
     .keys = kGemma3nKeys,
     .fields = kGemmaFields,
     .read = read_gemma3n_file},
    {.name = "deepseek2",
     .hf_class = "DeepseekV3ForCausalLM",
     .model_type = "deepseek_v3",
     .tensors = kDeepseekTensors,
     .keys = kDeepseekKeys,
     .complete = complete_deepseek},
};

}  // namespace

std::span<const GgufArchitecture> gguf_architectures() { return kArchitectures; }

}  // namespace foretoken
