#include "gguf/mixture_architectures.h"

#include "gguf/latent_architectures.h"
#include "gguf/own_keys.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Behind the last layer stand those of MTP modules, each with norms, a projection and at times an
// embedding and an output matrix of its own.
constexpr GgufName kGlm4MoeTensors[] = {{"post_attention_norm", "post_attention_layernorm"},
                                        {"ffn_gate_inp", "mlp.gate"},
                                        {"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
                                        {"ffn_gate_exps", "mlp.experts.gate_proj"},
                                        {"ffn_up_exps", "mlp.experts.up_proj"},
                                        {"ffn_down_exps", "mlp.experts.down_proj"},
                                        {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
                                        {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
                                        {"ffn_down_shexp", "mlp.shared_experts.down_proj"},
                                        {"nextn.eh_proj", "eh_proj"},
                                        {"nextn.enorm", "enorm"},
                                        {"nextn.hnorm", "hnorm"},
                                        {"nextn.embed_tokens", "embed_tokens"},
                                        {"nextn.shared_head_norm", "shared_head.norm"},
                                        {"nextn.shared_head_head", "shared_head.head"}};

constexpr GgufName kDots1Tensors[] = {{"ffn_gate_inp", "mlp.gate"},
                                      {"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
                                      {"ffn_gate_exps", "mlp.experts.gate_proj"},
                                      {"ffn_up_exps", "mlp.experts.up_proj"},
                                      {"ffn_down_exps", "mlp.experts.down_proj"},
                                      {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
                                      {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
                                      {"ffn_down_shexp", "mlp.shared_experts.down_proj"}};

constexpr GgufName kBailing2Tensors[] = {{"attn_qkv", "attention.query_key_value"},
                                         {"attn_output", "attention.dense"},
                                         {"attn_q_norm", "attention.query_layernorm"},
                                         {"attn_k_norm", "attention.key_layernorm"},
                                         {"ffn_gate_inp", "mlp.gate"},
                                         {"exp_probs_b.bias", "mlp.gate.expert_bias"},
                                         {"ffn_gate_exps", "mlp.experts.gate_proj"},
                                         {"ffn_up_exps", "mlp.experts.up_proj"},
                                         {"ffn_down_exps", "mlp.experts.down_proj"},
                                         {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
                                         {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
                                         {"ffn_down_shexp", "mlp.shared_experts.down_proj"},
                                         {"layer_output_norm", "final_layernorm"},
                                         {"nextn.eh_proj", "eh_proj"},
                                         {"nextn.enorm", "enorm"},
                                         {"nextn.hnorm", "hnorm"},
                                         {"nextn.shared_head_norm", "final_layernorm"}};
constexpr GgufName kBailing2Model[] = {{"token_embd.weight", "model.word_embeddings.weight"}};

constexpr GgufName kBailingTensors[] = {{"attn_q", "attention.q_proj"},
                                        {"attn_k", "attention.k_proj"},
                                        {"attn_v", "attention.v_proj"},
                                        {"attn_output", "attention.dense"},
                                        {"ffn_gate_inp", "mlp.gate"},
                                        {"ffn_gate_exps", "mlp.experts.gate_proj"},
                                        {"ffn_up_exps", "mlp.experts.up_proj"},
                                        {"ffn_down_exps", "mlp.experts.down_proj"},
                                        {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
                                        {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
                                        {"ffn_down_shexp", "mlp.shared_experts.down_proj"}};

constexpr GgufName kExaoneMoeTensors[] = {{"ffn_gate_inp", "mlp.gate"},
                                          {"exp_probs_b.bias", "mlp.e_score_correction_bias"},
                                          {"ffn_gate_exps", "mlp.experts.gate_proj"},
                                          {"ffn_up_exps", "mlp.experts.up_proj"},
                                          {"ffn_down_exps", "mlp.experts.down_proj"},
                                          {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
                                          {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
                                          {"ffn_down_shexp", "mlp.shared_experts.down_proj"}};

// Converters write the router's bias with an ending and without.
constexpr GgufName kHyV3Tensors[] = {{"ffn_gate_inp", "mlp.router.gate"},
                                     {"exp_probs_b", "mlp.expert_bias"},
                                     {"exp_probs_b.bias", "mlp.expert_bias"},
                                     {"ffn_gate_exps", "mlp.experts.gate_proj"},
                                     {"ffn_up_exps", "mlp.experts.up_proj"},
                                     {"ffn_down_exps", "mlp.experts.down_proj"},
                                     {"ffn_gate_shexp", "mlp.shared_mlp.gate_proj"},
                                     {"ffn_up_shexp", "mlp.shared_mlp.up_proj"},
                                     {"ffn_down_shexp", "mlp.shared_mlp.down_proj"}};

constexpr GgufName kMimo2Tensors[] = {{"attn_sinks.weight", "self_attn.attention_sink_bias"},
                                      {"attn_qkv", "self_attn.qkv_proj"},
                                      {"ffn_gate_inp", "mlp.gate"},
                                      {"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
                                      {"ffn_gate_exps", "mlp.experts.gate_proj"},
                                      {"ffn_up_exps", "mlp.experts.up_proj"},
                                      {"ffn_down_exps", "mlp.experts.down_proj"},
                                      {"layer_output_norm", "final_layernorm"},
                                      {"nextn.eh_proj", "eh_proj"},
                                      {"nextn.enorm", "enorm"},
                                      {"nextn.hnorm", "hnorm"}};
constexpr GgufName kMimo2ModuleTensors[] = {
    {"ffn_norm.weight", "pre_mlp_layernorm.weight"},
    {"nextn.shared_head_norm.weight", "final_layernorm.weight"}};

constexpr GgufName kAfmoeTensors[] = {{"attn_gate", "self_attn.gate_proj"},
                                      {"post_attention_norm", "post_attention_layernorm"},
                                      {"ffn_norm", "pre_mlp_layernorm"},
                                      {"post_ffw_norm", "post_mlp_layernorm"},
                                      {"ffn_gate_inp", "mlp.router.gate"},
                                      {"exp_probs_b.bias", "mlp.expert_bias"},
                                      {"ffn_gate_exps", "mlp.experts.gate_proj"},
                                      {"ffn_up_exps", "mlp.experts.up_proj"},
                                      {"ffn_down_exps", "mlp.experts.down_proj"},
                                      {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
                                      {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
                                      {"ffn_down_shexp", "mlp.shared_experts.down_proj"}};

constexpr GgufName kLagunaTensors[] = {{"attn_gate", "self_attn.g_proj"},
                                       {"ffn_gate_inp", "mlp.gate"},
                                       {"exp_probs_b.bias", "mlp.experts.e_score_correction_bias"},
                                       {"ffn_gate_exps", "mlp.experts.gate_proj"},
                                       {"ffn_up_exps", "mlp.experts.up_proj"},
                                       {"ffn_down_exps", "mlp.experts.down_proj"},
                                       {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
                                       {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
                                       {"ffn_down_shexp", "mlp.shared_expert.down_proj"}};

constexpr GgufName kStepTensors[] = {{"attn_gate", "self_attn.g_proj"},
                                     {"ffn_gate_inp", "moe.gate"},
                                     {"exp_probs_b.bias", "moe.router_bias"},
                                     {"ffn_gate_exps", "moe.gate_proj"},
                                     {"ffn_up_exps", "moe.up_proj"},
                                     {"ffn_down_exps", "moe.down_proj"},
                                     {"ffn_gate_shexp", "share_expert.gate_proj"},
                                     {"ffn_up_shexp", "share_expert.up_proj"},
                                     {"ffn_down_shexp", "share_expert.down_proj"},
                                     {"nextn.eh_proj", "eh_proj"},
                                     {"nextn.enorm", "enorm"},
                                     {"nextn.hnorm", "hnorm"},
                                     {"nextn.embed_tokens", "embed_tokens"},
                                     {"nextn.shared_head_norm", "transformer.shared_head.norm"},
                                     {"nextn.shared_head_head", "transformer.shared_head.output"}};

constexpr GgufName kErnieTensors[] = {
    {"ffn_gate_inp", "mlp.gate"},
    {"exp_probs_b.bias", "mlp.moe_statics.e_score_correction_bias"},
    {"ffn_gate_exps", "mlp.experts.gate_proj"},
    {"ffn_up_exps", "mlp.experts.up_proj"},
    {"ffn_down_exps", "mlp.experts.down_proj"},
    {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
    {"ffn_down_shexp", "mlp.shared_experts.down_proj"}};

constexpr GgufName kHunyuanMoeTensors[] = {{"attn_q_norm", "self_attn.query_layernorm"},
                                           {"attn_k_norm", "self_attn.key_layernorm"},
                                           {"ffn_gate_inp", "mlp.gate.wg"},
                                           {"ffn_gate_exps", "mlp.experts.gate_proj"},
                                           {"ffn_up_exps", "mlp.experts.up_proj"},
                                           {"ffn_down_exps", "mlp.experts.down_proj"},
                                           {"ffn_gate_shexp", "mlp.shared_mlp.gate_proj"},
                                           {"ffn_up_shexp", "mlp.shared_mlp.up_proj"},
                                           {"ffn_down_shexp", "mlp.shared_mlp.down_proj"}};

constexpr GgufName kSparseMoeTensors[] = {
    {"ffn_gate_inp", "block_sparse_moe.gate"},
    {"exp_probs_b.bias", "block_sparse_moe.e_score_correction_bias"},
    {"ffn_gate_exps", "block_sparse_moe.experts.w1"},
    {"ffn_up_exps", "block_sparse_moe.experts.w3"},
    {"ffn_down_exps", "block_sparse_moe.experts.w2"}};

// Gates and ups, which folders have in one tensor, lie apart.
constexpr GgufName kGraniteTensors[] = {{"ffn_gate_inp", "block_sparse_moe.router.layer"},
                                        {"ffn_gate_exps", "block_sparse_moe.gate_proj"},
                                        {"ffn_up_exps", "block_sparse_moe.up_proj"},
                                        {"ffn_down_exps", "block_sparse_moe.output_linear.weight"},
                                        {"ffn_gate_shexp", "shared_mlp.gate_proj"},
                                        {"ffn_up_shexp", "shared_mlp.up_proj"},
                                        {"ffn_down_shexp", "shared_mlp.output_linear"}};

constexpr GgufName kLlama4Tensors[] = {{"ffn_gate", "feed_forward.gate_proj"},
                                       {"ffn_up", "feed_forward.up_proj"},
                                       {"ffn_down", "feed_forward.down_proj"},
                                       {"ffn_gate_inp", "feed_forward.router"},
                                       {"ffn_gate_exps", "feed_forward.experts.gate_proj"},
                                       {"ffn_up_exps", "feed_forward.experts.up_proj"},
                                       {"ffn_down_exps", "feed_forward.experts.down_proj"},
                                       {"ffn_gate_shexp", "feed_forward.shared_expert.gate_proj"},
                                       {"ffn_up_shexp", "feed_forward.shared_expert.up_proj"},
                                       {"ffn_down_shexp", "feed_forward.shared_expert.down_proj"}};

// The window is that of published folders, which do not count the row itself.
constexpr GgufKey kMimo2Keys[] = {{"attention.value_length", "v_head_dim"},
                                  {"attention.value_scale", "attention_value_scale"},
                                  {"attention.sliding_window", "sliding_window_size"},
                                  {"expert_count", "n_routed_experts"},
                                  {"expert_used_count", "num_experts_per_tok"},
                                  {"expert_feed_forward_length", "moe_intermediate_size"},
                                  {"expert_weights_scale", "routed_scaling_factor"},
                                  {"expert_group_count", "n_group"},
                                  {"expert_group_used_count", "topk_group"},
                                  {"nextn_predict_layers", "num_nextn_predict_layers"}};
constexpr GgufKey kAfmoeKeys[] = {{"expert_count", "num_experts"},
                                  {"expert_used_count", "num_experts_per_tok"},
                                  {"expert_shared_count", "num_shared_experts"},
                                  {"expert_feed_forward_length", "moe_intermediate_size"},
                                  {"leading_dense_block_count", "num_dense_layers"},
                                  {"expert_weights_norm", "route_norm", false, true},
                                  {"expert_weights_scale", "route_scale"},
                                  {"expert_group_count", "n_group"},
                                  {"expert_group_used_count", "topk_group"}};
constexpr GgufKey kLagunaKeys[] = {
    {"expert_count", "num_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
    {"expert_weights_scale", "moe_routed_scaling_factor"}};
constexpr GgufKey kStepKeys[] = {{"expert_count", "moe_num_experts"},
                                 {"expert_used_count", "moe_top_k"},
                                 {"expert_feed_forward_length", "moe_intermediate_size"},
                                 {"expert_shared_feed_forward_length", "share_expert_dim"},
                                 {"expert_weights_scale", "moe_router_scaling_factor"},
                                 {"expert_weights_norm", "norm_expert_weight", false, true}};
constexpr GgufKey kCohere2MoeKeys[] = {{"logit_scale", "logit_scale"},
                                       {"expert_count", "num_experts"},
                                       {"expert_used_count", "num_experts_per_tok"},
                                       {"expert_feed_forward_length", "moe_intermediate_size"},
                                       {"expert_shared_count", "num_shared_experts"},
                                       {"leading_dense_block_count", "first_k_dense_replace"},
                                       {"expert_weights_norm", "norm_topk_prob", false, true},
                                       {"expert_gating_func", "gating"},
                                       {"nextn_predict_layers", "num_nextn_predict_layers"}};
constexpr GgufKey kHyV3Keys[] = {
    {"expert_count", "num_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
    {"expert_weights_scale", "routed_scaling_factor"},
    {"nextn_predict_layers", "num_nextn_predict_layers"}};
constexpr GgufKey kErnieKeys[] = {{"expert_count", "moe_num_experts"},
                                  {"expert_used_count", "moe_k"},
                                  {"expert_feed_forward_length", "moe_intermediate_size"},
                                  {"expert_shared_count", "moe_num_shared_experts"},
                                  {"interleave_moe_layer_step", "moe_layer_interval"},
                                  {"leading_dense_block_count", "moe_layer_start_index"}};
constexpr GgufKey kHunyuanKeys[] = {{"expert_count", "num_experts"},
                                    {"expert_used_count", "moe_topk"},
                                    {"expert_feed_forward_length", "moe_intermediate_size"},
                                    {"expert_shared_count", "num_shared_expert"}};
constexpr GgufKey kSparseMoeKeys[] = {{"expert_count", "num_local_experts"},
                                      {"expert_used_count", "num_experts_per_tok"}};
constexpr GgufKey kMinimaxKeys[] = {{"expert_count", "num_local_experts"},
                                    {"expert_used_count", "num_experts_per_tok"},
                                    {"rope.dimension_count", "rotary_dim"}};
constexpr GgufKey kGraniteMoeKeys[] = {
    {"attention.scale", "attention_multiplier"},
    {"embedding_scale", "embedding_multiplier"},
    {"residual_scale", "residual_multiplier"},
    {"logit_scale", "logits_scaling"},
    {"expert_count", "num_local_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_shared_feed_forward_length", "shared_intermediate_size"}};
constexpr GgufKey kQwenKeys[] = {{"expert_count", "num_experts"},
                                 {"expert_used_count", "num_experts_per_tok"},
                                 {"expert_feed_forward_length", "moe_intermediate_size"}};
constexpr GgufKey kLlama4Keys[] = {{"expert_count", "num_local_experts"},
                                   {"expert_used_count", "num_experts_per_tok"},
                                   {"expert_feed_forward_length", "moe_intermediate_size"},
                                   {"interleave_moe_layer_step", "interleave_moe_layer_step"}};

// Layers of MTP modules count among those of the file.
void complete_glm4_moe(Json& config) {
  const auto modules = config.value("num_nextn_predict_layers", int64_t{0});
  config["num_hidden_layers"] = config["num_hidden_layers"].get<int64_t>() - modules;
}

// Granite's shared expert.
void complete_granite_moe(Json& config) {
  if (!config.contains("shared_intermediate_size")) return;
  config["architectures"] = Json::array({"GraniteMoeSharedForCausalLM"});
  config["model_type"] = "granitemoeshared";
}

// Experts and dense layers each have a width. As llama.cpp tells Scout from Maverick, whose heads
// are not normed.
void complete_llama4(Json& config) {
  constexpr int64_t kMaverick = 128;  // experts
  if (config.contains("moe_intermediate_size")) {
    config["intermediate_size_mlp"] = config["intermediate_size"];
    config["intermediate_size"] = config["moe_intermediate_size"];
    config.erase("moe_intermediate_size");
  }
  config["use_qk_norm"] = config.value("num_local_experts", int64_t{0}) != kMaverick;
}

// Norms are layer norms unless the file has the key of the other ones; experts and what all rows
// share are averaged.
Status read_cohere2_moe_file(const GgufFile& file, Json& config) {
  constexpr int64_t kSoftmaxGates = 1;
  if (file.find("cohere2moe.attention.layer_norm_rms_epsilon") == nullptr) {
    config["layer_norm_eps"] = config["rms_norm_eps"];
    config.erase("rms_norm_eps");
  }
  const bool softens = config.value("gating", int64_t{2}) == kSoftmaxGates;
  config["expert_selection_fn"] = softens ? "softmax" : "sigmoid";
  config.erase("gating");
  complete_glm4_moe(config);
  return {};
}

// Unlimited OCR, whose rows see a window behind the prompt.
Status read_deepseek_ocr_file(const GgufFile& file, Json& config) {
  if (!config.contains("sliding_window")) return {};
  return unsupported(file.path() +
                     ": rows that see a window behind the whole prompt are not built; use a model "
                     "like DeepSeek OCR");
}

constexpr GgufArchitecture kMixtureArchitectures[] = {
    {.name = "glm4moe",
     .hf_class = "Glm4MoeForCausalLM",
     .model_type = "glm4_moe",
     .tensors = kGlm4MoeTensors,
     .keys = kGroupedExpertKeys,
     .fields = R"({"first_k_dense_replace": 0, "norm_topk_prob": false})",
     .complete = complete_glm4_moe},
    {.name = "dots1",
     .hf_class = "Dots1ForCausalLM",
     .model_type = "dots1",
     .tensors = kDots1Tensors,
     .keys = kGroupedExpertKeys,
     .fields = R"({"first_k_dense_replace": 0, "norm_topk_prob": false})"},
    {.name = "deepseek",
     .hf_class = "DeepseekForCausalLM",
     .model_type = "deepseek",
     .interleaves_heads = true,
     .tensors = kDots1Tensors,
     .keys = kGroupedExpertKeys,
     .fields = R"({"first_k_dense_replace": 0, "norm_topk_prob": false})"},
    // The same as folders have it; files say of how much of a head turns that it is nothing.
    {.name = "deepseek2-ocr",
     .hf_class = "DeepseekForCausalLM",
     .model_type = "deepseek",
     .tensors = kDots1Tensors,
     .keys = kGroupedExpertKeys,
     .fields = R"({"first_k_dense_replace": 0, "norm_topk_prob": false, "qk_rope_head_dim": 0})",
     .read = read_deepseek_ocr_file},
    {.name = "bailingmoe",
     .hf_class = "BailingMoeForCausalLM",
     .model_type = "bailing_moe",
     .interleaves_heads = true,
     .tensors = kBailingTensors,
     .model_tensors = kBailing2Model,
     .keys = kGroupedExpertKeys,
     .fields = R"({"first_k_dense_replace": 0, "norm_topk_prob": false, "plain_matrices": true})"},
    {.name = "bailingmoe2",
     .hf_class = "BailingMoeV2ForCausalLM",
     .model_type = "bailing_moe",
     .tensors = kBailing2Tensors,
     .model_tensors = kBailing2Model,
     .keys = kGroupedExpertKeys,
     .fields = R"({"first_k_dense_replace": 0, "n_group": 1, "topk_group": 1,
                   "partial_rotary_factor": 1.0})",
     .complete = complete_glm4_moe},
    {.name = "cohere2moe",
     .hf_class = "Cohere2MoeForCausalLM",
     .model_type = "cohere2_moe",
     .tensors = kDots1Tensors,
     .keys = kCohere2MoeKeys,
     .fields = R"({"first_k_dense_replace": 0, "norm_topk_prob": false, "num_shared_experts": 0})",
     .read = read_cohere2_moe_file},
    {.name = "exaone-moe",
     .hf_class = "ExaoneMoeForCausalLM",
     .model_type = "exaone_moe",
     .tensors = kExaoneMoeTensors,
     .keys = kGroupedExpertKeys,
     .fields = R"({"first_k_dense_replace": 0, "norm_topk_prob": false})",
     .complete = complete_glm4_moe},
    {.name = "hy_v3",
     .hf_class = "HYV3ForCausalLM",
     .model_type = "hy_v3",
     .tensors = kHyV3Tensors,
     .keys = kHyV3Keys,
     .complete = complete_glm4_moe},
    {.name = "mellum",
     .hf_class = "MellumForCausalLM",
     .model_type = "mellum",
     .tensors = kDots1Tensors,
     .keys = kQwenKeys,
     .fields = R"({"norm_topk_prob": true})"},
    {.name = "mimo2",
     .hf_class = "MiMoV2FlashForCausalLM",
     .model_type = "mimo_v2_flash",
     .joins_projections = true,
     .tensors = kMimo2Tensors,
     .modules = "model.mtp.layers.",
     .module_tensors = kMimo2ModuleTensors,
     .keys = kMimo2Keys,
     .read = read_mimo2_file},
    // Files do not say that embeddings are scaled, as all are, and that every fourth layer has no
    // window.
    {.name = "afmoe",
     .hf_class = "AfmoeForCausalLM",
     .model_type = "afmoe",
     .tensors = kAfmoeTensors,
     .keys = kAfmoeKeys,
     .fields = R"({"mup_enabled": true, "num_dense_layers": 0, "num_shared_experts": 0,
                   "route_norm": false})"},
    {.name = "laguna",
     .hf_class = "LagunaForCausalLM",
     .model_type = "laguna",
     .tensors = kLagunaTensors,
     .keys = kLagunaKeys,
     .read = read_laguna_file},
    {.name = "step35",
     .hf_class = "Step3p5ForCausalLM",
     .model_type = "step3p5",
     .whole_norms = true,
     .tensors = kStepTensors,
     .keys = kStepKeys,
     .fields = R"({"norm_expert_weight": false})",
     .read = read_step35_file},
    {.name = "minimax-m2",
     .hf_class = "MiniMaxM2ForCausalLM",
     .model_type = "minimax_m2",
     .tensors = kSparseMoeTensors,
     .keys = kMinimaxKeys},
    {.name = "ernie4_5-moe",
     .hf_class = "Ernie4_5_MoeForCausalLM",
     .model_type = "ernie4_5_moe",
     .tensors = kErnieTensors,
     .keys = kErnieKeys,
     .fields = R"({"moe_num_shared_experts": 0, "moe_layer_start_index": 0})"},
    {.name = "hunyuan-moe",
     .hf_class = "HunYuanMoEV1ForCausalLM",
     .model_type = "hunyuan_v1_moe",
     .tensors = kHunyuanMoeTensors,
     .keys = kHunyuanKeys},
    {.name = "granitemoe",
     .hf_class = "GraniteMoeForCausalLM",
     .model_type = "granitemoe",
     .interleaves_heads = true,
     .tensors = kGraniteTensors,
     .keys = kGraniteMoeKeys,
     .complete = complete_granite_moe},
    {.name = "phimoe",
     .hf_class = "PhiMoEForCausalLM",
     .model_type = "phimoe",
     .tensors = kSparseMoeTensors,
     .keys = kSparseMoeKeys,
     .fields = R"({"sliding_window": null})"},
    {.name = "qwen3vlmoe",
     .hf_class = "Qwen3MoeForCausalLM",
     .model_type = "qwen3_moe",
     .tensors = kDots1Tensors,
     .keys = kQwenKeys,
     .fields = R"({"norm_topk_prob": true})"},
    {.name = "llama4",
     .hf_class = "Llama4ForCausalLM",
     .model_type = "llama4_text",
     .tensors = kLlama4Tensors,
     .keys = kLlama4Keys,
     .complete = complete_llama4},
};

}  // namespace

std::span<const GgufArchitecture> mixture_gguf_architectures() { return kMixtureArchitectures; }

}  // namespace foretoken
